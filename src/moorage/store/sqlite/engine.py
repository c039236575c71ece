"""The SQLite engine: light statements run in the event loop, COMMIT and heavy ones in a thread.

One connection writes, one answers short reads in the loop, two answer long reads in separate
threads. A fifth copies the write-ahead log into the file (a checkpoint) in parallel, so that
commits need not wait for it.
"""

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from threading import Lock
from types import TracebackType
from typing import TypeVar, cast

import apsw

from moorage.store.api import (
    HEAVY,
    ROWS_AT_A_TIME,
    Conflict,
    Done,
    Fatal,
    Plan,
    Row,
    Statement,
    Stream,
    Unavailable,
    Write,
    weight,
)
from moorage.store.high_water_mark import TAKING, Mark, raised
from moorage.store.sql import blocks
from moorage.store.sqlite.commit_thread import CommitThread
from moorage.store.sqlite.copy import copy
from moorage.store.sqlite.file import (
    LOG_PAGES_MAX,
    FileIdentity,
    connect,
    log_end,
    log_is_long,
    translated,
)
from moorage.store.sqlite.file import Lock as FileLock
from moorage.store.unknown_members import kept

T = TypeVar("T")

log = logging.getLogger("moorage.sqlite")

CHECKPOINT_PAGES = 8_000
"""Pages of 4 KiB in the log from which a checkpoint starts in parallel with the commits. The higher
this is, the more versions of one page are in the log, of which only the last is copied."""

CHECKPOINT_PAGES_MAX = 16_000
"""Pages in the log from which a commit waits for the checkpoint, so that the log can restart."""

SCAN_CACHE = -2_048
"""Page cache of a connection that reads a whole table, in KiB (negative, as for `cache_size`)."""


class SqliteEngine:
    """One database file, owned by this process. Made by `open.py`; implements `api.Engine`."""

    shared = False

    def __init__(
        self,
        path: str,
        owned: FileLock,
        *,
        vfs: str | None = None,
        synchronous: str = "FULL",
        checkpoint_pages: int = CHECKPOINT_PAGES,
        log_pages_max: int = LOG_PAGES_MAX,
        newer: bool = False,
    ) -> None:
        self.name = f"sqlite {path}"
        self.newer = newer
        """Whether a newer release has written; if so, unknown members must be preserved."""
        self._path = path
        self._owned = owned
        self._connections: list[apsw.Connection] = []
        try:
            for writes in (True, True, False, False, False):
                self._connections.append(
                    connect(path, writes=writes, vfs=vfs, synchronous=synchronous)
                )
        except BaseException:
            self._disconnect()
            raise
        self._writer, self._checkpointer, self._reader, *aside = self._connections
        self._committing = CommitThread("moorage-commit")
        self._aside, self._slow = [
            (ThreadPoolExecutor(1, "moorage-read"), connection) for connection in aside
        ]
        self._checkpointing = ThreadPoolExecutor(1, "moorage-checkpoint")
        self._checkpoint: Future[None] | None = None
        self._checkpoint_pages = checkpoint_pages
        self._log_pages = 0
        self._log_pages_max = log_pages_max
        self._place = FileIdentity(path)
        self._taken: Mark | None = None
        """The revision that the open transaction has taken."""
        self._long_reads = {connection for _, connection in (self._aside, self._slow)}
        self._guard = Lock()
        self._turn = asyncio.Lock()
        self._fatal: Fatal | None = None
        self._writer.set_wal_hook(self._count_log)

    def transaction(self) -> "SqliteTransaction":
        """Return a write transaction; only one is open at a time, others wait to begin."""
        return SqliteTransaction(self)

    async def begin(self) -> None:
        """Begin the write transaction, after the one that is open."""
        await self._turn.acquire()
        try:
            self._check_health()
            self._taken = None
            with translated("begin"):
                self._writer.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._turn.release()
            raise

    def end(self) -> None:
        """Roll the write transaction back, unless it was committed."""
        try:
            if self._writer.in_transaction:
                with translated("roll back"):
                    self._writer.execute("ROLLBACK")
        finally:
            self._turn.release()

    async def read(self, plan: Plan[T]) -> T:
        """Run a short plan in the loop, in one snapshot."""
        return _read(self._reader, plan)

    async def look(self, plan: Plan[T]) -> T:
        """Run a short plan, as `read`: short reads never wait here."""
        return _read(self._reader, plan)

    async def read_aside(self, plan: Plan[T], *, slow: bool = False) -> T:
        """Run a plan in the thread for long reads, or the one for slow reads, in one snapshot."""
        executor, connection = self._slow if slow else self._aside
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor, _read, connection, plan)

    async def woken(self, seconds_max: float) -> None:
        """Wait for `seconds_max` seconds: no other process changes the file."""
        await asyncio.sleep(seconds_max)

    def seen(self, epoch: int, revision: int, at: int | None) -> None:
        """Do nothing: all commits are this process's own, and `_commit` records them."""

    async def history_checked(self) -> None:
        """Do nothing: the history was checked on opening, and no other process changes the file."""

    async def backup(self, path: str) -> None:
        """Write a copy to a new file.

        Raises Unusable: `path` exists or cannot be written. Unavailable: it took too long.
        """
        await asyncio.to_thread(copy, self._path, path, self._endable)

    async def close(self) -> None:
        """Copy the log into the file, close everything and release the lock."""
        async with self._turn:
            if self._connections:
                await asyncio.to_thread(self._close)

    def write(
        self, plan: Plan[T], statements: Sequence[Statement] | None = None, *, most: int = HEAVY
    ) -> Done[T] | Sequence[Statement]:
        """Run a plan in the open write transaction, continuing with `statements` (None: start it).

        Stops before statements that weigh more than `most`, and returns them.
        """
        if self._fatal is not None:
            raise self._fatal
        if not self._writer.in_transaction:
            raise Unavailable("the transaction was rolled back by an earlier error")
        with translated("write"):
            return _drive(self._writer, plan, statements, most, self)

    def write_begin(
        self, plan: Plan[T], statements: Sequence[Statement] | None
    ) -> asyncio.Future[Done[T] | Sequence[Statement]]:
        """Start running the rest of a plan in the commit thread."""
        return self._committing.begin(partial(self.write, plan, statements, most=sys.maxsize))

    def commit_begin(self) -> asyncio.Future[None]:
        """Start the commit in the commit thread."""
        return self._committing.begin(self._commit)

    async def thread_idle(self) -> None:
        """Wait until the commit thread has nothing to do, even if the caller is cancelled."""
        await self._committing.idle()

    def note(self, statement: Statement, rows: list[Row]) -> None:
        """Remember the revision or epoch that a statement has taken."""
        if (found := raised([statement], [rows])) is not None:
            self._taken = found.mark

    def _commit(self) -> None:
        self._check_health()
        self._place.check()
        try:
            with translated("commit"):
                self._writer.execute("COMMIT")
        except Fatal as fatal:
            self._fatal = fatal
            raise
        if self._taken is not None:
            self._owned.reached(self._taken)
        self._end_long_reads()
        if self._log_pages >= self._checkpoint_pages:
            if self._checkpoint is None or self._checkpoint.done():
                self._checkpoint = self._checkpointing.submit(self._run_checkpoint)
            if self._log_pages >= CHECKPOINT_PAGES_MAX:
                self._checkpoint.result()

    def _run_checkpoint(self) -> None:
        """Copy the log into the file, as far as open snapshots allow.

        After a failed sync the process must end, but committed data stays in the log. After any
        other failure the next commit tries again; it also reports a full disk.
        """
        try:
            with suppress(Unavailable), translated("checkpoint"):
                self._checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except Fatal as fatal:
            self._fatal = fatal

    def _count_log(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    @contextmanager
    def _endable(self, connection: apsw.Connection) -> Iterator[None]:
        with self._guard:
            self._long_reads.add(connection)
        try:
            yield
        finally:
            with self._guard:
                self._long_reads.discard(connection)

    def _end_long_reads(self) -> None:
        """Interrupt the reads that keep the log from restarting, if the log is too long."""
        try:
            if not log_is_long(self._path, self._log_pages, self._log_pages_max):
                return
        except OSError:  # the commit is done; `FileIdentity` reports a missing file
            return
        with self._guard:
            for connection in self._long_reads:
                connection.interrupt()

    def _check_health(self) -> None:
        if self._fatal is not None:
            raise self._fatal

    def _close(self) -> None:
        self._committing.close()
        for executor in (self._aside[0], self._slow[0], self._checkpointing):
            executor.shutdown(wait=True)
        try:
            if self._fatal is None:
                log_end(self._writer)
        except Unavailable as error:  # for example, another process makes a backup
            log.warning("%s; everything is in the log, and the next start reads it", error)
        finally:
            self._disconnect()

    def _disconnect(self) -> None:
        try:
            with translated("close"):
                while self._connections:
                    self._connections.pop().close(True)
        finally:
            self._owned.release()


class SqliteTransaction:
    """The open write transaction; implements `api.Transaction`."""

    now = None

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._threaded = False
        """Whether the commit thread may still work on this transaction."""

    async def __aenter__(self) -> "SqliteTransaction":
        await self._engine.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._threaded:
                await self._engine.thread_idle()
        finally:
            self._engine.end()

    async def run(self, plan: Plan[T], *, aside: bool = False) -> T:
        """Run a plan in the loop, and from its first heavy statements on in the commit thread."""
        if self._engine.newer:
            plan = kept(plan)
        found: Done[T] | Sequence[Statement] | None = None
        if not aside:
            found = self._engine.write(plan)
        if not isinstance(found, Done):
            self._threaded = True
            found = await self._engine.write_begin(plan, found)
            self._threaded = False
            assert isinstance(found, Done)
        return found.answer

    async def commit(self) -> None:
        """Make everything durable. Continues even if the caller is cancelled."""
        self._threaded = True
        await self._engine.commit_begin()
        self._threaded = False


def _read(connection: apsw.Connection, plan: Plan[T]) -> T:
    with translated("read"):
        connection.execute("BEGIN")
        try:
            found = _drive(connection, plan)
            assert isinstance(found, Done)
            return found.answer
        finally:
            while connection.in_transaction:
                with suppress(apsw.InterruptError):  # the interrupt may come as late as here
                    connection.execute("ROLLBACK")


def _drive(
    connection: apsw.Connection,
    plan: Plan[T],
    statements: Sequence[Statement] | None = None,
    most: int = sys.maxsize,
    engine: SqliteEngine | None = None,
) -> Done[T] | Sequence[Statement]:
    """Run a plan from some of its statements on (None: from its start), up to the weight `most`.

    `engine` notes the revisions that the plan takes, before it continues.
    """
    try:
        if statements is None:
            statements = next(plan)
        while weight(statements) <= most:
            results = []
            for statement in statements:
                rows = _execute(connection, statement)
                results.append(rows)
                if engine is not None and statement.block in TAKING:
                    engine.note(statement, rows)
            statements = plan.send(results)
    except StopIteration as stop:
        return Done(stop.value)
    return statements


def _execute(connection: apsw.Connection, statement: Statement) -> list[Row]:
    text = blocks("sqlite")[statement.block]
    if isinstance(statement, Write):
        changed = connection.total_changes()
        connection.executemany(text, statement.rows)
        if statement.guarded and connection.total_changes() - changed != len(statement.rows):
            raise Conflict(f"{statement.block}: a row was changed by somebody else")
        return []
    cursor = connection.execute(text, tuple(statement.params))
    try:
        if isinstance(statement, Stream):
            _stream(connection, statement, cursor)
            return []
        # Not `fetchall`: in a thread, others must be able to run between any two rows.
        return [row for row in cursor]  # noqa: C416 - list() would not let them
    except BaseException:
        # After an interrupt, a rollback is possible only if no statement is still active.
        cursor.close(True)
        raise


def _stream(connection: apsw.Connection, statement: Stream, cursor: apsw.Cursor) -> None:
    # A scan reads each page once; a large cache would only fill up memory for good.
    size = connection.pragma("cache_size")
    connection.pragma("cache_size", SCAN_CACHE)
    try:
        while rows := cast(list[Row], list(islice(cursor, ROWS_AT_A_TIME))):
            statement.take(rows)
    finally:
        connection.pragma("cache_size", size)
