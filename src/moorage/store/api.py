"""The port between the rules and a database: statements as data, and the engines that run them.

A plan is a generator: it yields lists of statements and is sent one list of rows per statement.
It knows neither a connection nor an event loop, so the same plan runs on blocking and on
asynchronous engines.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from moorage.core.clock import Instant

T = TypeVar("T")
Row = tuple[Any, ...]


class Query(NamedTuple):
    """One statement that returns rows. `block` names it in the engine's .sql files."""

    block: str
    params: Sequence[Any] = ()


class Write(NamedTuple):
    """One statement run for every row of `rows`; a set statement on engines that support them.

    `guarded` requires that each row changes exactly one stored row; otherwise the engine raises
    `Conflict`, because another transaction changed the row between load and save.
    """

    block: str
    rows: Sequence[Row]
    guarded: bool = False


ROWS_AT_A_TIME = 2_000
"""Rows that are decoded in one go, during which no other thread runs: a few milliseconds."""


class Stream(NamedTuple):
    """One statement whose rows are passed to `take` in parts, so that they need not fit in memory.

    Only for plans run by `read_aside`; the plan itself is sent no rows for it.
    """

    block: str
    params: Sequence[Any]
    take: Callable[[list[Row]], None]


Statement = Query | Write | Stream

HEAVY = 40_000
"""Statements heavier than this run off the event loop: about a thousand keys or rows, some ten
milliseconds."""

ROW_WEIGHT = 40
"""The weight of a written row; a character of a set of keys weighs 1."""


def weight(statements: Sequence[Statement]) -> int:
    """Estimate the cost of statements, in characters of their parameters."""
    total = 0
    for one in statements:
        if isinstance(one, Write):
            total += ROW_WEIGHT * len(one.rows)
            continue
        for value in one.params:
            if isinstance(value, str):
                total += len(value)
    return total


def advanced(plan: "Plan[T]", rows: list[list[Row]] | None) -> "Sequence[Statement] | Done[T]":
    """Send a plan the rows of its last statements (None: start it); return its next statements."""
    try:
        return plan.send(rows)  # type: ignore[arg-type] # None starts it
    except StopIteration as stop:
        return Done(stop.value)


class Done(Generic[T]):
    """The result of a plan that has ended."""

    def __init__(self, answer: T) -> None:
        self.answer = answer


Plan = Generator[Sequence[Statement], list[list[Row]], T]


class StoreError(Exception):
    """The database could not do what was asked; the transaction was not committed."""


class Conflict(StoreError):
    """Another transaction was faster; load and decide the whole batch again."""


class Held(Conflict):
    """Other transactions held a row or a lock for too long. Nothing was committed."""


class Unavailable(StoreError):
    """The database is unreachable, full or broken: nothing was written; acknowledge nothing."""


class Outdated(Unavailable):
    """A newer release has written data that this one cannot read; upgrade this process."""


class Fatal(StoreError):
    """A write may or may not be durable, and reading it back cannot show which (a failed fsync).

    The process must exit without acknowledging anything; the next start recovers from the log.
    """


class Locked(StoreError):
    """Another process owns the database. The message is one line that names the lock."""


class Damaged(StoreError):
    """A stored value cannot be read. The message names it."""


class Unusable(StoreError):
    """This release cannot use the database: it is foreign, damaged, newer or altered.

    The message is one line that says what was found and what to do.
    """


class Transaction(Protocol):
    """One transaction of the writing connection; leaving its context without commit rolls back."""

    @property
    def now(self) -> Instant | None:
        """The database's time after the last statements of a plan; None if it has no clock."""
        ...

    async def run(self, plan: Plan[T], *, aside: bool = False) -> T:
        """Run a plan inside this transaction. Raises Conflict, Unavailable.

        `aside`: run the whole plan off the event loop, because it concerns many rows. Otherwise
        only statements heavier than `HEAVY`, and those after them, run there.
        """
        ...

    async def commit(self) -> None:
        """Make everything durable. Raises Conflict: nothing was kept; Unavailable, Fatal."""
        ...


class Engine(Protocol):
    """A database that is open and has the current schema."""

    name: str
    """For people: `sqlite PATH` or `postgresql HOST/DATABASE`."""

    shared: bool
    """Whether other processes may change the database at the same time."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin the one write transaction (SQLite: BEGIN IMMEDIATE)."""
        ...

    async def read(self, plan: Plan[T]) -> T:
        """Run a short, read-only plan that yields once, on another connection, in one snapshot."""
        ...

    async def look(self, plan: Plan[T]) -> T:
        """Like `read`, but ahead of all other reads: for queries that they all wait for."""
        ...

    async def read_aside(self, plan: Plan[T], *, slow: bool = False) -> T:
        """Like `read`, but for long plans: runs off the event loop.

        `slow`: for plans that read everything and take seconds; other long plans do not wait for
        them.
        """
        ...

    async def woken(self, seconds_max: float) -> None:
        """Wait until another process may have changed something, at most `seconds_max` seconds.

        Only a hint, and only if the database is shared. Raises Unavailable.
        """
        ...

    def seen(self, epoch: int, revision: int, at: int | None) -> None:
        """Record that a revision, written at time `at`, was seen to be committed."""
        ...

    async def history_checked(self) -> None:
        """Begin a new epoch if a known revision is missing: an earlier state was restored.

        Raises Unavailable.
        """
        ...

    async def backup(self, path: str) -> None:
        """Write a complete copy to a new file at `path` while the service keeps running."""
        ...

    async def close(self) -> None:
        """Release everything: connections, threads, the lock on the file."""
        ...
