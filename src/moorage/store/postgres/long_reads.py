"""Long reads of PostgreSQL: in threads, on separate connections, some rows at a time.

This keeps the event loop free.
"""

from collections import deque
from typing import Any, TypeVar, cast

import psycopg
from psycopg import Connection, RawCursor, RawServerCursor

from moorage.store.api import ROWS_AT_A_TIME, Plan, Row, Statement, Stream
from moorage.store.postgres.commit import SERVED
from moorage.store.postgres.connection import Lost, check_there, prepared, translated

T = TypeVar("T")

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
