"""The memory that requests and responses take while they wait, of all connections together.

What one connection may hold is bounded, see `protocol`; but there are thousands of connections, and
many of them may belong to one client.
"""

from typing import Protocol

WAITING_BYTES_MAX = 64 << 20
"""Bytes of requests that wait on their connections until those before them are answered."""

BODIES_BYTES_MAX = 512 << 20
"""Bytes of the long bodies of requests that are being received and answered."""

UNREAD_BYTES_MAX = 256 << 20
"""Bytes of responses that slow clients have not read yet."""

REQUEST_BYTES = 4_096
"""About what a request takes, beside its head and its body."""


class Room:
    """Counts bytes, and says when there are too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.bytes = 0
        """Bytes taken now."""

    def take(self, size: int, own: int = 0) -> bool:
        """Take room for so many more bytes; False: there is too little left.

        Args:
            size: bytes.
            own: bytes that the same request has taken already. As long as no other has any, it may
                take more than there is: it would never find room otherwise.
        """
        if self.bytes > own and self.bytes + size > self._most:
            return False
        self.bytes += size
        return True

    def give_back(self, size: int) -> None:
        """Give room back."""
        self.bytes -= size


class Reader(Protocol):
    """A client that is slow to read."""

    def cut_off(self) -> None:
        """Send it nothing more."""
        ...


class Unread:
    """The bytes that slow clients have not read yet.

    If there are too many, those give way that have read too little for the longest time. Whoever
    reads at all soon counts no more, or counts anew.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[Reader, int] = {}
        """In the order in which they became slow."""
        self.bytes = 0
        """Of all of them."""

    def enter(self, reader: Reader, size: int) -> None:
        """Count what a client has not read yet."""
        self.leave(reader)
        self._sizes[reader] = size
        self.bytes += size
        while self.bytes > self._most and len(self._sizes) > 1:
            slowest = next(iter(self._sizes))
            self.leave(slowest)
            slowest.cut_off()

    def leave(self, reader: Reader) -> None:
        """Count a client no more: it has read almost all, or is gone. Once more is nothing."""
        self.bytes -= self._sizes.pop(reader, 0)


class Held:
    """All that the connections of a process hold."""

    def __init__(
        self,
        waiting: int = WAITING_BYTES_MAX,
        bodies: int = BODIES_BYTES_MAX,
        unread: int = UNREAD_BYTES_MAX,
    ) -> None:
        self.waiting = Room(waiting)
        self.bodies = Room(bodies)
        self.unread = Unread(unread)
