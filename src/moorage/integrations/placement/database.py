"""Reads a database of OpenStack Placement: one snapshot, read only, whichever engine it has."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from moorage.integrations.placement.addresses import shown
from moorage.integrations.placement.schemas import HEADS, UNORDERED, tables_of
from moorage.integrations.placement.source_error import SourceError

ROWS_AT_ONCE = 5_000
"""Rows that a read holds in memory."""

SECONDS_MAX = 20
"""How long to wait for a connection."""

LINE_MAX = 300
"""Characters of an engine's own message."""

_OPTION = re.compile(r"unexpected keyword argument '(\w+)'")
"""What Python says of an option in an address that the driver does not have."""

_WRITES = frozenset(["ALL PRIVILEGES", "INSERT", "UPDATE", "DELETE", "DROP", "ALTER", "CREATE"])


class Snapshot:
    """All tables as they were at one moment."""

    def __init__(self, connection: Connection, head: str, address: str) -> None:
        self._connection = connection
        self._shown = address
        self.head = head
        """The head of the alembic history: which schema it is."""
        self.tables = tables_of(head)

    def count(self, table: str) -> int:
        """Return the number of rows."""
        with _translated(self._shown):
            found = self._connection.scalar(sa.select(sa.func.count()).select_from(sa.table(table)))
        return int(found or 0)

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows with the columns of `schemas`, by their ids; none if it has no such table.

        Values are as the driver gives them: a type would end the read at the first odd one.
        """
        for part in self._parts(table):
            yield from map(tuple, part)

    def _parts(self, table: str) -> Iterator[Sequence[Any]]:
        columns = self.tables.get(table)
        if columns is None:
            return
        those = sa.table(table, *map(sa.column, columns))
        asked = sa.select(*those.c)
        asked = asked.order_by(*(list(those.c) if table in UNORDERED else [those.c.id]))
        with _translated(self._shown):
            found = self._connection.execution_options(yield_per=ROWS_AT_ONCE).execute(asked)
            yield from found.partitions(ROWS_AT_ONCE)

    def mark(self) -> str | None:
        """Return what tells this state from all others; None: the engine cannot compute it.

        It is the sum of digests of all rows, which the engine computes in a fraction of the time
        that it takes to read them. SQLite has no digests, so there it is that of the rows read.
        """
        kind = self._connection.dialect.name
        if kind not in _DIGESTS:
            digest = blake2b(digest_size=32)
            for table in self.tables:
                for part in self._parts(table):
                    digest.update(repr(part).encode("utf-8", "surrogatepass"))
            return digest.hexdigest()
        found: list[str] = []
        for table, columns in self.tables.items():
            asked = f"SELECT count(*), sum({_DIGESTS[kind](columns)}) FROM {table}"
            with _translated(self._shown):
                count, digest = self._connection.exec_driver_sql(asked).one()
            if count and digest is None:
                return None
            found.append(f"{table} {count} {digest}")
        return "; ".join(found)


def _mysql_digest(columns: tuple[str, ...]) -> str:
    text = f"md5(concat_ws(',', {', '.join(f'quote({one})' for one in columns)}))"
    return f"cast(conv(left({text}, 16), 16, 10) AS unsigned)"


def _postgresql_digest(columns: tuple[str, ...]) -> str:
    return f"hashtextextended(row({', '.join(columns)})::text, 1)"


_DIGESTS = {
    "mysql": _mysql_digest,
    "mariadb": _mysql_digest,
    "postgresql": _postgresql_digest,
}
"""Returns a number of 64 bits that depends on all columns of a row."""


class Database:
    """A database of the original, which is never written to."""

    def __init__(self, url: URL) -> None:
        """Prepare to read; does not connect. Raises SourceError; ImportError: no driver."""
        self.shown = shown(url)
        self._kind = url.drivername.partition("+")[0]
        self._engine = engine_of(url, self._kind)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Yield a snapshot. Raises SourceError: it cannot be reached, or has another schema."""
        with connected(self._engine, self.shown) as connection, _translated(self.shown):
            self._begin(connection)
            head = self._head(connection)
            snapshot = Snapshot(connection, head, self.shown)
            self._check_columns(connection, snapshot)
            yield snapshot
            connection.rollback()

    def _begin(self, connection: Connection) -> None:
        """Begin a transaction that reads the state of one moment, and cannot write."""
        if self._kind == "postgresql":
            connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        elif self._kind == "sqlite":
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")  # it begins here
        else:
            if _session_variable(connection, "wsrep_on") == "ON":
                # A node of Galera may not yet have what another one has confirmed.
                connection.exec_driver_sql("SET SESSION wsrep_sync_wait = 1")
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def _head(self, connection: Connection) -> str:
        there = set(sa.inspect(connection).get_table_names())
        if "alembic_version" not in there or "resource_providers" not in there:
            older = "migrate_version" in there
            why = "it is nova's of a release before Stein: move it with nova's own" if older else ""
            raise SourceError(
                f"{self.shown} is not a database of OpenStack Placement: it has no table"
                f" alembic_version beside resource_providers"
                + (f"; {why} mysql-migrate-db.sh or postgresql-migrate-db.sh first" if why else "")
            )
        heads = connection.scalars(sa.text("SELECT version_num FROM alembic_version")).all()
        if len(heads) != 1 or heads[0] not in HEADS:
            if "cell_mappings" in there:
                raise SourceError(
                    f"{self.shown} is the database of nova's API: take the address in the section"
                    " [placement_database] of placement.conf"
                )
            named = ", ".join(f"'{head}'" for head in heads) or "nothing"
            known = "; ".join(f"{head}: Placement {made}" for head, made in HEADS.items())
            raise SourceError(
                f"the schema of {self.shown} is unknown: alembic_version has {named}; known are"
                f" {known}"
            )
        return str(heads[0])

    def _check_columns(self, connection: Connection, snapshot: Snapshot) -> None:
        """Refuse a schema that is not the one of its head, before anything is read of it."""
        inspector = sa.inspect(connection)
        there = set(inspector.get_table_names())
        for table, columns in snapshot.tables.items():
            has = {one["name"] for one in inspector.get_columns(table)} if table in there else set()
            if missing := [column for column in columns if column not in has]:
                raise SourceError(
                    f"{self.shown} is not as its alembic_version '{snapshot.head}' says: table"
                    f" {table} has no {', '.join(missing)}"
                )

    def may_write(self) -> bool:
        """Return whether the account could change the database. Raises SourceError."""
        with connected(self._engine, self.shown) as connection, _translated(self.shown):
            if self._kind == "sqlite":
                return False  # the connection itself cannot
            if self._kind == "postgresql":
                # By its number: without such a table it is no error, which a reading explains.
                asked = "SELECT has_table_privilege(to_regclass('allocations'), :what)"
                return bool(connection.scalar(sa.text(asked), {"what": "INSERT, UPDATE, DELETE"}))
            return any(
                _grants_writes(str(row[0])) for row in connection.exec_driver_sql("SHOW GRANTS")
            )

    def is_standby(self) -> bool:
        """Return whether it only repeats what another server has committed. Raises SourceError."""
        if self._kind != "postgresql":
            return False
        with connected(self._engine, self.shown) as connection, _translated(self.shown):
            return bool(connection.scalar(sa.text("SELECT pg_is_in_recovery()")))

    def is_read_only(self) -> bool:
        """Return whether nobody writes, as to a replica of MariaDB or MySQL. Raises SourceError."""
        if self._kind in ("postgresql", "sqlite"):
            return False
        with connected(self._engine, self.shown) as connection, _translated(self.shown):
            return _session_variable(connection, "read_only") not in (None, "OFF")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _session_variable(connection: Connection, name: str) -> str | None:
    """Return a variable of MariaDB or MySQL; None: this release has none of this name."""
    found = connection.exec_driver_sql(f"SHOW VARIABLES LIKE '{name}'").first()
    return None if found is None else str(found[1])


def _grants_writes(grant: str) -> bool:
    words = grant.removeprefix("GRANT ").partition(" ON ")[0]
    return any(word.strip() in _WRITES for word in words.split(","))


def engine_of(url: URL, kind: str, *, writes: bool = False) -> Engine:
    """Return what connects to a database; without `writes`, to read it. Raises SourceError."""
    options: dict[str, Any] = {"poolclass": sa.pool.NullPool}
    arguments: dict[str, Any] = {"connect_timeout": SECONDS_MAX}
    if kind == "sqlite":
        # `mode`: SQLite itself refuses to make a file that is not there, and with `ro` to write.
        query = {"mode": "rw" if writes else "ro", "uri": "true"}
        url = url.set(database=f"file:{_quoted(str(url.database))}", query=query)
        arguments = {"timeout": SECONDS_MAX}
    elif kind == "postgresql":
        # Behind PgBouncer, each transaction may be on another session, with other statements.
        arguments["prepare_threshold"] = None
    else:
        if "charset" not in url.query:
            url = url.update_query_dict({"charset": "utf8mb4"})
        if not writes:
            arguments["conv"] = _conversions()
    if not writes and kind != "postgresql":
        options["isolation_level"] = "AUTOCOMMIT"
    try:
        engine = sa.create_engine(url, connect_args=arguments, **options)
    except (SQLAlchemyError, TypeError, ValueError) as error:
        raise SourceError(f"cannot open {shown(url)}: {line_of(error)}") from None
    if kind == "postgresql" and not writes:
        _keep_odd_times(engine)
    return engine


def _keep_odd_times(engine: Engine) -> None:
    """Get times that Python has not, such as infinity, as texts: psycopg would end the reading."""
    from psycopg import DataError
    from psycopg.abc import Buffer
    from psycopg.types.datetime import TimestampLoader, TimestamptzLoader

    class Plain(TimestampLoader):
        def load(self, data: Buffer) -> Any:
            try:
                return super().load(data)
            except DataError:
                return bytes(data).decode()

    class Zoned(TimestamptzLoader):
        def load(self, data: Buffer) -> Any:
            try:
                return super().load(data)
            except DataError:
                return bytes(data).decode()

    @sa.event.listens_for(engine, "connect")
    def register(connection: Any, _record: Any) -> None:
        connection.adapters.register_loader("timestamp", Plain)
        connection.adapters.register_loader("timestamptz", Zoned)


def _conversions() -> dict[Any, Any]:
    """Return PyMySQL's, but leave times as texts: Python reads them in a tenth of the time."""
    from pymysql.constants import FIELD_TYPE
    from pymysql.converters import conversions

    times = (FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP)
    return {of: how for of, how in conversions.items() if of not in times}


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


@contextmanager
def connected(engine: Engine, address: str) -> Iterator[Connection]:
    """Yield a connection. Raises SourceError: there is none, or an option is not the driver's."""
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        raise SourceError(f"cannot connect to {address}: {line_of(error)}") from None
    except TypeError as error:
        option = _OPTION.search(str(error))
        if option is None:
            raise
        raise SourceError(
            f"cannot connect to {address}: the driver {engine.driver} has no option"
            f" '{option[1]}'; leave it out of the address"
        ) from None
    except OSError as error:
        raise SourceError(
            f"cannot connect to {address}: a file that an option names, such as ssl_ca, cannot be"
            f" used: {error.strerror or error}"
        ) from None
    except RuntimeError as error:  # PyMySQL, for a way of proving a password that needs more
        if "cryptography" not in str(error):
            raise
        raise SourceError(
            f"{line_of(error)}: pip install 'pymysql[rsa]', or use TLS (?ssl_ca=FILE)"
        ) from None
    with connection:
        yield connection


@contextmanager
def _translated(address: str) -> Iterator[None]:
    """Turn an error of the engine into a SourceError of one line, without the statement."""
    try:
        yield
    except SQLAlchemyError as error:
        raise SourceError(f"cannot read {address}: {line_of(error)}") from None


def line_of(error: Exception) -> str:
    """Return an engine's own message in one line, without the statement."""
    cause = getattr(error, "orig", None) or error
    match cause.args:
        case (int(number), str(text)) if not isinstance(cause, OSError):  # PyMySQL's
            return " ".join(f"{text} ({number})".split())[:LINE_MAX]
    return " ".join(str(cause).split())[:LINE_MAX]
