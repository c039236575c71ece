"""Limits the memory of waiting requests and responses, of all connections together.

`protocol` limits the memory of one connection; but there are thousands of connections, and many of
them may belong to one client.
"""

from typing import Protocol

WAITING_BYTES_MAX = 64 << 20
"""Bytes of pipelined requests that wait until earlier ones on their connection are answered."""

BODIES_BYTES_MAX = 512 << 20
"""Bytes of long bodies of requests that are being received or answered."""

UNREAD_BYTES_MAX = 256 << 20
"""Bytes of responses that slow clients have not read yet."""

HEADS_BYTES_MAX = 32 << 20
"""Bytes of heads of requests of which the end has not arrived."""

REQUEST_BYTES = 4_096
"""Approximate memory of a request, besides its head and its body."""


class ByteBudget:
    """Counts reserved bytes up to a limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.bytes = 0
        """Bytes reserved now."""

    def take(self, size: int, own: int = 0) -> bool:
        """Reserve more bytes; return False if there are too few left.

        Args:
            size: bytes.
            own: bytes that the same request has reserved already. While no other request has
                reserved any, it may exceed the limit: otherwise it could never succeed.
        """
        if self.bytes > own and self.bytes + size > self._most:
            return False
        self.bytes += size
        return True

    def give_back(self, size: int) -> None:
        """Release bytes."""
        self.bytes -= size


class Reader(Protocol):
    """A connection whose client is slow."""

    def cut_off(self) -> None:
        """Close the connection."""
        ...


class Unread:
    """Counts the bytes that slow clients have not read yet.

    If there are too many, the clients that have been slow for the longest time are cut off. A
    client that reads soon leaves the count, or enters it again as the newest.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[Reader, int] = {}
        """In the order in which they became slow."""
        self.bytes = 0
        """Unread bytes of all of them."""

    def enter(self, reader: Reader, size: int) -> None:
        """Count the unread bytes of a client; cut off the slowest ones if there are too many."""
        self.leave(reader)
        self._sizes[reader] = size
        self.bytes += size
        while self.bytes > self._most and len(self._sizes) > 1:
            slowest = next(iter(self._sizes))
            self.leave(slowest)
            slowest.cut_off()

    def leave(self, reader: Reader) -> None:
        """Stop counting a client: it has read almost everything, or is gone. May be repeated."""
        self.bytes -= self._sizes.pop(reader, 0)


class Heads:
    """Counts the bytes of incomplete heads; the one begun first is cut off if there are too many.

    So a client that sends many of them without an end loses them, and others are served.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[Reader, int] = {}
        """In the order in which they began."""
        self.bytes = 0
        """Bytes of all of them."""

    def hold(self, reader: Reader, size: int) -> None:
        """Count the bytes of a head so far; 0: it is complete, or given up. May be repeated."""
        if not size:
            self.bytes -= self._sizes.pop(reader, 0)
            return
        self.bytes += size - self._sizes.get(reader, 0)
        self._sizes[reader] = size
        while self.bytes > self._most and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.bytes -= self._sizes.pop(oldest)
            oldest.cut_off()


class MemoryBudgets:
    """The memory budgets of all connections of a process."""

    def __init__(
        self,
        waiting: int = WAITING_BYTES_MAX,
        bodies: int = BODIES_BYTES_MAX,
        unread: int = UNREAD_BYTES_MAX,
        heads: int = HEADS_BYTES_MAX,
    ) -> None:
        self.waiting = ByteBudget(waiting)
        self.bodies = ByteBudget(bodies)
        self.unread = Unread(unread)
        self.heads = Heads(heads)
