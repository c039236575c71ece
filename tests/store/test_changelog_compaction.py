"""Rows kept for a limited time: change rows, audit rows, receipts. Never too many are deleted."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import TypeVar

import psycopg
import pytest

from moorage.core.clock import Instant
from moorage.store import changelog, changelog_compaction
from moorage.store.access.audit import AuditRow, audit_forget, audit_insert, audit_window
from moorage.store.api import Engine, Plan, Query
from moorage.store.changelog import changes_insert
from moorage.store.changelog_compaction import ChangelogRetention
from moorage.store.open import open_engine
from moorage.store.receipts import FIRST, receipts_forget
from tests.support import cluster
from tests.support.cluster import ask

T = TypeVar("T")

END = Instant(1 << 60)


async def run_plan(engine: Engine, plan: Plan[T]) -> T:
    """Run a plan in its own transaction."""
    async with engine.transaction() as transaction:
        answer = await transaction.run(plan)
        await transaction.commit()
    return answer


def revision_new(at: int, rows: int) -> Plan[None]:
    """Raise the revision, with this many change rows."""
    told = [("trait", f"CUSTOM_{n}", None) for n in range(rows)]
    yield [Query("clock_raise", (at,)), changes_insert(told, Instant(at))]


def recorded(plan: Plan[T], asked: list[str]) -> Plan[T]:
    """Run a plan, and record the names of its statements."""
    try:
        statements = next(plan)
        while True:
            asked += [one.block for one in statements]
            statements = plan.send((yield statements))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


class History:
    """The written rows as the test knows them: (time, rows) of each revision from the first on."""

    def __init__(self) -> None:
        self.written: list[tuple[int, int]] = []
        self.compacted = 0

    @property
    def revision(self) -> int:
        return len(self.written)

    def rows(self, mark: int) -> int:
        """Return the number of rows after a mark."""
        return sum(rows for _, rows in self.written[mark:])

    def older(self, since: int) -> int:
        """Return the newest revision that was written before a time."""
        return sum(at < since for at, _ in self.written)

    def check(self, mark: int, since: int, keep: ChangelogRetention) -> None:
        """A mark keeps the required rows, and not many more."""
        assert self.compacted <= mark <= self.revision
        most = keep.rows_max
        small = most is None or self.rows(self.compacted) <= most
        if small and mark > self.compacted:
            assert mark <= self.older(since), "a recent row would be deleted"
            assert self.rows(mark) >= keep.rows_min, "too few rows would be kept"
        if most is not None and self.revision - mark > 2 * keep.block:
            assert self.rows(mark) <= most, "too many rows would be kept"
        next_block = min(mark + 2 * keep.block, self.revision)
        needless = next_block <= self.older(since) and self.rows(next_block) >= keep.rows_min
        assert not needless or next_block == mark, "rows would be kept without need"


@pytest.mark.parametrize("seed", range(6))
def test_any_history(engine: Engine, seed: int) -> None:
    """Required rows stay at any time, the rest is deleted, and nothing is counted twice."""

    async def scenario() -> None:
        choice, history, now = Random(seed), History(), 1_000
        keep = ChangelogRetention(choice.choice([4, 12, 40]), choice.choice([None, 60, 100]))
        for _ in range(8):
            for _ in range(choice.randrange(40)):
                now += choice.randrange(1, 5)
                rows = choice.choice([1, 1, 1, 2, 3, 9])
                await run_plan(engine, revision_new(now, rows))
                history.written.append((now, rows))
            since = now - choice.choice([0, 20, 60, 500])
            asked: list[str] = []
            plan = changelog_compaction.compaction_mark_load(Instant(since), keep)
            mark = await engine.read_aside(recorded(plan, asked))
            history.check(mark, since, keep)
            again: list[str] = []
            plan = changelog_compaction.compaction_mark_load(Instant(since), keep)
            assert await engine.read_aside(recorded(plan, again)) == mark
            assert again.count("changes_count") <= 2, "whole blocks were counted again"
            reached = -1
            while reached < mark:
                reached = await run_plan(engine, changelog_compaction.compact(mark, 7))
            history.compacted = max(history.compacted, mark)
            tail = await engine.read(changelog.changes_load(history.compacted, rows_max=10_000))
            assert tail.compacted == history.compacted
            assert len(tail.batches) == history.revision - history.compacted

    asyncio.run(scenario())


def test_the_newest_revisions_are_kept(engine: Engine) -> None:
    """They are kept even if they exceed `rows_max`: followers may not have read them yet."""

    async def scenario() -> None:
        for n in range(6):
            await run_plan(engine, revision_new(1_000 + n, 50))
        keep = ChangelogRetention(4, 10)
        plan = changelog_compaction.compaction_mark_load(Instant(0), keep)
        assert await engine.read_aside(plan) == 6 - keep.block

    asyncio.run(scenario())


def test_change_rows_are_bounded_in_bytes(engine: Engine) -> None:
    """Large rows go sooner, however few they are. The control: without the bound they stay."""

    async def scenario() -> None:
        for n in range(12):
            await run_plan(engine, revision_new(1_000 + n, 2))
        free = ChangelogRetention(8)
        plan = changelog_compaction.compaction_mark_load(Instant(0), free)
        assert await engine.read_aside(plan) == 0
        assert free.bytes > 12 * 2 * 60
        half = ChangelogRetention(8, bytes_max=free.bytes // 2)
        plan = changelog_compaction.compaction_mark_load(Instant(0), half)
        mark = await engine.read_aside(plan)
        assert 4 <= mark <= 8
        assert half.bytes <= free.bytes // 2

    asyncio.run(scenario())


def test_another_history_is_counted_anew() -> None:
    """Counted blocks are discarded with the epoch, and with the rows."""
    keep = ChangelogRetention(8)
    keep.renew(1, 0, 100)
    keep._rows.update({2: (5, 9), 4: (5, 9), 100: (5, 9)})
    keep.renew(1, 3, 99)
    assert keep._rows == {}
    keep._rows[6] = 5, 9
    keep.renew(1, 3, 99)
    assert keep._rows == {6: (5, 9)}
    keep.renew(2, 3, 99)
    assert keep._rows == {}


def test_old_audit_rows_go_in_pieces(engine: Engine) -> None:
    """The oldest first, also of the same time; none that is young, or next to the newest."""

    def row(n: int) -> AuditRow:
        return AuditRow(Instant(n // 2), f"{n:02}", "me", None, "admin", "act", "x", None, None)

    async def scenario() -> None:
        for n in range(12):
            await run_plan(engine, audit_insert(row(n)))
        ahead = Instant(1 << 50)
        assert await run_plan(engine, audit_forget(ahead, 5, 3)) == 0, "a clock ahead deleted rows"
        counts = [await run_plan(engine, audit_forget(Instant(5), 1, 3)) for _ in range(4)]
        assert counts == [3, 3, 2, 0]
        left = await engine.read(audit_window(END, "", 100))
        assert [one.id for one in left] == ["11", "10", "09", "08"]

    asyncio.run(scenario())


@pytest.fixture
def url() -> Iterator[str]:
    """Return the address of an empty ledger in PostgreSQL."""
    made = cluster.fresh()
    yield made
    cluster.shared().drop(cluster.database_of(made))


AGED = "UPDATE batch SET created_at = created_at - interval '61 minutes'"


def test_receipts_go_though_no_revision_rises(url: str) -> None:
    """By age alone, in pieces; receipts that may still be asked for stay."""

    async def scenario() -> None:
        engine = open_engine(url)
        for _ in range(5):
            await run_plan(engine, changelog.clock_load())  # a transaction that raises no revision
        assert (await run_plan(engine, receipts_forget(FIRST, 10)))[0] == 0
        assert ask(url, "SELECT COUNT(*) FROM batch") == [(6,)]
        ask(url, AGED)
        gone, after = await run_plan(engine, receipts_forget(FIRST, 4))
        assert gone == 4
        gone, later = await run_plan(engine, receipts_forget(after, 4))
        assert gone == 2
        assert FIRST < after < later
        # The two transactions that deleted receipts have left their own.
        assert ask(url, "SELECT COUNT(*), MIN(revision) FROM batch") == [(2, 0)]
        assert (await run_plan(engine, receipts_forget(later, 4)))[0] == 0
        await engine.close()

    asyncio.run(scenario())


def test_one_process_at_a_time_forgets_receipts(url: str) -> None:
    """A concurrent process leaves it to the other one, and continues at its place the next time."""

    async def scenario() -> None:
        engine = open_engine(url)
        await run_plan(engine, changelog.clock_load())
        ask(url, AGED)
        with psycopg.connect(url) as other:
            assert other.execute("SELECT pg_try_advisory_xact_lock(778, 3)").fetchone() == (True,)
            assert await run_plan(engine, receipts_forget(FIRST, 4)) == (0, FIRST)
        assert (await run_plan(engine, receipts_forget(FIRST, 4)))[0] == 1
        await engine.close()

    asyncio.run(scenario())


def test_a_mark_of_a_history_that_is_gone(engine: Engine) -> None:
    """A ledger restored meanwhile deletes nothing: followers could not continue."""

    async def scenario() -> None:
        for n in range(3):
            await run_plan(engine, revision_new(1_000 + n, 1))
        assert await run_plan(engine, changelog_compaction.compact(10)) == 10
        tail = await engine.read(changelog.changes_load(0))
        assert (tail.compacted, tail.revision, len(tail.batches)) == (0, 3, 3)
        assert await run_plan(engine, changelog_compaction.compact(2)) == 2
        assert (await engine.read(changelog.changes_load(2))).compacted == 2

    asyncio.run(scenario())
