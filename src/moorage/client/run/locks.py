"""A lock beside a file of ours, so that one process at a time changes or uses it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def lock_path(path: str) -> str:
    """Return the name of the lock of a file."""
    return f"{path}.lock"


@contextmanager
def locked(path: str, wait: bool = True) -> Iterator[None]:
    """Keep every other process from what stands in such a block for the same file.

    Whoever has the lock may remove it (`lock_path`). Raises OSError: there can be no lock there;
    BlockingIOError: another process has it, and we are not to `wait`.
    """
    descriptor = _lock(path, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(path: str, how: int) -> int:
    """Return the locked file: that of the name, not one that was removed meanwhile."""
    while True:
        descriptor = os.open(lock_path(path), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, how)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(lock_path(path))):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
