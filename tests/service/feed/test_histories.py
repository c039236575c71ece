"""Whatever happens between the steps of a look, the index ends with the rows of the database.

Histories are drawn: commits of peers and of the process, answers that arrive late, restores,
compaction, and looks whose statements run before or after any of these.
"""

import asyncio
import itertools
from collections import deque
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import CustomName
from moorage.core.service_time import When
from moorage.service.feed.followers import RoomFollowers
from moorage.service.feed.peer_changes import PeerChanges, Position
from moorage.store import changelog
from moorage.store.api import Plan
from moorage.store.changelog import Batch, changes_load
from moorage.store.encoding import encode
from moorage.store.formats import FORMAT

WINDOW = 3
"""Change rows that one look reads."""

ROUNDS = 30
"""Turns of the loop after which every task waits for a step of the test."""

NAMES = 7
"""So few that later commits change the same rows."""

Commit = tuple[Instant, dict[str, CustomName]]


class Database:
    """A database in memory: its history is a list of commits, each with some traits."""

    shared = True

    def __init__(self) -> None:
        self.epoch = 1
        self.compacted = 0
        self.history: list[Commit] = []
        self.restores = 0
        self._times = itertools.count(1)
        self._waiting: deque[asyncio.Future[None]] = deque()

    def commit(self, rows: int) -> Batch:
        """Commit some rows; return what was committed."""
        at = Instant(next(self._times))
        names = [f"CUSTOM_{(at + n) % NAMES}" for n in range(rows)]
        values = {name: CustomName(name, at, at) for name in names}
        self.history.append((at, values))
        return Batch(len(self.history), Changes(traits=dict(values)), at, [])

    def restore(self, lost: int) -> None:
        """Lose the last commits, and begin an epoch."""
        kept = max(self.compacted, len(self.history) - lost)
        del self.history[kept:]
        self.epoch += 1
        self.restores += 1

    def compact(self, kept: int) -> None:
        """Delete all change rows but those of the last commits."""
        self.compacted = max(self.compacted, len(self.history) - kept)

    def state(self, revision: int) -> dict[str, CustomName]:
        """Return the traits as of a revision."""
        return dict(itertools.chain(*(one.items() for _, one in self.history[:revision])))

    def at(self, revision: int) -> Instant | None:
        """Return when a revision was written; None if its rows were deleted."""
        return self.history[revision - 1][0] if self.compacted < revision <= self.now[1] else None

    @property
    def now(self) -> tuple[int, int]:
        """The epoch and the revision."""
        return self.epoch, len(self.history)

    async def look(self, plan: Plan[Any]) -> Any:
        """Run a look: its statement and its answer each wait for a step of the test."""
        ((_, (after, n, _, rows_max)),) = next(plan)
        await self.step()
        clock = (*self.now, self.compacted, FORMAT, None, self.at(after))
        rows = [
            (*clock, revision, number, at, "trait", key, encode(value))
            for revision, (at, values) in enumerate(self.history, 1)
            for number, (key, value) in enumerate(values.items())
            if revision > self.compacted and (revision, number) > (after, n)
        ]
        await self.step()
        with pytest.raises(StopIteration) as stop:
            plan.send([rows[:rows_max] or [(*clock, *[None] * 6)]])
        return stop.value.value

    async def step(self) -> None:
        """Wait until the test lets one more step happen."""
        self._waiting.append(asyncio.get_running_loop().create_future())
        await self._waiting[-1]

    def go_on(self) -> None:
        """Let the step that waits longest happen."""
        if self._waiting:
            self._waiting.popleft().set_result(None)

    async def history_checked(self) -> None:
        """Nothing to do: a restore begins an epoch at once."""

    def seen(self, epoch: int, revision: int, at: int | None) -> None:
        """Nothing to record."""


class Traits:
    """A room with a copy of the traits."""

    def __init__(self, database: Database, feed: PeerChanges) -> None:
        self.traits: dict[str, Any] = {}
        self._database, self._feed = database, feed
        feed.attach(self)

    async def apply(self, changes: Changes) -> None:
        """Apply a batch."""
        await asyncio.sleep(0)
        self.traits.update(changes.traits)

    async def load(self) -> None:
        """Read all rows."""
        await self._database.step()
        (epoch, revision), state = self._database.now, self._database.state(1 << 40)
        position = Position(epoch, revision, self._database.at(revision))
        await self._database.step()
        async with self._feed.handing_over:
            self.traits = state
            self._feed.restart(position)


class History:
    """A process whose steps the test decides."""

    def __init__(self) -> None:
        self.database = Database()
        engine: Any = self.database
        self.feed = PeerChanges(engine, RoomFollowers(), _no_time)
        self.room = Traits(self.database, self.feed)
        self._own: tuple[int, Batch] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def happens(self, step: str, count: int) -> None:
        """Let something happen, and everything that needs nothing else."""
        if step == "peer":
            self.database.commit(count)
        elif step == "own":
            await self._answered()
            self._own = self.database.epoch, self.database.commit(count)
        elif step == "answered":
            await self._answered()
        elif step == "search":
            self._tasks.append(asyncio.create_task(self._search()))
        elif step == "restore":
            self.database.restore(count)
        elif step == "compact":
            self.database.compact(count)
        else:
            self.database.go_on()
        for _ in range(ROUNDS):
            await asyncio.sleep(0)

    async def _answered(self) -> None:
        """Hand over the last commit of the process."""
        if self._own is not None:
            epoch, batch = self._own
            self._own = None
            when: Any = None
            await self.feed.committed(epoch, batch, None, None, when)

    async def _search(self) -> None:
        """Search; unless the database was restored meanwhile, all older commits are found."""
        (_, revision), restores = self.database.now, self.database.restores
        await self.feed.caught_up()
        if self.database.restores == restores:
            assert self.feed.position.revision >= revision
            assert self.room.traits == self.database.state(self.feed.position.revision)

    async def ends(self) -> None:
        """Search once more: all rows are found."""
        await self._answered()
        self._tasks.append(asyncio.create_task(self._search()))
        while not all(task.done() for task in self._tasks):
            await self.happens("step", 1)
        await asyncio.gather(*self._tasks)
        assert self.feed.position[:2] == self.database.now
        assert self.room.traits == self.database.state(self.database.now[1])


def _no_time(at: Instant) -> When:
    raise AssertionError("there are no pools")


STEPS = ("peer", "own", "answered", "search", "step", "step", "restore", "compact")

LOST = "search own answered restore peer peer step step"
"""A look begins, then a failover loses a commit of the process, in whose place is another one."""


def run(steps: list[tuple[str, int]]) -> None:
    """Let some steps happen, one after another."""

    async def scene() -> None:
        history = History()
        await history.happens("peer", 1)
        await history.ends()
        for step, count in steps:
            await history.happens(step, count)
        await history.ends()

    def windows(*place: int, kinds: Any) -> Plan[Any]:
        return changes_load(*place, rows_max=WINDOW, kinds=kinds)

    with pytest.MonkeyPatch.context() as short:
        short.setattr(changelog, "changes_load", windows)
        asyncio.run(scene())


@settings(max_examples=1_000)
@example([(step, 1) for step in LOST.split()])
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 4)), max_size=25))
def test_every_history_is_followed(steps: list[tuple[str, int]]) -> None:
    """The index ends with the rows of the database, and each search finds what was there."""
    run(steps)
