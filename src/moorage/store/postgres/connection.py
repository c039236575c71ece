"""One connection to PostgreSQL: opens it, runs statements, translates its errors."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Self, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, errors, generators, waiting
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

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
from moorage.store.postgres.arrays import arrays
from moorage.store.sql import blocks

T = TypeVar("T")

ROUND_SECONDS_MAX = 30.0
"""How long the server may take to answer one round of statements before it counts as lost."""

WAIT_SECONDS = 0.1
"""How often psycopg wakes up while it waits; its own default."""

ROUND_SLOW_SECONDS_MAX = 600.0
"""Instead of `ROUND_SECONDS_MAX` for a round that may write every row: to rename a class."""

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
# Plans must use the indexes, even if the tables were small when the plan was made.
_SETTINGS = """
SET plan_cache_mode = force_generic_plan;
SET jit = off;
SET lock_timeout = '15s';
SET idle_in_transaction_session_timeout = '20s';
SET moorage.session = '{mark}'
"""

SESSION = "current_setting('moorage.session', true)"
"""The mark of this session; another session behind the same connection lacks it."""

EXCHANGED = (
    "its connections change sessions, as with poolers in transaction mode, so that settings are "
    "lost; connect directly, or through a pooler in session mode"
)
"""The message for a connection whose sessions change."""

_TRY_AGAIN = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.QueryCanceled,
    errors.IntegrityError,
)
_TOO_MUCH = "53"
"""The SQLSTATE class of missing disk space, memory or connections."""
_PROGRAM_LIMIT = "54"
"""The SQLSTATE class of values that are too large; psycopg reports them as OperationalError."""
_OTHER_SESSION = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
_CHANGED = frozenset(
    {"0A000", "3F000", "42501", "42703", "42704", "42883", "42P01", "42P10", "XX000"}
)
"""SQLSTATEs of statements whose tables, keys or rights were removed or created again."""

ALWAYS_THERE = frozenset(
    {
        *("service_clock_load", "service_clock_lock"),
        *("clock_load", "clock_raise", "epoch_raise", "changes_load", "changes_window"),
        *("beginning_load", "admission_lock", "arrivals_load", "token_ends_load"),
        *("token_ends_raise", "import_load", "import_lock", "ledger_rows_count"),
    }
)
"""Statements that return at least one row on every ledger."""

NOT_WHOLE = "the tables are not as Moorage has made them; is somebody restoring the database?"


class Lost(Unavailable):
    """The connection broke: the statements in progress may or may not have been executed."""


def conninfo_of(url: str) -> str:
    """Complete an address with defaults. Raises ValueError if it is not a valid address."""
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
    """Return libpq's message about an address without the parts it quotes, which may be secret.

    Keeps the name of an invalid parameter, unless it may be the end of a password.
    """
    words, _, repeated = said.partition('"')
    before = url.partition("password=")[0]
    if words.startswith("invalid URI query parameter") and f"{repeated.rstrip(chr(34))}=" in before:
        return said
    return words.rstrip(" :")


def name_of(url: str) -> str:
    """Return `HOST/DATABASE` of an address, without secrets."""
    given = psycopg.conninfo.conninfo_to_dict(url)
    host = given.get("host") or given.get("hostaddr") or "localhost"
    return f"{host}/{given.get('dbname') or given.get('user') or ''}"


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Translate the driver's errors into those of the port. `doing` starts the message."""
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
    # libpq's own error for a broken connection may arrive as a result without an SQLSTATE.
    nameless = type(error) is psycopg.DatabaseError and not state
    if nameless or isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return Lost(f"{doing}: {said}")
    return None  # a bug in this program, not a condition of the server


Prepared = tuple[str, Sequence[str | bytes | None]]
"""A statement's text and its parameters: as `str` in the text format, as `bytes` in the binary."""


def prepared(statement: Statement) -> Prepared:
    """Return the text and parameters of a plan's statement; a write is one set statement."""
    text = blocks("postgres")[statement.block]
    if isinstance(statement, Write):
        return text, arrays(statement.block, statement.rows)
    return text, [None if value is None else str(value) for value in statement.params]


def _encoded(params: Sequence[str | bytes | None]) -> tuple[list[bytes | None], list[Format]]:
    """Return the values of parameters, and the format of each. Raises DataError: a NUL in one.

    libpq would cut a text there, and so look for another one.
    """
    if any(isinstance(one, str) and "\0" in one for one in params):
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return (
        [one.encode() if isinstance(one, str) else one for one in params],
        [Format.BINARY if isinstance(one, bytes) else Format.TEXT for one in params],
    )


def check_there(statements: Sequence[Statement], results: Sequence[Sequence[Row]]) -> None:
    """Raise Unavailable if a row is missing that every ledger has: a restore is in progress."""
    for statement, rows in zip(statements, results, strict=True):
        if not rows and statement.block in ALWAYS_THERE:
            raise Unavailable(f"{statement.block}: {NOT_WHOLE}")


class _Connection(AsyncConnection[Row]):
    """A connection that never asks the server to cancel a statement.

    psycopg does so when a task is cancelled. This would end a COMMIT that waits for a standby: it
    would become visible as committed, although a failover may lose it.
    """

    async def wait(
        self, gen: PQGen[T], interval: float = WAIT_SECONDS, timeout: float | None = None
    ) -> T:
        """Run a step of the protocol; if cancelled in the middle of it, close the connection."""
        more = {} if timeout is None else {"timeout": timeout}
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval, **more)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


def _answers(pgconn: PGconn, many: int) -> PQGen[list[PGresult]]:
    """Send a round up to its Sync; return the results of its commands.

    Nothing follows the Sync. The server would take it for the beginning of the next command, and
    then no longer apply `idle_in_transaction_session_timeout`: a process that is stopped there
    would keep its locks for ever.
    """
    yield from generators.send(pgconn)
    found: list[PGresult] = []
    for _ in range(many):
        found += yield from generators.fetch_many(pgconn)
        if pgconn.status != ConnStatus.OK:
            return found
    while True:  # what was deferred up to the Sync may fail there
        last = yield from generators.fetch_many(pgconn)
        if last and last[0].status == ExecStatus.PIPELINE_SYNC:
            return found
        found += last
        if pgconn.status != ConnStatus.OK:
            return found


class Link:
    """An open connection in autocommit mode: transactions need an explicit BEGIN."""

    def __init__(self, connection: AsyncConnection[Row]) -> None:
        self._connection = connection
        self.mark = secrets.token_hex(8)
        """The mark that is set in the server's session, see `SESSION`."""
        self.served_by: list[str] = []
        """The pid of the server's session and its start; empty if unknown."""
        self.server = ""
        """The server's identity, see `SERVED` in `commit.py`; empty if unknown."""
        self.committing = False
        """Whether a COMMIT was sent and not yet answered."""
        self.warned = False
        """Whether the server has sent a warning since the last statements were sent."""
        self._names: dict[str, bytes] = {}
        """The names of prepared statements in the session, by their texts."""
        self._prepared = 0
        """How many statements were prepared, perhaps in vain."""
        self._transformer = Transformer(connection)
        connection.add_notice_handler(self._noticed)

    @classmethod
    async def open(cls, conninfo: str, settings: str = "") -> Self:
        """Connect and apply the session's settings. Raises Unavailable."""
        with translated("connect"):
            connection = await _Connection.connect(
                conninfo, autocommit=True, prepare_threshold=None
            )
            link = cls(cast(AsyncConnection[Row], connection))
            try:
                text = _SETTINGS.format(mark=link.mark) + settings
                await connection.execute(cast(Any, text))
            except BaseException:
                await link.close()
                raise
        return link

    @property
    def closed(self) -> bool:
        """Whether the connection is closed or broken."""
        return self._connection.closed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, including a failed one."""
        return (
            not self.closed
            and self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        )

    async def run(
        self, doing: str, statements: Sequence[Prepared], seconds_max: float | None = None
    ) -> list[tuple[list[Row], int]]:
        """Send all statements at once; return the rows and the number of affected rows of each.

        `seconds_max` is `ROUND_SECONDS_MAX` by default. Raises Conflict, Lost (also on a timeout),
        Unavailable: the statements after the failed one were not executed. After Lost the
        connection is closed.
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
        # Directly on libpq: a pipeline of psycopg sends each statement by itself, which wakes the
        # server each time, and takes ten times as many calls.
        pgconn = self._connection.pgconn
        self.warned = False
        sending = [(text, *_encoded(params)) for text, params in statements]
        pgconn.enter_pipeline_mode()
        new: dict[str, bytes] = {}
        answers = []
        sent = 0
        for text, values, formats in sending:
            name = self._names.get(text) or new.get(text)
            if name is None:
                self._prepared += 1
                name = new[text] = b"moorage_%d" % self._prepared
                pgconn.send_prepare(name, text.encode())
                sent += 1
            pgconn.send_query_prepared(name, values, formats)
            answers.append(sent)
            sent += 1
        pgconn.pipeline_sync()
        results = await self._connection.wait(_answers(pgconn, sent))
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise self._error(result)
        pgconn.exit_pipeline_mode()
        self._names |= new
        found = [results[place] for place in answers]
        return [(await self._rows(result), result.command_tuples or 0) for result in found]

    def _error(self, result: PGresult) -> psycopg.Error:
        """Return the error of the first statement that failed; those after it were not executed."""
        pgconn = self._connection.pgconn
        if pgconn.status != ConnStatus.OK:
            return psycopg.OperationalError(result.get_error_message())
        pgconn.exit_pipeline_mode()
        return errors.error_from_result(result)

    async def _rows(self, result: PGresult) -> list[Row]:
        """Decode rows in parts, so that the event loop can run in between."""
        if result.status != ExecStatus.TUPLES_OK:
            return []
        rows = self._transformer
        rows.set_pgresult(result)
        many = result.ntuples
        found: list[Row] = rows.load_rows(0, min(many, ROWS_AT_A_TIME), tuple)
        for first in range(ROWS_AT_A_TIME, many, ROWS_AT_A_TIME):
            await asyncio.sleep(0)
            found += rows.load_rows(first, min(many, first + ROWS_AT_A_TIME), tuple)
        return found

    async def listen(self, channel: str) -> None:
        """Subscribe to the notifications of a channel. Raises Unavailable."""
        with translated("listen"):
            await self._connection.execute(cast(Any, f"LISTEN {channel}"))

    async def heard(self, seconds_max: float, counts: Callable[[str], bool]) -> bool:
        """Wait for a notification, at most this long; return whether there was one. Raises Lost.

        `counts`: whether one counts that the server's session with a pid has sent.
        """
        with translated("listen"):
            async with aclosing(self._connection.notifies(timeout=seconds_max)) as found:
                async for one in found:
                    if counts(str(one.pid)):
                        return True
        return False

    async def close(self) -> None:
        """Close the connection; uncommitted changes are lost."""
        with suppress(psycopg.Error, OSError):
            await self._connection.close()
