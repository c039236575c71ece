"""Wake-ups: told that something may have happened, those who wait look again."""

import asyncio


class Bell:
    """Wakes everybody who listens. A ring carries nothing: it is a hint to look, never data."""

    def __init__(self) -> None:
        self._ring = asyncio.Event()
        self.closed = False

    def ring(self) -> None:
        """Wake everybody who listens now."""
        self._ring.set()
        if not self.closed:
            self._ring = asyncio.Event()

    def close(self) -> None:
        """Wake everybody, now and ever after: there will be nothing more to wait for."""
        self.closed = True
        self.ring()

    def listen(self) -> asyncio.Event:
        """Return what the next ring sets. Listen first, then look, then wait: nothing is missed."""
        return self._ring
