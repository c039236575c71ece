"""Bounds the memory of all long answers that have not been sent yet."""

from moorage.core.errors import Code, Error
from moorage.core.limits import UNSENT_BYTES_MAX


class UnsentMemory:
    """Counts the memory of long answers that are being sent, and refuses further ones.

    Args:
        most: Bytes that all answers may use together. A single one may use more: otherwise it could
            never be sent, and `candidates_max` bounds it.
    """

    def __init__(self, most: int = UNSENT_BYTES_MAX) -> None:
        self._most = most
        self.bytes = 0
        """Bytes in use, for metrics."""
        self.refused = 0
        """Number of refused answers, for metrics."""

    def take(self, size: int) -> None:
        """Reserve memory for an answer. Raises Error: OVERLOADED, too little is left."""
        if self.bytes and self.bytes + size > self._most:
            self.refused += 1
            raise Error(
                Code.OVERLOADED,
                "Too many long responses are still being read by other clients; try again later,"
                " or use a limit.",
            )
        self.bytes += size

    def give_back(self, size: int) -> None:
        """Free the memory of an answer that was sent or cut off."""
        self.bytes -= size
