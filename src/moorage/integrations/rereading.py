"""Values that are read from a file, and again when the file has changed; the log tells of it."""

import logging
from typing import TypeVar

from moorage.client import tokens

T = TypeVar("T")

log = logging.getLogger("moorage.integrations")


class FileValue(tokens.FileValue[T]):
    """See `tokens.FileValue`; of programs with a log."""

    def note_change(self) -> None:
        """See `tokens.FileValue`."""
        log.info("%s has changed: it is read again", self.path)

    def note_trouble(self, error: Exception) -> None:
        """See `tokens.FileValue`."""
        log.warning("%s; its previous content stays in use: %s", self.path, error)
