"""Values that are read from a file, and again when the file has changed: above all tokens.

Part of the single file that runs on Python 3.9, see `run/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

TOKEN_BYTES_MAX = 64 << 10
"""Bytes that are read of a file; one that is longer has no token."""


class FileValue(Generic[T]):
    """The value of a file as it is now; call it to get the value.

    While the file is missing, empty or half written, it is the last one.
    """

    def __init__(self, path: str, parse: Callable[[str], T]) -> None:
        """Read it for the first time; `parse` raises ValueError. Raises OSError, ValueError."""
        self.path = path
        self._parse = parse
        self._read_as = self._version()
        self._value = self._read()
        self._trouble = ""

    def __call__(self, again: bool = False) -> T:
        """Return the value; `again`: read the file although it seems to be unchanged."""
        try:
            version = self._version()
            if again or version != self._read_as:
                before, self._value, self._read_as = self._value, self._read(), version
                if self._value != before:
                    self.note_change()
            self._trouble = ""
        except (OSError, ValueError) as error:
            if str(error) != self._trouble:
                self.note_trouble(error)
            self._trouble = str(error)
        return self._value

    def note_change(self) -> None:
        """Tell people that there is another value."""

    def note_trouble(self, error: Exception) -> None:
        """Tell people, once, why the last value is used although the file is another one."""

    def _version(self) -> tuple[int, int, int]:
        status = os.stat(self.path)
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _read(self) -> T:
        # Invalid UTF-8 becomes characters that are in no token.
        with open(self.path, encoding="utf-8", errors="replace") as file:
            text = file.read(TOKEN_BYTES_MAX + 1)
        if len(text) > TOKEN_BYTES_MAX:
            raise ValueError(f"{self.path} has more than {TOKEN_BYTES_MAX} bytes")
        return self._parse(text)
