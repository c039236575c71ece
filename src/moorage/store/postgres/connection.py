"""One connection to PostgreSQL: how it is opened, how statements run, what its errors mean."""

import asyncio
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar, cast

import psycopg
from psycopg import (
    AsyncConnection,
    AsyncCursor,
    AsyncPipeline,
    AsyncRawCursor,
    errors,
    generators,
    waiting,
)
from psycopg.abc import PQGen

from moorage.store.addresses import is_unescaped
from moorage.store.api import (
    ROWS_AT_A_TIME,
    Conflict,
    Held,
    Row,
    Statement,
    StoreError,
    Unavailable,
    Write,
)
from moorage.store.sql import blocks

T = TypeVar("T")

ROUND_SECONDS_MAX = 30.0
"""How long the server may take to answer one round of statements before it counts as gone."""

WAIT_SECONDS = 0.1
"""How often psycopg looks up while it waits; its own default."""

ROUND_SLOW_SECONDS_MAX = 600.0
"""The same for a round that may write every row: to rename a class."""

STATEMENTS_PREPARED_MAX = 200

_DEFAULTS = {
    "application_name": "moorage",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "target_session_attrs": "read-write",
    "client_encoding": "UTF8",
}
# Rows are found by their keys, however small the tables were when a plan was made.
_SETTINGS = """
SET plan_cache_mode = force_generic_plan;
SET jit = off;
SET lock_timeout = '15s';
SET idle_in_transaction_session_timeout = '20s';
SET moorage.session = '{mark}'
"""

SESSION = "current_setting('moorage.session', true)"
"""What the session remembers; another one behind the same connection does not."""

EXCHANGED = (
    "its connections change sessions, as with poolers in transaction mode, so that settings are "
    "lost; connect directly, or through a pooler in session mode"
)
"""What to say of a server that cannot be used for that reason."""

_TRY_AGAIN = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.QueryCanceled,
    errors.IntegrityError,
)
_TOO_MUCH = "53"
"""The class of errors for want of disk, memory or connections."""
_PROGRAM_LIMIT = "54"
"""The class of errors for what is too large to be kept; the driver takes them for broken lines."""
_OTHER_SESSION = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
_CHANGED = frozenset(
    {"0A000", "3F000", "42501", "42703", "42704", "42883", "42P01", "42P10", "XX000"}
)
"""What statements meet whose tables, keys or rights somebody takes away or makes anew."""

ALWAYS_THERE = frozenset(
    {
        *("clock_load", "clock_raise", "epoch_raise", "changes_load", "changes_window"),
        *("beginning_load", "admission_lock", "timeline_load", "token_ends_load"),
    }
)
"""Statements that return at least one row, whatever a ledger holds."""

NOT_WHOLE = "the tables are not as Moorage has made them; is somebody restoring the database?"


class Lost(Unavailable):
    """The connection broke: what was under way may have been done or not."""


def conninfo_of(url: str) -> str:
    """Complete an address with what it does not say. Raises ValueError for none."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise ValueError(_without_secret(str(error).strip(), url)) from None
    if is_unescaped(url, str(given.get("password"))):
        raise ValueError(
            "in its password, characters such as / and @ must be written as %2F and %40"
        )
    return psycopg.conninfo.make_conninfo("", **{**_DEFAULTS, **given})


def _without_secret(said: str, url: str) -> str:
    """Return what libpq says of an address without what it repeats of it, which may be secret.

    The name of a parameter is told, if it is not what a password ends with.
    """
    words, _, repeated = said.partition('"')
    before = url.partition("password=")[0]
    if words.startswith("invalid URI query parameter") and f"{repeated.rstrip(chr(34))}=" in before:
        return said
    return words.rstrip(" :")


def name_of(url: str) -> str:
    """Return `HOST/DATABASE` of an address, without what is secret in it."""
    given = psycopg.conninfo.conninfo_to_dict(url)
    host = given.get("host") or given.get("hostaddr") or "localhost"
    return f"{host}/{given.get('dbname') or given.get('user') or ''}"


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn the driver's errors into those of the port. `doing` starts the message."""
    try:
        yield
    except psycopg.Error as error:
        found = _translate(doing, error)
        if found is None:
            raise
        raise found from error
    except (TimeoutError, OSError) as error:
        raise Lost(f"{doing}: the server does not answer: {error}") from error


def _translate(doing: str, error: psycopg.Error) -> StoreError | None:
    said = str(error).strip().split("\n", 1)[0]
    if isinstance(error, errors.LockNotAvailable):
        return Held(f"{doing}: {said}")
    if isinstance(error, _TRY_AGAIN):
        return Conflict(f"{doing}: {said}")
    state = error.sqlstate or ""
    if state.startswith(_TOO_MUCH) or isinstance(error, errors.ReadOnlySqlTransaction):
        return Unavailable(f"{doing}: {said}")
    if state.startswith(_PROGRAM_LIMIT):
        return None
    if state in _CHANGED:
        return Unavailable(f"{doing}: {NOT_WHOLE} ({said})")
    if isinstance(error, _OTHER_SESSION):
        return Lost(f"{doing}: {EXCHANGED} ({said})")
    # What libpq itself says of a line that breaks may come as an answer without a state.
    nameless = type(error) is psycopg.DatabaseError and not state
    if nameless or isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return Lost(f"{doing}: {said}")
    return None  # A mistake in this program; no state of the server explains it.


Prepared = tuple[str, Sequence[str | None]]
"""A statement's text and its parameters, as PostgreSQL reads them."""


def prepared(statement: Statement) -> Prepared:
    """Return what a statement of a plan is to the server: one statement for all rows of a write."""
    text = blocks("postgres")[statement.block]
    if isinstance(statement, Write):
        return text, [_array(column) for column in zip(*statement.rows, strict=True)]
    return text, [None if value is None else str(value) for value in statement.params]


def check_there(statements: Sequence[Statement], results: Sequence[Sequence[Row]]) -> None:
    """Raise Unavailable if a row is missing that every ledger has: it is being restored."""
    for statement, rows in zip(statements, results, strict=True):
        if not rows and statement.block in ALWAYS_THERE:
            raise Unavailable(f"{statement.block}: {NOT_WHOLE}")


def _array(values: Iterable[Any]) -> str:
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


class _Connection(AsyncConnection[Row]):
    """A connection that never asks the server to cancel what it does.

    psycopg does when a task is cancelled. A COMMIT that waits for a standby would end then: as
    committed, for everybody to see, though a failover may take it back.
    """

    async def wait(
        self, gen: PQGen[T], interval: float = WAIT_SECONDS, timeout: float | None = None
    ) -> T:
        """Run a step of the protocol; who is interrupted in it leaves the connection behind."""
        more = {} if timeout is None else {"timeout": timeout}
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval, **more)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


class _Round(AsyncPipeline):
    """A pipeline that ends with its Sync, not with a Flush after it, as psycopg's own may.

    The server takes whatever comes after a Sync for the next command, and no longer ends those who
    fall silent in a transaction: who is stopped there would keep its locks from everybody for good.
    """

    def _exit_gen(self) -> PQGen[None]:
        self._enqueue_sync()
        try:
            yield from self._communicate_gen()
        finally:
            if self.pgconn.status == psycopg.pq.ConnStatus.OK:  # else nothing more is to be had
                # What the socket did not take at once: the server waits for the rest of it.
                yield from generators.send(self.pgconn)
                yield from self._fetch_gen(flush=False)


async def _fetched(cursor: AsyncCursor[Row]) -> list[Row]:
    """Turn rows into Python's values, some at a time: the event loop goes on in between."""
    found = await cursor.fetchmany(ROWS_AT_A_TIME)
    some = found
    while len(some) == ROWS_AT_A_TIME:
        await asyncio.sleep(0)
        some = await cursor.fetchmany(ROWS_AT_A_TIME)
        found += some
    return found


class Link:
    """A connection that is open, in autocommit mode: whoever needs a transaction begins one."""

    def __init__(self, connection: AsyncConnection[Row]) -> None:
        self._connection = connection
        self.mark = secrets.token_hex(8)
        """What the session behind it was told to remember, see `SESSION`."""
        self.served_by: list[str] = []
        """The process of the server behind it, and its start; empty: nobody has asked."""
        self.server = ""
        """Which server answers, see `postgres_commit.SERVED`; empty: nobody has asked."""
        self.committing = False
        """Has a COMMIT been sent, and nothing been heard of it?"""
        self.warned = False
        """Has the server warned of something since the last statement was sent?"""
        connection.add_notice_handler(self._noticed)

    @classmethod
    async def open(cls, conninfo: str, settings: str = "") -> Self:
        """Connect, with the session's settings. Raises Unavailable."""
        with translated("connect"):
            connection = await _Connection.connect(
                conninfo,
                autocommit=True,
                prepare_threshold=0,
                cursor_factory=AsyncRawCursor,
            )
            connection.prepared_max = STATEMENTS_PREPARED_MAX
            link = cls(cast(AsyncConnection[Row], connection))
            try:
                text = _SETTINGS.format(mark=link.mark) + settings
                await connection.execute(cast(Any, text), prepare=False)
            except BaseException:
                await link.close()
                raise
        return link

    @property
    def closed(self) -> bool:
        """Is it of no more use?"""
        return self._connection.closed

    @property
    def in_transaction(self) -> bool:
        """Is a transaction open, be it a failed one?"""
        return (
            not self.closed
            and self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        )

    async def run(
        self, doing: str, statements: Sequence[Prepared], seconds_max: float | None = None
    ) -> list[tuple[list[Row], int]]:
        """Send all statements at once; return the rows of each, and how many it touched.

        By default `seconds_max` is `ROUND_SECONDS_MAX`. Raises Conflict, Lost (also after that),
        Unavailable; then nothing after the failed statement was done, and after Lost the connection
        is closed.
        """
        try:
            with translated(doing):
                async with asyncio.timeout(seconds_max or ROUND_SECONDS_MAX):
                    return await self._run(statements)
        except (Conflict, psycopg.Error):
            raise
        except BaseException:
            await self.close()
            raise

    def _noticed(self, notice: errors.Diagnostic) -> None:
        self.warned |= notice.severity_nonlocalized == "WARNING"

    async def _run(self, statements: Sequence[Prepared]) -> list[tuple[list[Row], int]]:
        connection = self._connection
        self.warned = False
        if len(statements) == 1:
            ((text, params),) = statements
            cursors = [await connection.execute(cast(Any, text), params)]
        else:
            async with connection.pipeline() as pipeline:
                pipeline.__class__ = _Round  # psycopg lets nobody choose another
                cursors = [
                    await connection.execute(cast(Any, text), params) for text, params in statements
                ]
        return [
            (await _fetched(cursor) if cursor.description else [], cursor.rowcount)
            for cursor in cursors
        ]

    async def listen(self, channel: str) -> None:
        """Begin to hear what is notified on a channel. Raises Unavailable."""
        with translated("listen"):
            await self._connection.execute(cast(Any, f"LISTEN {channel}"), prepare=False)

    async def heard(self, seconds_max: float) -> bool:
        """Wait for a notification, at most so long; was there one? Raises Lost."""
        with translated("listen"):
            found = [
                one async for one in self._connection.notifies(timeout=seconds_max, stop_after=1)
            ]
        return bool(found)

    async def close(self) -> None:
        """Let it go; what was not committed is lost."""
        with suppress(psycopg.Error, OSError):
            await self._connection.close()
