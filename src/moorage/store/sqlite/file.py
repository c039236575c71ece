"""The database file: locks it, opens it, and translates its errors."""

import errno
import fcntl
import logging
import os
import time
from contextlib import AbstractContextManager
from functools import lru_cache
from types import TracebackType

import apsw

from moorage.store.api import Conflict, Fatal, Locked, StoreError, Unavailable, Unusable
from moorage.store.high_water_mark import Mark, MarkFile

_UNSYNCED = {apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC}
_BUSY_MS = 5_000
_WAL_SIZE_KEPT = 64 * 1024 * 1024

PAGE = 4_096
"""Bytes per page."""

LOG_PAGES_MAX = 65_536
"""Pages in the log (256 MiB) from which long reads are interrupted, if the database is not larger:
all commits during a long read must stay in the log."""

STATEMENTS_MAX = 512
"""Places for prepared statements. Each run of a statement takes the next place, so a batch of 64
requests takes hundreds, and must not drop the statements that the next batch begins with."""

PLACE_SECONDS = 0.1
"""How often to check that the files are in place. A check takes three system calls, and each
releases the interpreter's lock to the event loop, which may keep it for a while."""

log = logging.getLogger("moorage.sqlite")


class _Translation:
    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise the error of the port; SQLite's own if it shows a fault of this program."""
        if isinstance(error, apsw.Error):
            found = _translate(self._doing, error)
            if found is not None:
                raise found from error


@lru_cache(maxsize=64)
def translated(doing: str) -> AbstractContextManager[None]:
    """Translate the database's errors into those of the port. `doing` starts the message."""
    return _Translation(doing)


def _translate(doing: str, error: apsw.Error) -> StoreError | None:
    if getattr(error, "extendedresult", 0) in _UNSYNCED:
        return Fatal(f"{doing}: a sync to the disk failed; what was written may be lost: {error}")
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return Fatal(f"{doing}: the database file is damaged; restore a backup: {error}")
    if isinstance(error, apsw.ConstraintError):
        return Conflict(f"{doing}: {error}")
    if isinstance(error, apsw.FullError):
        return Unavailable(f"{doing}: the disk is full; nothing was written: {error}")
    if isinstance(error, apsw.InterruptError):
        return Unavailable(
            f"{doing}: this took so long that the log of the database has grown to its limit; it "
            "was ended so that the log can start anew. Try again when less is written"
        )
    if isinstance(error, (apsw.SQLError, apsw.MisuseError, apsw.BindingsError)):
        return None  # a bug in this program, not a condition of the disk
    text = str(error).removeprefix(f"{type(error).__name__}: ")
    return Unavailable(f"{doing}: {text}")


class Lock:
    """The exclusive lock on a database file: a flock on PATH.lock, which ends with the process.

    The lock file also stores the highest epoch, for a restore that cannot read the old file, and
    the newest revision, to detect that an earlier file was put back.
    """

    def __init__(self, path: str) -> None:
        """Take the lock. Raises Locked, Unusable."""
        self.path = f"{path}.lock"
        self._warned = False
        while True:
            try:
                self._marks = MarkFile(self.path)
            except OSError as error:
                remedy = _remedy(self.path, error)
                raise Unusable(f"cannot open {self.path}: {error.strerror}{remedy}") from error
            try:
                fcntl.flock(self._marks.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._marks.close()
                raise Locked(
                    f"{path} is in use by another process, which holds {self.path}; stop it first"
                ) from error
            if _identity(self.path) == _identity(self._marks.fileno()):
                return
            self._marks.close()  # the file was removed before it was locked

    def mark(self) -> Mark:
        """Return the stored mark. Raises Unusable: it cannot be read."""
        try:
            return self._marks.load()
        except (OSError, ValueError) as error:
            raise Unusable(
                f"cannot read {self.path}: {error}; remove it, then run `moorage db epoch raise`"
            ) from error

    def remember(self, epoch: int) -> None:
        """Store an epoch without a revision, durably."""
        self._marks.store(Mark(epoch))
        os.fsync(self._marks.fileno())

    def reached(self, mark: Mark) -> None:
        """Store a revision, not durably: after a power failure it may be an older one."""
        try:
            self._marks.store(mark)
        except OSError as error:  # must not fail the commit, which is done
            if not self._warned:
                log.error("cannot write %s, which notices restores: %s", self.path, error)
            self._warned = True

    def release(self) -> None:
        """Release the lock."""
        self._marks.close()


def _remedy(path: str, error: OSError) -> str:
    """Return who must be able to write where, to follow an error's text; empty for other errors."""
    if error.errno not in (errno.EACCES, errno.EROFS):
        return ""
    folder = os.path.dirname(os.path.abspath(path))
    return (
        f"; the user {os.geteuid()} must be able to write to {folder}"
        " (in a container, mount a volume there)"
    )


def _identity(file: str | int) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class FileIdentity:
    """Checks that the names of the open files still refer to these files.

    SQLite continues to write to a file that was moved or deleted. The next process that opens the
    name uses another file, which lacks the commits acknowledged in between.
    """

    def __init__(self, path: str) -> None:
        self._log = f"{path}-wal"
        self._known = {name: _identity(name) for name in (path, f"{path}.lock")}
        self._next = 0.0

    def check(self) -> None:
        """Check the files, at most every `PLACE_SECONDS`; call it within a write transaction.

        Raises Unavailable: a file is not in place. Then every call checks, until it is back.
        """
        now = time.monotonic()
        if now < self._next:
            return
        if self._log not in self._known:
            self._known[self._log] = _identity(self._log)
        for name, known in self._known.items():
            try:
                found = _identity(name)
            except OSError as error:
                raise Unavailable(f"{name} cannot be found: {error.strerror}") from error
            if found is None or found != known:
                raise Unavailable(
                    f"{name} was moved, deleted or replaced while this process uses it; nothing is "
                    "written until it is back in its place, or this process is started again"
                )
        self._next = now + PLACE_SECONDS


def log_is_long(path: str, pages: int, pages_max: int) -> bool:
    """Return whether the log has reached its limit and the size of the database. Raises OSError."""
    return pages >= pages_max and pages * PAGE >= os.stat(path).st_size


def create(path: str) -> None:
    """Create the file if it is missing; only its owner can read it, and the log next to it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise Unusable(f"cannot open {path}: {error.strerror}") from error


def connect(
    path: str, *, writes: bool, vfs: str | None = None, synchronous: str = "FULL"
) -> apsw.Connection:
    """Open a connection to an existing file, in WAL mode if it writes.

    Raises:
        Unusable: it cannot be opened, or it is no database.
    """
    try:
        connection = apsw.Connection(
            path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs, statementcachesize=STATEMENTS_MAX
        )
        try:
            _configure(connection, writes, synchronous)
        except BaseException:
            connection.close(True)
            raise
    except (apsw.CantOpenError, apsw.CorruptError, apsw.NotADBError) as error:
        raise Unusable(f"cannot use {path} as a database: {error}") from error
    except apsw.Error as error:
        raise _translate(f"open {path}", error) or error from error
    return connection


def log_end(connection: apsw.Connection) -> None:
    """Copy the whole log into the file; the last connection to close then deletes the log.

    Raises Fatal, Unavailable: the log keeps everything and the next start reads it.
    """
    with translated("empty the log"):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def _configure(connection: apsw.Connection, writes: bool, synchronous: str) -> None:
    connection.set_busy_timeout(_BUSY_MS)
    # SQLite would ignore errors of a checkpoint on close; `log_end` does one and reports them.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # Otherwise SQLite prepares some statements again for each new value of a parameter.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    if writes:
        connection.pragma("journal_mode", "WAL")
        connection.pragma("journal_size_limit", _WAL_SIZE_KEPT)
    else:
        connection.pragma("query_only", True)
    connection.pragma("synchronous", synchronous)
    # Without these, macOS returns from fsync before the disk has written; no effect elsewhere.
    connection.pragma("fullfsync", True)
    connection.pragma("checkpoint_fullfsync", True)
    connection.pragma("trusted_schema", False)
    connection.pragma("temp_store", "MEMORY")
    connection.pragma("cache_size", -65_536)
