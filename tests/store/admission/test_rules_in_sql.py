"""Rules that SQL applies to many rows at once agree with the core, for generated rows."""

import asyncio
from collections import Counter
from random import Random

import pytest

from moorage.core.admission.bars import bar_of
from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.model import Drain, Growth, Lease, Need, Slot, is_unheard
from moorage.core.admission.units import figures_of, free_units, is_gang, is_over, limit_of, rests
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId, ProviderId
from moorage.core.ledger.model import Inventory
from moorage.core.service_time import Moment, Timeline
from moorage.core.wishes import suits, wanted_of
from moorage.service.batch.misfits import UNMANAGED, Obstacle
from moorage.store.admission import load, reads
from moorage.store.admission.line_pass import pass_load
from moorage.store.api import Engine, Plan, Write
from moorage.store.encoding import encode
from tests.store.admission.grants import (
    AT,
    MINUTE,
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

SEEDS = range(3)
EU = wanted_of({"region": "eu"})
CLASSES = ("VCPU", "DISK_GB", "CUSTOM_X")


async def write_row(engine: Engine, write: Write) -> None:
    """Run a write in a separate transaction."""

    def plan() -> Plan[None]:
        yield [write]

    async with engine.transaction() as transaction:
        await transaction.run(plan())
        await transaction.commit()


async def line_of(engine: Engine, facts: Facts, stuck: str = "[]") -> set[LeaseId]:
    """Return the tickets that are loaded for the line of pool `a`."""
    async with engine.transaction() as transaction:
        await transaction.run(load.lines_load(facts, {"a": 1_000}, lambda _: stuck))
    assert facts.lines["a"].whole
    return set(facts.lines["a"].tickets)


def deadlines(dice: Random, count: int) -> list[Lease]:
    """Return leases and tickets in all states with deadlines around `AT`, some with `keep`."""
    found = []
    for n in range(count):
        needs = dice.choice((("a",), ("b",), ("a", "b")))
        until = dice.choice((None, *(Instant(AT + step * MINUTE // 4) for step in range(-6, 7))))
        one = ticket(n, *needs, keep=dice.random() < 0.7, heard_until=until)
        one = dice.choice((one, granted(one, n), granted(one, n), ended(granted(one, n))))
        found.append(one)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_leases_that_are_not_renewed(engine: Engine, seed: int) -> None:
    """For any deadlines, outages and times, the count is that of `is_unheard`."""

    async def scenario() -> None:
        dice = Random(seed)
        leases = deadlines(dice, 60)
        await saved(engine, pool("a"), pool("b"), *leases)
        for _ in range(20):
            at = AT + dice.randint(-6, 6) * MINUTE // 4
            downtime = dice.choice((0, MINUTE // 4, 2 * MINUTE))
            outage = Instant(dice.choice((0, at - MINUTE // 6, at - MINUTE)))
            moment = Moment(Instant(at), Instant(at - downtime), outage)
            expected: Counter[str] = Counter()
            for lease in leases:
                if is_unheard(lease, moment):
                    expected.update(need.pool for need in lease.needs)
            assert await engine.read_aside(reads.unheard_count(moment)) == dict(expected)

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", SEEDS)
def test_tickets_that_do_not_fit(engine: Engine, seed: int) -> None:
    """For any inventory, an obstacle stands in SQL exactly as in `Obstacle.stands`."""

    async def scenario() -> None:
        dice = Random(seed)
        now: dict[ProviderId, dict[str, Inventory]] = {}
        for n in range(4):
            uuid = ProviderId(lease_id(500 + n))
            now[uuid] = {
                name: Inventory(
                    4,
                    used=dice.randint(0, 3),
                    updated_at=Instant(dice.randint(0, 2)),
                    offered=dice.choice((None, 0, 2)),
                    withheld=dice.random() < 0.3,
                )
                for name in dice.sample(CLASSES, dice.randint(0, 3))
            }
            row = (f"host-{n}", 1, None, uuid, AT, AT, None, None, encode(now[uuid]), uuid)
            await write_row(engine, Write("provider_insert", [row]))
        gone = ProviderId(lease_id(600))
        obstacles = [
            Obstacle(uuid, name, updated_at, used, given)
            for uuid in (*now, gone)
            for name in CLASSES
            for updated_at, used in ((None, 0), (0, 1), (1, 0), (1, 2), (2, 1), (2, 3))
            for given in (UNMANAGED, 0, 2)
        ]
        tickets = [ticket(n, "a") for n in range(len(obstacles))]
        await saved(engine, pool("a"), *tickets)
        rows = [(*one, [lease_id(n)]) for n, one in enumerate(obstacles)]
        facts = await facts_of(engine, Keys(pools={"a"}))
        assert await line_of(engine, facts, encode(rows)) == {
            lease_id(n)
            for n, one in enumerate(obstacles)
            if not one.stands(now.get(ProviderId(one.owner), {}).get(one.resource_class))
        }

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", SEEDS)
def test_tickets_that_are_passed_over(engine: Engine, seed: int) -> None:
    """For any limit, quota and holders, the tickets not loaded are those with a `Bar`."""

    async def scenario() -> None:
        dice = Random(seed)
        owners = ("x", "y", "z")
        waiting = [
            ticket(
                n,
                Need("a", dice.randint(1, 6)),
                owner=dice.choice(owners),
                forced=dice.random() < 0.2,
            )
            for n in range(40)
        ]
        held = [
            granted(ticket(100 + n, Need("a", dice.randint(1, 3)), owner=dice.choice(owners)), n)
            for n in range(4)
        ]
        for limit, quota in ((20, None), (3, None), (20, 4), (2, 5), (20, 1)):
            await saved(engine, pool("a", limit, quota=quota), *waiting, *held)
            facts = await facts_of(engine, Keys(pools={"a"}))
            assert await line_of(engine, facts) == {
                one.id
                for one in waiting
                if one.forced
                or bar_of(facts, facts.pools["a"], one.owner, one.needs[0].units) is None
            }

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", SEEDS)
def test_tickets_of_a_line(engine: Engine, seed: int) -> None:
    """Only tickets that may wait for more than units of this pool are loaded with their lease."""

    async def scenario() -> None:
        dice = Random(seed)
        waiting = [
            ticket(
                n,
                *dice.choice(
                    (
                        ("a",),
                        ("a", "b"),
                        (Need("a", 1, "x", "y"), Need("a", 2)),
                        (Need("a", 1, wanted=EU),),
                    )
                ),
                allocations=dice.choice((None, None, '{"allocations":null}')),
                detail=dice.choice(("", '"allocations":null')),
                labels=dice.choice(({}, {"allocations": "null"}, {"x": '"wanted":"{'})),
            )
            for n in range(30)
        ]
        await saved(engine, pool("a"), pool("b"), *waiting)
        read = await engine.read_aside(pass_load("a"))
        plain = {one.id for one in read.waiters if one.lease is None}
        assert plain == {
            one.id
            for one in waiting
            if one.allocations is None and not is_gang(one.needs) and not one.needs[0].wanted
        }

    asyncio.run(scenario())


def slots_of(dice: Random, name: str) -> list[Slot]:
    """Return slots in several states: some occupied, drained, in cooldown or after it."""
    return [
        slot(
            name,
            str(n),
            state=dice.choice(("free", "free", "dirty")),
            owner=dice.choice(("", "", "somebody")),
            rests_until=Instant(dice.choice((0, 0, AT - MINUTE, AT + 5, AT + MINUTE))),
            labels=dice.choice(({}, {"region": "eu"}, {"region": "eu", "tier": "2"})),
            drain=dice.choice((None, None, Drain(False, "why", AT))),
        )
        for n in range(dice.randint(0, 12))
    ]


@pytest.mark.parametrize("seed", range(8))
def test_tickets_whose_labels_no_slot_has(engine: Engine, seed: int) -> None:
    """For any slots and wishes, the tickets not loaded are those that no free slot suits.

    The control: with the condition taken out of the statement, these tickets are loaded too.
    """

    async def scenario() -> None:
        dice = Random(seed)
        wishes = ("", EU, wanted_of({"region": "eu", "tier": "2"}), wanted_of({"tier": "'%\\\""}))
        waiting = [
            ticket(n, Need("a", 1, wanted=dice.choice(wishes)), forced=dice.random() < 0.2)
            for n in range(40)
        ]
        slots = [*slots_of(dice, "a"), *(slot("a", f"x{n}", owner="x") for n in range(2))]
        sought = Counter(one.needs[0].wanted for one in waiting if one.needs[0].wanted)
        await saved(engine, pool("a", None, sought=dict(sought)), *waiting, *slots)
        facts = await facts_of(engine, Keys(pools={"a"}))
        idle = [one for one in slots if not one.occupied]
        served = {
            one.id
            for one in waiting
            if one.forced
            or any(suits(found.labels, one.needs[0].wanted) for found in idle)
            or not one.needs[0].wanted
        }
        assert await line_of(engine, facts) == served
        facts = await facts_of(engine, Keys(pools={"a"}))
        facts.pools["a"] = pool("a", None)
        assert await line_of(engine, facts) == {one.id for one in waiting} > served

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", SEEDS)
def test_figures_of_pools(engine: Engine, seed: int) -> None:
    """A pool as shown has the units that a decision on all its slots finds."""

    async def scenario() -> None:
        dice = Random(seed)
        pools = [
            pool("slots", None, occupied=dice.randint(0, 9)),
            pool("grows", None, growth=Growth(0, dice.randint(1, 20), "dirty")),
            pool("none", None),
            pool("plain", 4, occupied=dice.randint(0, 6)),
        ]
        slots = [*slots_of(dice, "slots"), *slots_of(dice, "grows")]
        await run(engine, Keys(), lambda _: Changes(), Timeline(alive_at=AT))
        await saved(engine, *pools, *slots)
        facts = await facts_of(engine, Keys(pools={one.name for one in pools}))
        for seen in (await engine.read(reads.pools_window("", 9))).pools:
            for at in (AT, Instant(AT + 5), Instant(AT + 6), Instant(AT + 2 * MINUTE)):
                found, one = figures_of(seen.pool, seen.slots, at), facts.pools[seen.pool.name]
                assert found.units == limit_of(facts, one)
                assert found.free == free_units(facts, one, at).get("free", 0)
                assert found.resting == sum(rest.units for rest in rests(facts, one, at))
                assert found.over == is_over(one, limit_of(facts, one))

    asyncio.run(scenario())
