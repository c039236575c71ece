"""Values that are read from a file, and again when the file has changed, such as tokens."""

import logging
import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger("moorage.integrations")


class FileValue(Generic[T]):
    """The value of a file as it is now; call it to get the value."""

    def __init__(self, path: str, parse: Callable[[str], T]) -> None:
        """Read it for the first time; `parse` raises ValueError. Raises OSError, ValueError."""
        self._path = path
        self._parse = parse
        self._read_as = self._version()
        self._value = self._read()
        self._trouble = ""

    def __call__(self) -> T:
        """Return the value, or the last one while the file cannot be used, which the log says."""
        try:
            version = self._version()
            if version != self._read_as:
                self._value, self._read_as = self._read(), version
                log.info("%s has changed: it is read again", self._path)
            self._trouble = ""
        except (OSError, ValueError) as error:
            if str(error) != self._trouble:
                log.warning("%s, so what it had before is used: %s", self._path, error)
            self._trouble = str(error)
        return self._value

    def _version(self) -> tuple[int, int, int]:
        status = os.stat(self._path)
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _read(self) -> T:
        # Invalid UTF-8 becomes characters that are in no token.
        with open(self._path, encoding="utf-8", errors="replace") as file:
            return self._parse(file.read())
