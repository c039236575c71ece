"""A database of OpenStack Placement that is written: empty before, complete afterwards.

Everything is one transaction, so that an export that is interrupted leaves an empty database.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy import URL, Connection
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from moorage.integrations.placement.addresses import shown
from moorage.integrations.placement.database import Snapshot, connected, engine_of, line_of
from moorage.integrations.placement.schemas import HEADS, tables_of
from moorage.integrations.placement.source_error import SourceError
from moorage.integrations.placement.values import is_custom

ROWS_AT_ONCE = 2_000
"""Rows of one statement."""

TIMED = ("created_at", "updated_at")

NAMED = ("resource_classes", "traits")
"""Tables that the original itself fills with the standard names of its release, when it starts."""


class Target:
    """One transaction on a database of the original, after `opened`."""

    def __init__(self, connection: Connection, kind: str, address: str, head: str) -> None:
        self._connection = connection
        self._kind = kind
        self.shown = address
        self.head = head
        self.keeps_microseconds = kind in ("postgresql", "sqlite")
        self.single_precision = kind in ("mysql", "mariadb")
        """Whether ratios are kept in single precision."""

    def is_empty(self) -> bool:
        """Return whether it has nothing but standard names."""
        return not any(True for _ in self.occupied())

    def occupied(self) -> Iterator[str]:
        """Yield the tables that have rows of somebody."""
        for table in tables_of(self.head):
            if table in NAMED:
                if any(is_custom(name) for name in self.names(table)):
                    yield table
            elif self._connection.scalar(sa.text(f"SELECT 1 FROM {table} LIMIT 1")):
                yield table

    def names(self, table: str) -> dict[str, int]:
        """Return the ids of resource classes or traits by their names."""
        rows = self._connection.execute(sa.text(f"SELECT name, id FROM {table}"))
        return {str(name): int(number) for name, number in rows}

    def write(self, table: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[int]:
        """Write rows, in their order; yield how many, part by part. Raises SourceError."""
        rest = iter(rows)
        statement: sa.Insert | None = None
        while part := list(islice(rest, ROWS_AT_ONCE)):
            if statement is None:
                statement = sa.insert(sa.table(table, *map(_column, part[0])))
            with _said(self.shown, table):
                self._connection.execute(statement, part)
            yield len(part)

    def continue_ids(self) -> None:
        """Let the original go on behind the ids that were written: PostgreSQL counts them apart."""
        if self._kind != "postgresql":
            return
        for table, columns in tables_of(self.head).items():
            if "id" in columns:
                self._connection.execute(
                    sa.text(
                        f"SELECT setval(pg_get_serial_sequence('{table}', 'id'),"
                        f" (SELECT max(id) FROM {table})) FROM {table} LIMIT 1"
                    )
                )

    def snapshot(self) -> Snapshot:
        """Return what is there now, with what was written."""
        return Snapshot(self._connection, self.head, self.shown)

    def commit(self) -> None:
        """Keep what was written. Raises SourceError."""
        with _said(self.shown, "COMMIT"):
            self._connection.commit()


def _column(name: str) -> sa.ColumnClause[Any]:
    return sa.column(name, sa.DateTime() if name in TIMED else None)


@contextmanager
def opened(url: URL) -> Iterator[Target]:
    """Yield a transaction, which is rolled back unless `commit` is called.

    Raises SourceError: the database cannot be reached, or has not the newest schema that we know.
    """
    kind = url.drivername.partition("+")[0]
    address = shown(url)
    engine = engine_of(url, kind, writes=True)
    try:
        with connected(engine, address) as connection:
            with _said(address, "schema"):
                head = _head(connection, address)
                _begin(connection, kind)
            yield Target(connection, kind, address, head)
            connection.rollback()
    finally:
        engine.dispose()


def _head(connection: Connection, address: str) -> str:
    """Return the head of the schema. Raises SourceError: it is none that can be written."""
    newest = list(HEADS)[-1]
    tables = set(sa.inspect(connection).get_table_names())
    heads: list[str] = []
    if "alembic_version" in tables:
        rows = connection.scalars(sa.text("SELECT version_num FROM alembic_version"))
        heads = [str(one) for one in rows]
    connection.rollback()
    if heads != [newest] or not tables >= tables_of(newest).keys():
        named = ", ".join(heads) or "none"
        raise SourceError(
            f"{address} needs the schema {newest}, of Placement {HEADS[newest]}; it has {named}:"
            " let `placement-manage db sync` of that release make it"
        )
    return newest


def _begin(connection: Connection, kind: str) -> None:
    if kind == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif kind != "postgresql":
        # The first resource class has the id 0, which otherwise stands for the next free id. What
        # does not fit is an error, never cut.
        modes = "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'"
        connection.exec_driver_sql(f"SET SESSION sql_mode = CONCAT_WS(',', @@sql_mode, {modes})")


@contextmanager
def _said(address: str, where: str) -> Iterator[None]:
    """Turn an error of the engine into a SourceError of one line, without statements."""
    try:
        yield
    except IntegrityError as error:
        raise SourceError(
            f"{address} cannot hold two rows of {where} that it takes for the same one, such as"
            f" names that differ in upper and lower case only: {line_of(error)}"
        ) from None
    except DataError as error:
        raise SourceError(f"{address} cannot hold a value of {where}: {line_of(error)}") from None
    except SQLAlchemyError as error:
        raise SourceError(f"{address} ({where}): {line_of(error)}") from None
