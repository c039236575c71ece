"""Files of sysfs and procfs, below roots that can be moved."""

from __future__ import annotations

import os

SYSFS = "/sys"
PROCFS = "/proc"


class KernelFiles:
    """Reads and writes files of the kernel."""

    def __init__(self, sysfs: str = SYSFS, procfs: str = PROCFS) -> None:
        self._sysfs = sysfs
        self._procfs = procfs

    def sys(self, *parts: str) -> str:
        """Return a path below the root of sysfs."""
        return os.path.join(self._sysfs, *parts)

    def proc(self, *parts: str) -> str:
        """Return a path below the root of procfs."""
        return os.path.join(self._procfs, *parts)

    def read(self, path: str) -> str:
        """Return the text of a file. Raises OSError."""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def write(self, path: str, text: str) -> None:
        """Write a text with one system call, as the kernel requires. Raises OSError."""
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def names(self, path: str) -> list[str]:
        """Return the names in a folder; none if there is no such folder. Raises OSError."""
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []
