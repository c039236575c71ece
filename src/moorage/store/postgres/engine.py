"""The PostgreSQL engine: sends each round of a plan at once, on a pool of connections.

One connection writes, one transaction at a time: the transactor's batches. A few others answer
reads. Any number of processes may share the database; `ledger/load.py` and `admission/load.py`
describe the locks, `commit.py` a connection that breaks during COMMIT. Long reads run in threads,
on separate connections, some rows at a time, so that the event loop stays free.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, ParamSpec, TypeVar, cast

import psycopg
from psycopg import Connection, RawCursor, RawServerCursor

from moorage.core.clock import Instant
from moorage.store.api import (
    HEAVY,
    ROWS_AT_A_TIME,
    Conflict,
    Done,
    Plan,
    Row,
    Statement,
    StoreError,
    Stream,
    Unavailable,
    Unusable,
    Write,
    advanced,
    weight,
)
from moorage.store.high_water_mark import Mark
from moorage.store.postgres.commit import (
    CHANNEL,
    SERVED,
    Receipt,
    history_checked,
    orphan_ended,
    server_known,
)
from moorage.store.postgres.connection import (
    EXCHANGED,
    ROUND_SLOW_SECONDS_MAX,
    SESSION,
    Link,
    Lost,
    Prepared,
    check_there,
    conninfo_of,
    name_of,
    prepared,
    translated,
)
from moorage.store.postgres.known import KnownHistory
from moorage.store.unknown_members import kept

T = TypeVar("T")
A = TypeVar("A")
P = ParamSpec("P")

READERS_MAX = 4
"""Connections that answer short reads."""

READERS_ASIDE_MAX = 2
"""Connections that answer long reads; one more answers slow reads, which read everything."""

SERVERS_MAX = 3
"""How often a long read may find another server before it gives up."""

_SLOW = frozenset({"allocation_rename_class", "inventory_rename_class"})
# No timeout may end a COMMIT that waits for a standby; `transaction_timeout` is PostgreSQL 17's.
_WRITER_SETTINGS = """;
SET enable_seqscan = off;
SELECT set_config(name, '0', false) FROM pg_settings
WHERE name IN ('statement_timeout', 'transaction_timeout');
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') = 'off'
"""
_READER_SETTINGS = """;
SET enable_seqscan = off;
SET default_transaction_read_only = on
"""
_BEGIN = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
_BEGIN_READ = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
_COMMIT = ("COMMIT", ())
_ROLLBACK = ("ROLLBACK", ())
_NOW = (f"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, {SESSION}", ())


class PostgresEngine:
    """A database that several processes may share. Made by `open.py`; implements `api.Engine`.

    Raises ValueError: `url` is not a valid address. Unusable: `epoch_file` cannot be used.
    """

    shared = True

    def __init__(self, url: str, epoch_file: str | None = None) -> None:
        self._conninfo = conninfo_of(url)
        self.name = f"postgresql {name_of(url)}"
        self._writer: Link | None = None
        self._listener: Link | None = None
        self.known = KnownHistory(epoch_file)
        self._checking = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._idle: list[Link] = []
        self._aside = LongReads(self._conninfo)
        self._readers = asyncio.Semaphore(READERS_MAX)
        self._looking = asyncio.Semaphore(1)
        self._reading_aside = ThreadPoolExecutor(READERS_ASIDE_MAX, "moorage-read")
        self._reading_slowly = ThreadPoolExecutor(1, "moorage-read-slowly")
        self._closed = False

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["PostgresTransaction"]:
        """Begin a write transaction, one at a time in this process. Raises Unavailable."""
        async with self._turn:
            transaction = PostgresTransaction(self, await self._writing())
            try:
                yield transaction
            finally:
                await transaction.settle()

    async def read(self, plan: Plan[T]) -> T:
        """Run a plan that yields once: one statement, or one pipeline in one snapshot."""
        return await self._read(plan, self._readers)

    async def _read(self, plan: Plan[T], readers: asyncio.Semaphore) -> T:
        asked = next(plan)
        statements = [prepared(one) for one in asked]
        if len(statements) > 1:
            statements = [_BEGIN_READ, *statements, _COMMIT]
        async with readers:
            results = await self._read_once(statements)
        rows = [found for found, _ in results]
        rows = rows[1:-1] if len(rows) > 1 else rows
        check_there(asked, rows)
        try:
            plan.send(rows)
        except StopIteration as stop:
            return cast(T, stop.value)
        raise AssertionError("a short read asks once; use read_aside")

    async def look(self, plan: Plan[T]) -> T:
        """Run a plan that yields once, without waiting for other reads."""
        return await self._read(plan, self._looking)

    async def read_aside(self, plan: Plan[T], *, slow: bool = False) -> T:
        """Run a long plan in a thread, in one snapshot."""
        if self._closed:
            raise Unavailable("the database is closed")
        loop = asyncio.get_running_loop()
        executor = self._reading_slowly if slow else self._reading_aside
        for _ in range(SERVERS_MAX):
            try:
                return await loop.run_in_executor(
                    executor, self._aside.read, plan, self.known.server
                )
            except Moved as moved:  # the plan has not begun
                await self._check_server(moved.server)
        raise Unavailable("read: the server keeps changing")

    async def woken(self, seconds_max: float) -> None:
        """Wait until another process may have committed something, at most this long.

        Only a hint: behind some poolers no notification ever arrives. Raises Unavailable.
        """
        if self._listener is None or self._listener.closed:
            link = await Link.open(self._conninfo)
            try:
                await link.listen(CHANNEL)
                if self._closed:
                    raise Unavailable("the database is closed")
            except BaseException:
                await link.close()
                raise
            self._listener = link
            return  # earlier notifications are lost, so something may have changed
        try:
            await self._listener.heard(seconds_max, self._is_peer)
        except Lost:
            await self._listener.close()
            raise

    def _is_peer(self, pid: str) -> bool:
        """Return whether the session of this pid is not the one that writes for this process."""
        return self._writer is None or pid not in self._writer.served_by[:1]

    async def backup(self, path: str) -> None:
        """Raise Unusable: PostgreSQL has its own tools for backups."""
        raise Unusable("this database is PostgreSQL's to back up; use pg_dump or pg_basebackup")

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        async with self._turn:
            for link in (*self._idle, self._writer, self._listener):
                if link is not None:
                    await link.close()
            self._idle.clear()
            for executor in (self._reading_aside, self._reading_slowly):
                await asyncio.to_thread(executor.shutdown)
            self._aside.close()
            await asyncio.to_thread(self.known.close)

    def seen(self, epoch: int, revision: int, at: int | None) -> None:
        """Record a revision that was read from the database."""
        self.known.reached(Mark(epoch, revision, at or 0))

    async def history_checked(self) -> None:
        """Begin a new epoch if the known revision is missing. Raises Unavailable."""
        async with self._checking:
            await (await self.open_writer()).close()

    async def _check_server(self, server: str) -> None:
        """Check the history of a new server before anything is read from it."""
        async with self._checking:
            if self.known.server != server:
                await (await self.open_writer()).close()

    async def open_writer(self) -> Link:
        """Open a connection for writing and check the history; end the session of a broken one."""
        link = await Link.open(self._conninfo, _WRITER_SETTINGS)
        try:
            if self._writer is not None and self._writer.closed:
                await orphan_ended(link, self._writer)
            await history_checked(link, self.known)
        except BaseException:
            await link.close()
            raise
        return link

    async def _writing(self) -> Link:
        if self._closed:
            raise Unavailable("the database is closed")
        if self._writer is not None and self._writer.server != self.known.server:
            await self._writer.close()
        if self._writer is None or self._writer.closed:
            self._writer = await self.open_writer()
        return self._writer

    async def _reading(self) -> Link:
        if self._closed:
            raise Unavailable("the database is closed")
        link = await Link.open(self._conninfo, _READER_SETTINGS)
        try:
            await server_known(link)
            if link.server != self.known.server:
                await self._check_server(link.server)
            if link.server != self.known.server:
                raise Lost("read: the server changes; try again")
        except BaseException:
            await link.close()
            raise
        return link

    async def _read_once(self, statements: Sequence[Prepared]) -> list[tuple[list[Row], int]]:
        """Read on a connection of the pool, or on a new one."""
        while self._idle:
            link = self._idle.pop()
            if link.server != self.known.server:
                await link.close()
                continue
            try:
                return await self._read_on(link, statements)
            except Lost:
                stale, self._idle = self._idle, []
                for link in stale:
                    await link.close()
        return await self._read_on(await self._reading(), statements)

    async def _read_on(
        self, link: Link, statements: Sequence[Prepared]
    ) -> list[tuple[list[Row], int]]:
        try:
            results = await link.run("read", statements)
        except BaseException:
            await link.close()
            raise
        if self._closed:
            await link.close()
        else:
            self._idle.append(link)
        return results


class PostgresTransaction:
    """A write transaction; it begins with its first statements. Implements `api.Transaction`."""

    def __init__(self, engine: PostgresEngine, link: Link) -> None:
        self._engine = engine
        self._link = link
        self._begun = False
        self._committing: asyncio.Future[None] | None = None
        self._taken: Mark | None = None
        """The revision that it has taken; None: none yet."""
        self.now: Instant | None = None

    async def run(self, plan: Plan[T], *, aside: bool = False) -> T:
        """Run a plan, round by round; computations for heavy statements run in a thread.

        Raises Conflict, Unavailable.
        """
        if self._engine.known.newer:
            plan = kept(plan)
        found = await _worked(aside, advanced, plan, None)
        while not isinstance(found, Done):
            aside = aside or weight(found) > HEAVY
            rows = await self._round(found, aside)
            found = await _worked(aside, advanced, plan, rows)
        return found.answer

    async def _round(self, statements: Sequence[Statement], aside: bool) -> list[list[Row]]:
        first = [] if self._begun else [_BEGIN]
        self._begun = True
        sent = [*first, *await _worked(aside, _prepared_all, statements), _NOW]
        try:
            results = await self._link.run("write", sent, _seconds_max(statements))
        except Lost as lost:
            # Nothing was committed, so the whole batch may be tried again.
            raise Conflict(str(lost)) from lost
        # Read after the locks were taken, so it is later than the time of their previous holders.
        ((now, mark),) = results[-1][0]
        if mark != self._link.mark:
            await self._link.close()
            raise Unavailable(EXCHANGED)
        self.now = Instant(now)
        results = results[len(first) : -1]
        rows = [found for found, _ in results]
        check_there(statements, rows)
        self._taken = self._engine.known.taken(statements, rows) or self._taken
        for statement, (_, touched) in zip(statements, results, strict=True):
            if (
                isinstance(statement, Write)
                and statement.guarded
                and touched != len(statement.rows)
            ):
                raise Conflict(f"{statement.block}: a row was changed by somebody else")
        return rows

    async def commit(self) -> None:
        """Make everything durable. Continues even if the caller is cancelled.

        Raises Conflict: nothing was kept. Unavailable: the result is not known in time.
        """
        self._committing = asyncio.ensure_future(self._commit())
        await asyncio.shield(self._committing)

    async def _commit(self) -> None:
        receipt, link = Receipt(self.now), self._link
        link.committing = True
        try:
            revised = self._taken is not None
            await link.run("commit", [*receipt.statements(revised=revised), _COMMIT])
        except Lost:
            await receipt.ask(self._engine.open_writer)
        except StoreError:  # the server has refused it
            link.committing = False
            raise
        else:
            link.committing = False
            if link.warned:  # its wait for a standby was cancelled
                await receipt.ask(self._engine.open_writer)
        if self._taken is not None:
            self._engine.known.reached(self._taken)

    async def settle(self) -> None:
        """Roll back uncommitted changes; if that fails, close the connection.

        Waits first for a commit in progress, even if the caller is cancelled.
        """
        while self._committing is not None and not self._committing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._committing])
        if self._link.in_transaction:
            with suppress(StoreError):
                await self._link.run("roll back", [_ROLLBACK])
        if self._link.in_transaction:
            await self._link.close()


def _prepared_all(statements: Sequence[Statement]) -> list[Prepared]:
    return [prepared(one) for one in statements]


async def _worked(aside: bool, work: Callable[P, A], *args: P.args, **more: P.kwargs) -> A:
    """Call a function: directly, or in a thread."""
    if aside:
        return await asyncio.to_thread(work, *args, **more)
    return work(*args, **more)


def _seconds_max(statements: Sequence[Statement]) -> float | None:
    slow = any(one.block in _SLOW for one in statements)
    return ROUND_SLOW_SECONDS_MAX if slow else None


_SETTINGS = "SET jit = off; SET default_transaction_read_only = on; SET statement_timeout = '10min'"


class Moved(Exception):
    """The connected server is not the one whose history was checked."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.server = server


class LongReads:
    """Runs long plans in the calling thread; keeps its connections for reuse."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._idle: deque[Connection[Row]] = deque()

    def read(self, plan: Plan[T], server: str) -> T:
        """Run a plan in one snapshot of a server. Raises Unavailable, or Moved before it begins."""
        connection = self._begun(server)
        try:
            with translated("read"):
                answer = _drive(connection, plan)
                connection.commit()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    def close(self) -> None:
        """Close every connection; no read may be in progress."""
        while self._idle:
            self._idle.pop().close()

    def _begun(self, server: str) -> Connection[Row]:
        """Begin a transaction on an idle connection, or on a new one. Raises Moved."""
        while self._idle:
            connection = self._idle.pop()
            try:
                with translated("read"):
                    _check(connection, server)
            except (Lost, Moved):
                connection.close()  # dropped by the server, or connected to another one
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        with translated("connect"):
            connection = self._connected()
            try:
                _check(connection, server)
            except BaseException:
                connection.close()
                raise
        return connection

    def _connected(self) -> Connection[Row]:
        connection = psycopg.connect(self._conninfo, cursor_factory=RawCursor)
        try:
            connection.execute(_SETTINGS)
            connection.commit()
        except BaseException:
            connection.close()
            raise
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return cast(Connection[Row], connection)


def _check(connection: Connection[Row], server: str) -> None:
    """Check that this is the given server. Raises Moved."""
    (found,) = connection.execute(SERVED).fetchall()
    if found[0] != server:
        raise Moved(found[0])


def _drive(connection: Connection[Row], plan: Plan[T]) -> T:
    try:
        statements = next(plan)
        while True:
            rows = [_rows(connection, one) for one in statements]
            check_there(statements, rows)
            statements = plan.send(rows)
    except StopIteration as stop:
        return cast(T, stop.value)


def _rows(connection: Connection[Row], statement: Statement) -> list[Row]:
    text, params = prepared(statement)
    if isinstance(statement, Stream):
        # A server-side cursor: a client-side one would hold all rows in memory.
        with RawServerCursor(connection, "stream") as stream:
            stream.execute(cast(Any, text), params)
            while some := stream.fetchmany(ROWS_AT_A_TIME):
                statement.take(some)
        return []
    with connection.cursor() as cursor:
        cursor.execute(cast(Any, text), params)
        rows: list[Row] = []
        while some := cursor.fetchmany(ROWS_AT_A_TIME):
            rows += some
    return rows
