"""Locks for files: only one process at a time changes or uses a file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def lock_path(path: str) -> str:
    """Return the path of a file's lock."""
    return f"{path}.lock"


@contextmanager
def locked(path: str, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file: other processes cannot enter such a block for the same file.

    The owner of the lock may delete its file (`lock_path`). Raises OSError: the lock cannot be
    created; BlockingIOError: another process has it, and `wait` is False.
    """
    with locked_file(lock_path(path), wait):
        yield


@contextmanager
def locked_file(lock: str, wait: bool = True) -> Iterator[None]:
    """As `locked`, with the path of the lock itself."""
    descriptor = _lock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(lock: str, how: int) -> int:
    """Lock the file that has the name now, not one that was deleted in between; return it."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, how)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
