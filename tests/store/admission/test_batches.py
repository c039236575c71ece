"""Batches of admission: one lock, few statements, ordered change rows, deletion of old leases."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest
from msgspec import json

from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.model import FencingToken, Lease, StartOutcome
from moorage.core.clock import Instant
from moorage.core.service_time import Timeline
from moorage.store import changelog
from moorage.store.admission import check, load, reads, save
from moorage.store.admission.changes import KINDS, slot_key
from moorage.store.admission.rows import lease_from_body
from moorage.store.api import Conflict, Engine
from moorage.store.changelog import changes_window
from moorage.store.ledger.changes import change_rows
from moorage.store.open import open_engine
from tests.store.admission.grants import (
    AT,
    changed,
    ended,
    facts_of,
    granted,
    lease_id,
    pool,
    run,
    saved,
    slot,
    ticket,
)
from tests.store.build import provider_new
from tests.store.build import run as ledger_run
from tests.store.test_statements import Counting
from tests.support import cluster


def outcome(n: int) -> StartOutcome:
    """Return the outcome of the n-th lease."""
    return StartOutcome(lease_id(n), "a", AT, "ok", "fine", 4, 1)


def test_change_rows_contain_everything_in_order(engine: Engine) -> None:
    """They are after-images, pools first; leases have the fencing token of their revision."""

    async def scenario() -> None:
        first = changed(pool("b"), pool("a"), slot("a/x", "s-1"), granted(ticket(2, "a"), n=1))
        first.leases[lease_id(1)] = ticket(1, "a")
        first.outcomes = [outcome(2), outcome(1)]
        revision, _ = await run(engine, Keys(), lambda _: first)
        gone = Changes({"b": None}, {lease_id(1): None}, {("a/x", "s-1"): None})
        await run(engine, Keys(), lambda _: gone)
        rows = (await engine.read(changes_window(0, 0, 99))).rows
        keys = [("pool", "a"), ("pool", "b"), ("slot", "a/x/s-1")]
        keys += [("lease", lease_id(1)), ("lease", lease_id(2))]
        keys += [("outcome", lease_id(2)), ("outcome", lease_id(1))]
        found = [(row.kind, row.key) for row in rows if row.revision == revision]
        assert found == keys
        values = {
            (row.kind, row.key): json.decode(row.body, type=KINDS[row.kind])
            for row in rows
            if row.body is not None
        }
        stamped = granted(ticket(2, "a"), token=FencingToken(1, revision, 1))
        assert list(values.values()) == [
            *(pool("a"), pool("b"), slot("a/x", "s-1"), ticket(1, "a"), stamped),
            *(outcome(2), outcome(1)),
        ]
        assert lease_from_body(rows[4].body or "") == stamped
        assert slot_key("a/x/s-1") == ("a/x", "s-1")
        removed = [(row.kind, row.key, row.body) for row in rows if row.revision > revision]
        assert removed == [
            *(("pool", "b", None), ("slot", "a/x/s-1", None), ("lease", lease_id(1), None)),
        ]

    asyncio.run(scenario())


def test_followers_of_the_ledger_pass_over_it(engine: Engine) -> None:
    """Every revision is there without a gap, with only the ledger's changes."""

    async def scenario() -> None:
        await saved(engine, pool("a"), ticket(1, "a"))
        await ledger_run(engine, provider_new(1, VCPU=8))
        await saved(engine, ticket(2, "a"), ticket(3, "a"))
        tail = await engine.read(changelog.changes_load(0))
        assert [revision for revision, *_ in tail.batches] == [1, 2, 3] == [1, 2, tail.revision]
        assert [bool(batch.ledger) for batch in tail.batches] == [False, True, False]
        assert [len(list(change_rows(batch.ledger))) for batch in tail.batches] == [0, 2, 0]
        assert [batch.others for batch in tail.batches] == [[], [], []]

    asyncio.run(scenario())


def test_a_key_belongs_to_one_lease(engine: Engine) -> None:
    """The database itself refuses a second lease with the same owner and key."""

    async def scenario() -> None:
        await saved(engine, pool("a"), ended(ticket(1, "a", key="k")))
        with pytest.raises(Conflict):
            await saved(engine, ticket(2, "a", key="k"))
        await saved(engine, ticket(3, "a", key="k", owner="somebody else"))
        facts = await facts_of(engine, Keys(leases={lease_id(n) for n in (1, 2, 3)}))
        assert facts.leases.keys() == {lease_id(1), lease_id(3)}

    asyncio.run(scenario())


async def forgotten(engine: Engine, ended_before: int, reported_before: int, most: int) -> int:
    """Delete old leases in a separate transaction; return their number."""
    async with engine.transaction() as transaction:
        plan = save.forget(Instant(ended_before), Instant(reported_before), most)
        count = await transaction.run(plan)
        await transaction.commit()
    return count


def test_forgetting(engine: Engine) -> None:
    """Only leases that ended before a time are deleted, the oldest first, with all their rows."""

    async def scenario() -> None:
        old = [ended(granted(ticket(n, "a", "b")), AT + n) for n in range(5)]
        changes = changed(pool("a"), pool("b"), *old, ticket(8, "a"), granted(ticket(9, "a")))
        changes.outcomes = [outcome(1)]
        await run(engine, Keys(), lambda _: changes)
        assert await forgotten(engine, AT + 4, AT, 3) == 3
        assert await forgotten(engine, AT + 4, AT, 3) == 1
        assert await forgotten(engine, AT + 4, AT, 3) == 0
        everything = Keys(leases={lease_id(n) for n in range(10)})
        facts = await facts_of(engine, everything)
        assert facts.leases.keys() == {lease_id(4), lease_id(8), lease_id(9)}
        report = await engine.read_aside(reads.report_load("b", AT))
        assert [end.ended_at for end in report.ends] == [AT + 4]
        assert len((await engine.read_aside(reads.report_load("a", AT))).outcomes) == 1
        assert await forgotten(engine, AT, AT + 1, 3) == 0
        assert (await engine.read_aside(reads.report_load("a", AT))).outcomes == []
        await saved(engine, ticket(20, "a", key="key-1"))  # its key is free again

    asyncio.run(scenario())


def test_wiping_empties_admission(engine: Engine) -> None:
    """A test server starts again with an empty ledger and admission; its time continues."""

    async def scenario() -> None:
        timeline = Timeline(1, 2, AT, AT)
        changes = changed(pool("a"), slot("a", "s"), ticket(1, "a"), ended(ticket(2, "a")))
        changes.outcomes, changes.arrivals = [outcome(1)], 5
        await run(engine, Keys(), lambda _: changes, timeline)
        async with engine.transaction() as transaction:
            await transaction.run(changelog.wipe())
            await transaction.commit()
        everything = Keys({"a"}, {lease_id(1), lease_id(2)}, set(), {("a", "s")}, {"a"}, {"a"}, AT)
        assert await facts_of(engine, everything) == Facts(timeline, 5)
        assert await engine.read_aside(check.differences_load()) == []
        report = await engine.read_aside(reads.report_load("a", Instant(0)))
        assert (report.ends, report.outcomes) == ([], [])

    asyncio.run(scenario())


LOADED = ["admission_lock", "service_clock_lock", "pools_load"]


def written(counting: Counting) -> list[str]:
    """Return the recorded statements of admission, and clear the record."""
    found = [name for name in counting.statements if not name.startswith(("clock_", "change_"))]
    counting.statements.clear()
    return found


def test_statements_per_batch(engine: Engine) -> None:
    """A request takes 8 statements; 64 requests, renewals or releases take as many as one."""

    def asked(facts: Facts, leases: Iterable[Lease]) -> Changes:
        changes = changed(pool("a"), *leases)
        changes.arrivals = facts.arrivals + 1
        return changes

    async def scenario() -> None:
        await saved(engine, pool("a"))
        counting: Any = Counting(engine)
        leases = [granted(ticket(n, "a"), n=n) for n in range(80)]
        count = iter(leases)
        for many in (1, 64):
            some = list(islice(count, many))
            keys = Keys(pools={"a"}, asked={(one.owner, one.key) for one in some})
            await run(counting, keys, lambda facts, some=some: asked(facts, some))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            assert written(counting) == [
                *LOADED,
                "leases_load_by_key",
                "arrivals_update",
                "pool_upsert",
                "lease_upsert",
                "lease_need_upsert",
                "lease_due_upsert",
            ]
            heard = Changes(heard={one.id: Instant(AT + 9) for one in some})
            keys = Keys(leases={one.id for one in some})
            await run(counting, keys, lambda _, heard=heard: heard)  # type: ignore[misc]  # as above
            assert written(counting) == [*LOADED, "leases_load", "lease_due_upsert"]
            over = changed(pool("a"), *(ended(one) for one in some))
            await run(counting, keys, lambda _, over=over: over)  # type: ignore[misc]  # as above
            assert written(counting) == [
                *LOADED,
                "leases_load",
                "pool_upsert",
                "lease_upsert",
                "lease_need_upsert",
                "lease_due_delete",
            ]

    asyncio.run(scenario())


def test_the_usual_keys_need_one_round(engine: Engine) -> None:
    """Requests, renewals, releases and polls are loaded in one round, others in two."""

    def rounds(keys: Keys) -> int:
        """Return how many rounds a load takes, running its plan step by step."""
        plan, count = load.facts_load(keys), 0

        async def answered() -> None:
            nonlocal count
            async with engine.transaction() as transaction:
                statements = next(plan)
                with suppress(StopIteration):
                    while True:
                        count += 1

                        def once(asked: Any = statements) -> Any:
                            return (yield asked)

                        statements = plan.send(await transaction.run(once()))

        asyncio.run(answered())
        return count

    asyncio.run(saved(engine, pool("a"), pool("b"), ticket(1, "a"), slot("b", "s")))
    assert rounds(Keys(pools={"a"}, asked={("owner", "new")})) == 1
    assert rounds(Keys(pools={"a"}, asked={("owner", "key-1")})) == 1
    assert rounds(Keys(leases={lease_id(1)})) == 1
    assert rounds(Keys(slots={("", "s")})) == 1
    assert rounds(Keys(asked={("owner", "key-1")})) == 2
    assert rounds(Keys(due=Instant(AT << 1))) == 2


def test_two_processes_take_turns() -> None:
    """A load waits until the other process has committed, then sees its changes."""
    url = cluster.fresh()

    async def add(engine: Engine, n: int) -> int:
        """Count up in the pool and the arrivals, as a decision on the loaded rows."""

        def decide(facts: Facts) -> Changes:
            before = facts.pools["a"]
            after = pool("a", occupied=before.occupied + 1)
            changes = changed(after, granted(ticket(n, "a")))
            changes.arrivals = facts.arrivals + 1
            return changes

        return (await run(engine, Keys(pools={"a"}), decide))[0]

    async def scenario() -> None:
        one, two = open_engine(url), open_engine(url)
        await saved(one, pool("a"))
        revisions = await asyncio.gather(
            *(add(engine, 10 * n + at) for n in range(10) for at, engine in enumerate((one, two)))
        )
        assert sorted(revisions) == list(range(2, 22))
        facts = await facts_of(two, Keys(pools={"a"}))
        assert facts.pools["a"].occupied == facts.arrivals == 20
        seen = await one.read_aside(reads.leases_window((0, ""), 99, pool="a"))
        assert sorted(str(lease.token) for lease in seen.leases) == sorted(
            f"1.{revision}.0" for revision in revisions
        )
        await one.close()
        await two.close()

    asyncio.run(scenario())
    cluster.shared().drop(cluster.database_of(url))
