"""The port between the rules and a database: statements as data, and who runs them.

A plan is a generator: it yields lists of statements and is sent one list of rows per statement.
It knows neither a connection nor an event loop, so nothing is written twice for engines that wait
and engines that do not.
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
    """One statement run for every row of `rows`; a set statement where the engine has them.

    `guarded` demands that each row changes exactly one stored row; otherwise the engine raises
    `Conflict`, because somebody else was there between load and save.
    """

    block: str
    rows: Sequence[Row]
    guarded: bool = False


ROWS_AT_A_TIME = 2_000
"""Rows that are turned into values in one go, while no other thread may run: some milliseconds."""


class Stream(NamedTuple):
    """One statement whose rows are handed to `take` some at a time, so that all need no room.

    Only for plans that are read aside; the plan itself is sent no rows for it.
    """

    block: str
    params: Sequence[Any]
    take: Callable[[list[Row]], None]


Statement = Query | Write | Stream

HEAVY = 40_000
"""Weight from which on statements are not run on the event loop: about a thousand keys or rows,
some ten milliseconds."""

ROW_WEIGHT = 40
"""A row that is written weighs as much as so many characters of a set of keys."""


def weight(statements: Sequence[Statement]) -> int:
    """Return about how much work statements are: characters of what is asked for."""
    total = 0
    for one in statements:
        if isinstance(one, Write):
            total += ROW_WEIGHT * len(one.rows)
        else:
            total += sum([len(value) for value in one.params if isinstance(value, str)])
    return total


def advanced(plan: "Plan[T]", rows: list[list[Row]] | None) -> "Sequence[Statement] | Done[T]":
    """Send a plan the rows it has asked for (None: begin it); return what it asks for next."""
    try:
        return plan.send(rows)  # type: ignore[arg-type] # None begins it
    except StopIteration as stop:
        return Done(stop.value)


class Done(Generic[T]):
    """The answer of a plan that has ended."""

    def __init__(self, answer: T) -> None:
        self.answer = answer


Plan = Generator[Sequence[Statement], list[list[Row]], T]


class StoreError(Exception):
    """The database could not do what was asked. Nothing of the transaction is kept."""


class Conflict(StoreError):
    """Another transaction was faster; the whole batch may be loaded and decided again."""


class Held(Conflict):
    """Others have held for too long what is needed: a row, a lock. Nothing was kept."""


class Unavailable(StoreError):
    """The database is away, full or broken: nothing was written, nothing may be acknowledged."""


class Outdated(Unavailable):
    """A newer release has written what this one does not understand; it must be upgraded."""


class Fatal(StoreError):
    """A write may or may not be durable and asking again cannot tell (a failed fsync).

    The process must end without acknowledging anything; the next start recovers from the log.
    """


class Locked(StoreError):
    """Another process owns the database. The message is one line that names the lock."""


class Unusable(StoreError):
    """This release cannot work with what is there: foreign, damaged, newer or altered.

    The message is one line that says what was found and what to do.
    """


class Transaction(Protocol):
    """One transaction of the writing connection. Leaving its context without commit rolls back."""

    @property
    def now(self) -> Instant | None:
        """The database's time after the last statements of a plan; None: it has no clock."""
        ...

    async def run(self, plan: Plan[T], *, aside: bool = False) -> T:
        """Run a plan inside this transaction. Raises Conflict, Unavailable.

        `aside`: the plan is about so many rows that all of it runs off the event loop. What turns
        out to be heavy (`weight`) goes there by itself.
        """
        ...

    async def commit(self) -> None:
        """Make everything durable. Raises Conflict, Unavailable, Fatal; then nothing is kept."""
        ...


class Engine(Protocol):
    """A database that is open and has the current schema."""

    name: str
    """For people: `sqlite PATH` or `postgresql HOST/DATABASE`."""

    shared: bool
    """May other processes change the database meanwhile?"""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin the one write transaction (SQLite: BEGIN IMMEDIATE)."""
        ...

    async def read(self, plan: Plan[T]) -> T:
        """Run a short, read-only plan that yields once, on another connection, in one snapshot."""
        ...

    async def look(self, plan: Plan[T]) -> T:
        """As `read`, ahead of all others who read: for what each of them waits for."""
        ...

    async def read_aside(self, plan: Plan[T], *, slow: bool = False) -> T:
        """As `read`, for long plans: off the event loop, so that nobody waits behind it.

        `slow`: it reads everything, for seconds; the others do not wait behind it, either.
        """
        ...

    async def woken(self, seconds_max: float) -> None:
        """Wait until another process may have changed something; only a hint, and only if shared.

        Raises Unavailable.
        """
        ...

    def seen(self, epoch: int, revision: int, at: int | None) -> None:
        """Remember that a revision, written at some time, was found to be committed."""
        ...

    async def history_checked(self) -> None:
        """Begin a new epoch if a revision that is known is not there any more: it was put back.

        Raises Unavailable.
        """
        ...

    async def backup(self, path: str) -> None:
        """Write a complete copy to a new file at `path` while the service goes on."""
        ...

    async def close(self) -> None:
        """Give everything back: connections, threads, the lock on the file."""
        ...
