"""Reads of pools and leases for the faces: each in one round trip, in order, by window."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.model import Drain, FencingToken, Lease, StartOutcome
from moorage.core.admission.units import SlotGroup
from moorage.core.clock import SECOND, Instant
from moorage.core.service_time import Moment, Timeline
from moorage.store import service_clock
from moorage.store.admission import line_pass, reads
from moorage.store.admission.contents import past_load
from moorage.store.admission.line_pass import pass_load
from moorage.store.admission.reads import (
    EndedLease,
    LeaseSeen,
    Oldest,
    OutcomeCount,
    PoolSeen,
    SlotCount,
    SlotSeen,
)
from moorage.store.api import Engine
from tests.store.admission.grants import (
    AT,
    MINUTE,
    ended,
    granted,
    lease_id,
    pool,
    run,
    saved,
    slot,
    ticket,
)

TIMELINE = Timeline(-1, 2, Instant(3), Instant(4))


async def timed(engine: Engine) -> None:
    """Save the timeline."""
    await run(engine, Keys(), lambda _: Changes(), TIMELINE)


def free_slots(state: str, slots: int) -> SlotGroup:
    """Return a group of free slots in a state, without cooldown."""
    return SlotGroup(state, False, Instant(0), slots)


def test_pools_in_windows(engine: Engine) -> None:
    """Pools are ordered by name, with their slots counted by state."""

    async def scenario() -> None:
        await timed(engine)
        pools = [pool(name) for name in ("a", "a/b", "b", "Z")]
        slots = [slot("a", "1"), slot("a", "2"), slot("a", "3", state="dirty"), slot("b", "1")]
        await saved(engine, *pools, *slots)
        seen = [
            PoolSeen(pool("Z"), []),
            PoolSeen(pool("a"), [free_slots("dirty", 1), free_slots("free", 2)]),
            PoolSeen(pool("a/b"), []),
            PoolSeen(pool("b"), [free_slots("free", 1)]),
        ]
        found = await engine.read(reads.pools_window("", 9))
        assert (found.timeline, found.pools) == (TIMELINE, seen)
        assert (await engine.read(reads.pools_window("", 2))).pools == seen[:2]
        assert (await engine.read(reads.pools_window("a", 2))).pools == seen[2:]
        assert (await engine.read(reads.pool_load("a"))).pools == [seen[1]]
        assert (await engine.read(reads.pool_load("c"))).pools == []

    asyncio.run(scenario())


def test_a_lease(engine: Engine) -> None:
    """A lease is loaded with its last renewal."""

    async def scenario() -> None:
        await timed(engine)
        await saved(engine, pool("a"), pool("b"), ticket(1, "a", "b", "gone"))
        heard = Changes(heard={lease_id(1): Instant(AT + 5)})
        await run(engine, Keys(leases={lease_id(1)}), lambda _: heard)
        lease = ticket(1, "a", "b", "gone", heard_until=Instant(AT + 5))
        expected = LeaseSeen(TIMELINE, lease)
        assert await engine.read(reads.lease_load(lease.id)) == expected
        assert await engine.read(reads.lease_load(lease_id(2))) is None

    asyncio.run(scenario())


def test_holders_are_counted(engine: Engine) -> None:
    """The holders of a pool with their units: most units first, then the earliest."""

    async def scenario() -> None:
        leases = [
            granted(
                ticket(n, "a"), granted_at=Instant(AT + n), token=FencingToken(1, 1, n), owner=owner
            )
            for n, owner in enumerate("zabaz")
        ]
        others = [ticket(8, "a"), granted(ticket(9, "b")), ended(granted(ticket(10, "a")))]
        await saved(engine, pool("a"), pool("b"), *leases, *others)
        found = await engine.read_aside(pass_load("a"))
        assert [(one.name, one.units, one.since) for one in found.evidence.holders.named] == [
            ("z", 2, AT),
            ("a", 2, AT + 1),
            ("b", 1, AT + 2),
        ]

    asyncio.run(scenario())


def test_unheard_leases_are_counted(engine: Engine) -> None:
    """In each of their pools; not tickets, ended leases, leases without or with an enforced TTL."""

    async def scenario() -> None:
        heard = Instant(AT + 9)
        leases = [
            granted(ticket(1, "a", keep=True)),
            granted(ticket(2, "a", "b", keep=True, heard_until=Instant(AT + 8))),
            granted(ticket(3, "a", keep=True, heard_until=heard)),
            granted(ticket(4, "a", keep=True, heard_until=None)),
            granted(ticket(5, "a", heard_until=Instant(AT))),
            ticket(6, "a", keep=True, heard_until=Instant(AT)),
            ended(granted(ticket(7, "a", keep=True, heard_until=Instant(AT)))),
        ]
        await saved(engine, pool("a"), pool("b"), *leases)
        assert await engine.read_aside(reads.unheard_count(Moment(heard, heard))) == {
            "a": 2,
            "b": 1,
        }
        later = Instant(AT + 2 * MINUTE)
        assert await engine.read_aside(reads.unheard_count(Moment(later, later))) == {
            "a": 3,
            "b": 1,
        }

    asyncio.run(scenario())


def test_the_oldest_of_each_pool(engine: Engine) -> None:
    """The first request that still waits, and the first grant that still has units."""

    async def scenario() -> None:
        await timed(engine)
        leases = [
            *(ticket(n, "a", asked_at=Instant(AT + at)) for n, at in ((1, 9), (2, 4), (3, 7))),
            granted(ticket(4, "a", "b", asked_at=AT), granted_at=Instant(AT + 6)),
            granted(ticket(5, "b"), 1, granted_at=Instant(AT + 5)),
            ended(granted(ticket(6, "a", "c"), 2, granted_at=AT)),
            ended(ticket(7, "c", asked_at=AT)),
        ]
        await saved(engine, *(pool(name, gangs=1) for name in "abc"), *leases)
        assert await engine.read_aside(reads.oldest_load()) == (
            TIMELINE,
            [
                Oldest("a", Instant(AT + 4), Instant(AT + 6)),
                Oldest("b", None, Instant(AT + 5)),
                Oldest("c", None, None),
            ],
        )

    asyncio.run(scenario())


def past(n: int, waited: int, held: int, **values: Any) -> Lease:
    """Return a lease that ended n seconds after the first, and waited and lasted this long."""
    end = AT + n * 1_000_000
    lease = granted(ticket(n, "a"), granted_at=Instant(end - held), token=FencingToken(1, 1, n))
    return ended(lease, end, asked_at=Instant(end - held - waited), **values)


def test_past_times(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The durations of the leases that ended last; tickets never granted have none."""

    async def scenario() -> None:
        leases = [past(n, waited=n + 1, held=2 * n + 1) for n in range(5)]
        never = ended(ticket(9, "a"), AT + 9 * MINUTE, cause="withdrawn")
        await saved(engine, pool("a"), *leases, never, granted(ticket(10, "a")))
        found = await engine.read_aside(pass_load("a"))
        assert found.evidence.held == tuple((2 * n + 1) / SECOND for n in range(5))
        monkeypatch.setattr(line_pass, "PASTS", 2)
        found = await engine.read_aside(pass_load("a"))
        assert found.evidence.held == (7 / SECOND, 9 / SECOND)
        report = await engine.read_aside(reads.report_load("a", Instant(AT + 3_000_000)))
        newest = (leases[3], leases[4])
        assert report.ends == [
            *(
                EndedLease(one.asked_at, one.granted_at, one.ended_at or AT, "released")
                for one in newest
            ),
            EndedLease(AT, None, Instant(AT + 9 * MINUTE), "withdrawn"),
        ]
        assert report.outcomes == []

    asyncio.run(scenario())


def test_outcomes_are_counted(engine: Engine) -> None:
    """By the limit when they were reported, and by the units that started in the last 60 seconds.

    All stored outcomes: a limit is chosen by the outcomes of weeks, not only of yesterday.
    """

    def told(n: int, result: Any, limit: int, at: int = AT, pool_name: str = "a") -> StartOutcome:
        return StartOutcome(lease_id(n), pool_name, Instant(at), result, "", limit, 1)

    async def scenario() -> None:
        # The first two and the third start within 60 seconds, but in two minutes of the clock.
        second = MINUTE // 60
        base = AT - AT % MINUTE - second
        starts = (0, 0, 2 * second, MINUTE + second, MINUTE + second)
        leases = [
            granted(ticket(n, "a"), granted_at=Instant(base + start), token=FencingToken(1, 1, n))
            for n, start in enumerate(starts)
        ]
        outcomes = [
            *(told(0, "ok", 4), told(1, "failed", 4), told(2, "ok", 5), told(2, "ok", 5)),
            *(told(3, "throttled", 4), told(9, "ok", 4), told(0, "ok", 4, AT - 80 * 1440 * MINUTE)),
            told(0, "ok", 4, pool_name="b"),
        ]

        def decide(_: Facts) -> Changes:
            return Changes({"a": pool("a")}, {one.id: one for one in leases}, outcomes=outcomes)

        await run(engine, Keys(), decide)
        report = await engine.read_aside(reads.report_load("a", AT))
        assert report.outcomes == [
            OutcomeCount(4, None, 1, 0, 0),
            OutcomeCount(4, 2, 2, 1, 0),
            OutcomeCount(4, 3, 0, 0, 1),
            OutcomeCount(5, 3, 2, 0, 0),
        ]

    asyncio.run(scenario())


def test_a_lease_is_found_by_its_token(engine: Engine) -> None:
    """A fencing token is current while its lease is granted and occupies units of the pool."""

    async def scenario() -> None:
        lease = granted(ticket(1, "a", "b"), n=2)
        revision = await saved(engine, pool("a"), pool("b"), pool("c"), lease)
        token = f"1.{revision}.2"
        for name in "ab":
            _, found = await engine.read(reads.lease_load_by_token(name, token))
            assert found is not None and str(found.token) == token
        for name, other in (("c", token), ("a", f"1.{revision}.1"), ("a", "")):
            assert (await engine.read(reads.lease_load_by_token(name, other)))[1] is None
        assert found is not None
        await saved(engine, ended(found))
        assert (await engine.read(reads.lease_load_by_token("a", token)))[1] is None

    asyncio.run(scenario())


def test_slots_and_their_counts(engine: Engine) -> None:
    """All slots of a pool by name; of all pools the number by state and owner."""

    async def scenario() -> None:
        slots = [slot("a", "1"), slot("a", "2", state="busy", owner="x"), slot("a", "3")]
        await saved(engine, pool("a"), *slots[::-1], slot("b", "1", owner="x"))
        assert await engine.read(reads.slots_load("a")) == slots
        assert await engine.read(reads.slots_count()) == [
            SlotCount("a", "busy", "x", 1),
            SlotCount("a", "free", "", 2),
            SlotCount("b", "free", "x", 1),
        ]

    asyncio.run(scenario())


def test_slots_with_their_leases(engine: Engine) -> None:
    """Slots in windows by name, or one of them: each with the lease that occupies it, if any."""

    async def scenario() -> None:
        await timed(engine)
        lease = granted(ticket(1, "a"), slots={"a": ("2",)})
        drained = slot("a", "3", labels={"region": "eu"}, drain=Drain(True, "disk", AT))
        held = slot("a", "2", owner="owner", lease=lease.id)
        slots = [slot("a", "1"), held, drained, slot("a", "4")]
        revision = await saved(engine, pool("a", None), lease, *slots, slot("b", "1"))
        stored = structs.replace(lease, token=FencingToken(1, revision, 0))
        expected = [SlotSeen(one, stored if one == held else None) for one in slots]
        seen = await engine.read(reads.slots_window("a", "", 9))
        assert (seen.timeline, seen.pool) == (TIMELINE, pool("a", None))
        assert seen.slots == expected
        assert (await engine.read(reads.slots_window("a", "1", 2))).slots == expected[1:3]
        for name, found in (("2", [expected[1]]), ("9", [])):
            assert (await engine.read(reads.slot_load("a", name))).slots == found
        missing = await engine.read(reads.slots_window("c", "", 9))
        assert (missing.pool, missing.slots) == (None, [])

    asyncio.run(scenario())


def test_more_ends_than_a_report_covers(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report covers the newest ends, and says if there were more; a surplus is found by age."""

    async def scenario() -> None:
        leases = [past(n, waited=1, held=1) for n in range(5)]
        await saved(engine, pool("a"), *leases, ticket(9, "a"))
        for most, number in ((5, 5), (4, 4), (1, 1)):
            monkeypatch.setattr(reads, "REPORT_LEASES_MAX", most)
            report = await engine.read_aside(reads.report_load("a", AT))
            newest = [one.ended_at for one in leases[-number:]]
            assert ([one.ended_at for one in report.ends], report.cut) == (newest, most < 5)
            oldest, surplus = await engine.read_aside(reads.ended_surplus_load(most))
            assert oldest == leases[-number].ended_at
            assert surplus == (None if most == 5 else leases[-number - 1].ended_at)
        assert await engine.read_aside(reads.ended_surplus_load(6)) == (None, None)

    asyncio.run(scenario())


def test_more_ends_than_a_past_covers(engine: Engine) -> None:
    """All that live and the newest ends are there; exactly the oldest end is left out."""

    async def scenario() -> None:
        leases = [past(n, waited=1, held=1) for n in (3, 0, 4, 1, 2)]
        live = [granted(ticket(8, "a")), ticket(9, "a")]
        await saved(engine, pool("a"), *leases, *live)
        for most in (5, 4, 1):
            seen = await engine.read_aside(past_load("a", AT, most), slow=True)
            assert seen is not None
            ends = sorted(one.ended_at for one in seen.past if one.ended_at is not None)
            newest = sorted(one.ended_at or AT for one in leases)[-most:]
            assert (ends, seen.cut) == (newest, most < 5)
            assert len(seen.past) == most + len(live)
        late = await engine.read_aside(past_load("a", Instant(AT + 3_000_000), 5), slow=True)
        assert late is not None
        assert (len(late.past), late.cut) == (2 + len(live), False)
        assert await engine.read_aside(past_load("b", AT, 5)) is None

    asyncio.run(scenario())


def test_the_timeline(engine: Engine) -> None:
    """At first service time is zero; then it is the last saved value."""

    async def scenario() -> None:
        assert await engine.read(service_clock.timeline_load()) == Timeline()
        await timed(engine)
        assert await engine.read(service_clock.timeline_load()) == TIMELINE

    asyncio.run(scenario())
