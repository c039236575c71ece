"""Wake-ups: tasks that wait are notified that something may have changed, and read again."""

import asyncio


class Bell:
    """Wakes all listeners. A ring carries no data: it is only a hint to read again."""

    def __init__(self) -> None:
        self._ring = asyncio.Event()
        self.closed = False

    def ring(self) -> None:
        """Wake all current listeners."""
        self._ring.set()
        if not self.closed:
            self._ring = asyncio.Event()

    def close(self) -> None:
        """Wake all current and future listeners, because nothing more will happen."""
        self.closed = True
        self.ring()

    def listen(self) -> asyncio.Event:
        """Return the event that the next ring sets.

        Listen first, then read, then wait, so that no change is missed.
        """
        return self._ring
