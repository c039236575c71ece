"""The memory that long answers take until they have been sent, of all clients together."""

from moorage.core.errors import Code, Error
from moorage.core.limits import UNSENT_BYTES_MAX


class Unsent:
    """Counts the memory of long answers that are being sent, and refuses what is too much.

    Args:
        most: Bytes that all answers may take together. One alone may take more: it would never
            find room otherwise, and `candidates_max` bounds it.
    """

    def __init__(self, most: int = UNSENT_BYTES_MAX) -> None:
        self._most = most
        self.bytes = 0
        """Bytes taken now, for metrics."""
        self.refused = 0
        """Answers that there was no room for, for metrics."""

    def take(self, size: int) -> None:
        """Take room for an answer. Raises Error: OVERLOADED, there is too little left."""
        if self.bytes and self.bytes + size > self._most:
            self.refused += 1
            raise Error(
                Code.OVERLOADED,
                "Too many long responses are still being read by other clients; try later, or use "
                "a limit.",
            )
        self.bytes += size

    def give_back(self, size: int) -> None:
        """Give back the room of an answer that was sent or cut off."""
        self.bytes -= size
