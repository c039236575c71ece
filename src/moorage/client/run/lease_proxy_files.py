"""The files in which the bash functions for lease proxies keep the names of leases.

`client.sh` contains this file. Needs only Python 3.9.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from typing import TextIO
from urllib.parse import quote


class FailedError(Exception):
    """The function failed; `code` is its exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def shared_path() -> str:
    """Return the file of all leases of this test. Raises FailedError."""
    folder = os.environ.get("SHARED_DIR", "")
    if not folder:
        raise FailedError("$SHARED_DIR is empty")
    return os.path.join(folder, "leases")


def kept(kind: str, names: list[str], shared: str | None) -> str:
    """Store the names in files; return the handle."""
    if shared is not None:
        with open(shared, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write("".join(f"{name}\n" for name in names))
    descriptor, handle = tempfile.mkstemp(prefix=f"{quote(kind, safe='')}-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(names))
    with open(f"{handle}.lock", "w", encoding="utf-8"):
        return handle


def forgotten(names: list[str]) -> None:
    """Remove released names from the list of this test's leases.

    The next lease of such a slot has the same name, and a release of the whole test would release
    that lease. Removes only one line per name: another step may just have acquired it again.
    """
    folder = os.environ.get("SHARED_DIR", "")
    path = os.path.join(folder, "leases")
    if not folder or not os.path.isfile(path):
        return
    try:
        with open(path, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            rewritten(file, file.read().split(), names)
    except OSError as error:  # the names are released anyway
        say(f"{path}: {error}")


def rewritten(file: TextIO, names: list[str], gone: list[str]) -> None:
    """Write these names to a file, except one line for each name in `gone`."""
    left = [*names]
    for name in gone:
        if name in left:
            left.remove(name)
    file.seek(0)
    file.write("".join(f"{name}\n" for name in left))
    file.truncate()


def say(text: str) -> None:
    """Print lines on standard error, escaped as in `printing.py`, which is not available here."""
    for line in text.splitlines():
        shown = (one if one.isprintable() else ascii(one)[1:-1] for one in line)
        sys.stderr.write(f"{''.join(shown)}\n")
