"""The copy of a database until it is complete: a file in a folder that only this user can open.

Others may be able to write to the folder of the target. There they could prepare a file that we
would fill for them, but they cannot open ours. Its folder is locked as long as it is being written,
so that another backup does not take it for one that was left over.
"""

import fcntl
import os
from contextlib import suppress

from moorage.store.api import Unusable
from moorage.store.directories import sync_directory

SUFFIX = ".partial"
"""The folder is called like the target, with this suffix."""

_FILE = "moorage.sqlite"
_JOURNAL = f"{_FILE}-journal"


class Unfinished:
    """A file that becomes `target` when it is complete."""

    def __init__(self, target: str) -> None:
        """Create it. Raises Unusable."""
        self._target = target
        self._folder = f"{target}{SUFFIX}"
        try:
            with suppress(FileNotFoundError):
                remove(self._folder)  # left by a process that was killed
            os.mkdir(self._folder, 0o700)
            self._there = _locked(self._folder)
        except BlockingIOError:
            raise Unusable(f"{target} is being written by another backup") from None
        except OSError as error:
            raise Unusable(f"cannot create {self._folder}: {error.strerror}") from error
        try:
            if os.fstat(self._there).st_uid != os.geteuid():
                raise Unusable(self._replaced())
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = os.open(_FILE, flags, 0o600, dir_fd=self._there)
        except BaseException as error:
            os.close(self._there)
            with suppress(OSError):
                os.rmdir(self._folder)
            if isinstance(error, OSError):  # such as a disk without room for another file
                raise Unusable(f"cannot create {self._folder}: {error.strerror}") from error
            raise
        self.path = os.path.join(self._folder, _FILE)
        """Of the empty file."""

    def publish(self) -> None:
        """Sync the complete file, and rename it to the target.

        Raises Unusable: another process interfered, or the disk failed.
        """
        try:
            os.fsync(self._file)
            if not os.fstat(self._file).st_size or not _is(self.path, self._file):
                raise Unusable(self._replaced())
            if os.path.lexists(self._target):
                raise Unusable(f"{self._target} was created in the meantime; name a new file")
            os.rename(_FILE, self._target, src_dir_fd=self._there)
            sync_directory(self._target)
        except OSError as error:
            raise Unusable(f"cannot complete {self._target}: {error.strerror}") from error

    def close(self) -> None:
        """Remove what is left of it, but nothing that belongs to others."""
        _emptied(self._there)
        if _is(self._folder, self._there):
            os.rmdir(self._folder)
        os.close(self._file)
        os.close(self._there)

    def _replaced(self) -> str:
        return f"another process has replaced {self._folder}; name another file"


def remove(path: str) -> None:
    """Remove what a killed process has left.

    Raises BlockingIOError: it is being written. OSError: it does not exist, or is not ours.
    """
    there = _locked(path)
    try:
        _emptied(there)
    finally:
        os.close(there)
    os.rmdir(path)


def _locked(folder: str) -> int:
    there = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(there, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(there)
        raise
    return there


def _emptied(there: int) -> None:
    for name in (_FILE, _JOURNAL):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=there)


def _is(path: str, opened: int) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.path.samestat(os.stat(path), os.fstat(opened))
    return False
