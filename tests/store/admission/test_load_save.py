"""Pools, leases and slots in rows: saved values are loaded, and keys load what they name."""

import asyncio

from msgspec import structs

from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.model import FencingToken, Need, Pacing, PoolSpec, Rest
from moorage.core.clock import Instant
from moorage.core.limits import DUE_MAX
from moorage.core.service_time import Timeline
from moorage.store.admission import reads
from moorage.store.admission.rows import lease_row
from moorage.store.api import Engine
from moorage.store.changelog import changes_window
from tests.store.admission.grants import (
    AT,
    MINUTE,
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

WHOLE_SPEC = PoolSpec(
    None,
    MINUTE,
    2 * MINUTE,
    hold=3,
    cooldown=4,
    pacing=Pacing(5, 6, 7),
    quota=8,
    queue_max=9,
    labels={"a": "b\n\"'{}"},
    on_retry="requeue",
    expire="keep",
    askers=("a/*", 'role:"ü'),
    priority_max=-10,
    hold_max=11,
    queue_max_per_owner=12,
)


def test_every_value_comes_back(engine: Engine) -> None:
    """Pools, leases, slots and service time are loaded as they were saved, with any content."""
    full_pool = pool(
        "install/a\\'b",
        spec=WHOLE_SPEC,
        paused=True,
        generation=7,
        occupied=2,
        resting=(Rest(Instant(AT + 1), 2), Rest(Instant(AT + 2), 1)),
        paced_at=Instant(AT + 3),
        wake_at=Instant(AT + 4),
    )
    needs = (Need(full_pool.name, 1, "dirty", "cleaning"), Need(full_pool.name, 1))
    full_lease = granted(
        ticket(1, *needs, priority=-5),
        n=3,
        key='k"\\{}\t',
        hold=9,
        hold_until=Instant(AT + 9),
        labels={"x": "ü"},
        forced=True,
        pull=True,
        keep=True,
        allocations='{"consumer": 1}',
        slots={full_pool.name: ("one", "two")},
        detail="did not fit\nat first",
    )
    slots = [
        slot(full_pool.name, "one", state="cleaning", owner="owner", lease=lease_id(1)),
        slot(full_pool.name, "two", user_data={"k": "v"}, expires_at=Instant(AT + 5), dynamic=True),
    ]
    timeline = Timeline(-2, 3, Instant(AT), Instant(AT - 1))

    async def scenario() -> None:
        changes = changed(full_pool, full_lease, *slots)
        changes.arrivals = 7
        revision, _ = await run(engine, Keys(), lambda _: changes, timeline)
        facts = await facts_of(engine, Keys(leases={lease_id(1)}))
        stamped = structs.replace(full_lease, token=FencingToken(1, revision, 3))
        assert facts.leases == {lease_id(1): stamped}
        assert facts.asked == {("owner", full_lease.key): lease_id(1)}
        assert facts.pools == {full_pool.name: full_pool}
        assert facts.slots == {full_pool.name: {one.name: one for one in slots}}
        assert facts.held == {(full_pool.name, "owner"): 2}
        assert (facts.timeline, facts.arrivals) == (timeline, 7)
        assert facts.grants == 0

    asyncio.run(scenario())


def test_values_are_replaced_and_removed(engine: Engine) -> None:
    """The last after-image counts; a deleted object has no rows left."""

    async def scenario() -> None:
        await saved(engine, pool("a"), slot("a", "s"), granted(ticket(1, "a")))
        paused = pool("a", paused=True, quota=3)
        await saved(engine, paused, ended(ticket(1, "a")), slot("a", "s", state="dirty"))
        facts = await facts_of(engine, Keys(leases={lease_id(1)}))
        assert facts.pools == {"a": paused}
        assert facts.leases[lease_id(1)] == ended(ticket(1, "a"))
        assert facts.slots["a"] == {"s": slot("a", "s", state="dirty")}
        assert facts.held == {}
        gone = Changes({"a": None}, {lease_id(1): None}, {("a", "s"): None})
        await run(engine, Keys(), lambda _: gone)
        everything = Keys(
            {"a"}, {lease_id(1)}, {("owner", "key-1")}, {("a", "s")}, {"a"}, {"a"}, AT
        )
        assert await facts_of(engine, everything) == Facts()

    asyncio.run(scenario())


def test_keys_load_the_pools_of_leases(engine: Engine) -> None:
    """A lease is loaded with its pools and no others, by any key."""

    async def scenario() -> None:
        first = ticket(1, "a", "b")
        second = granted(ticket(2, "c"), owner="other", slots={"c": ("s",)})
        holding = slot("c", "s", owner="other", lease=second.id)
        await saved(engine, *(pool(name) for name in "abcd"), first, second, holding)
        for keys, leases, pools in (
            (Keys(pools={"a", "none"}), set(), "a"),
            (Keys(leases={first.id}), {first.id}, "ab"),
            (Keys(asked={("owner", "key-1"), ("owner", "new")}), {first.id}, "ab"),
            (Keys(asked={("owner", "key-2")}), set(), ""),
            (Keys(slots={("c", "s")}), {second.id}, "c"),
            (Keys(slots={("", "s")}), {second.id}, "c"),
            (Keys(slots={("a", "s")}), set(), ""),
            (Keys(ends={"b"}), {first.id}, "ab"),
            (Keys(ends={"c", "d"}), {second.id}, "cd"),
            (Keys(due=Instant(AT + MINUTE)), {first.id, second.id}, "abc"),
            (Keys(due=Instant(AT + MINUTE - 1)), set(), ""),
        ):
            facts = await facts_of(engine, keys)
            assert facts.leases.keys() == leases, keys
            assert "".join(sorted(facts.pools)) == pools, keys
            assert facts.slots.keys() == facts.pools.keys()
            assert set(facts.asked.values()) == leases

    asyncio.run(scenario())


def test_a_free_slot_is_loaded_with_its_pools(engine: Engine) -> None:
    """A slot is found by its name in any pool, occupied or not, with all slots of its pool."""

    async def scenario() -> None:
        free = slot("a", "s"), slot("a", "t"), slot("b/a", "s")
        await saved(engine, pool("a", None), pool("b/a", None), *free)
        facts = await facts_of(engine, Keys(slots={("", "s")}))
        assert facts.slots == {"a": {"s": free[0], "t": free[1]}, "b/a": {"s": free[2]}}
        facts = await facts_of(engine, Keys(slots={("a", "t")}))
        assert facts.slots == {"a": {"s": free[0], "t": free[1]}}

    asyncio.run(scenario())


def test_pools_with_gangs_are_loaded_together(engine: Engine) -> None:
    """A pool with gangs in its line is loaded with all others that have gangs, by any key."""

    async def scenario() -> None:
        pools = [pool("a", gangs=1), pool("b", gangs=2), pool("c"), pool("d", wake_at=AT)]
        await saved(engine, *pools, ticket(1, "a", "b"), ticket(2, "c"))
        for keys, found in (
            (Keys(pools={"a"}), "ab"),
            (Keys(pools={"c"}), "c"),
            (Keys(leases={lease_id(1)}), "ab"),
            (Keys(asked={("owner", "key-1")}), "ab"),
            (Keys(leases={lease_id(2)}), "c"),
            (Keys(due=AT), "d"),
        ):
            assert "".join(sorted((await facts_of(engine, keys)).pools)) == found, keys

    asyncio.run(scenario())


def test_pools_of_a_cohort_are_loaded_together(engine: Engine) -> None:
    """A pool of a cohort is loaded with all others of it, by any key; so is a whole cohort."""

    async def scenario() -> None:
        pools = [pool("a", cohort="x"), pool("b", cohort="x", wake_at=AT), pool("c", cohort="y")]
        await saved(engine, *pools, pool("d"), ticket(1, "a"), ticket(2, "d"))
        for keys, found in (
            (Keys(pools={"a"}), "ab"),
            (Keys(pools={"c"}), "c"),
            (Keys(pools={"d"}), "d"),
            (Keys(leases={lease_id(1)}), "ab"),
            (Keys(asked={("owner", "key-1")}), "ab"),
            (Keys(leases={lease_id(2)}), "d"),
            (Keys(due=AT), "ab"),
            (Keys(cohorts={"y"}), "c"),
            (Keys(cohorts={"x", "y"}, pools={"d"}), "abcd"),
        ):
            assert "".join(sorted((await facts_of(engine, keys)).pools)) == found, keys

    asyncio.run(scenario())


def test_units_of_owners_are_summed_under_a_quota(engine: Engine) -> None:
    """If a pool has a quota, each owner's units are summed, of granted leases only."""

    async def scenario() -> None:
        leases = [
            granted(ticket(1, Need("a", 2))),
            granted(ticket(2, Need("a", 1, "x", "y"), Need("a", 1))),
            granted(ticket(3, "a"), owner='o"ther'),
            ticket(4, "a"),
            ended(granted(ticket(5, "a"))),
            granted(ticket(6, "b")),
        ]
        await saved(engine, pool("a", quota=9), pool("b"), *leases)
        facts = await facts_of(engine, Keys(pools={"a", "b"}))
        assert facts.held == {("a", "owner"): 4, ("a", 'o"ther'): 1}
        facts = await facts_of(engine, Keys(quotas={"b"}))
        assert facts.held == {("b", "owner"): 1}  # the batch is to set a quota
        fewer = structs.replace(leases[0], needs=(Need("a", 1),))
        await saved(engine, fewer)
        facts = await facts_of(engine, Keys(pools={"a"}))
        assert facts.held["a", "owner"] == 3

    asyncio.run(scenario())


def test_renewals_move_deadlines_and_nothing_else(engine: Engine) -> None:
    """A renewed lease is due later, without a revision; its hold still ends it."""

    async def scenario() -> None:
        plain, held, kept = (
            granted(ticket(1, "a")),
            granted(ticket(2, "a"), hold_until=Instant(AT + 2 * MINUTE)),
            granted(ticket(3, "a"), keep=True),
        )
        revision = await saved(engine, pool("a"), plain, held, kept)
        later = Instant(AT + 5 * MINUTE)
        heard = Changes(heard={lease.id: later for lease in (plain, held, kept)})
        keys = Keys(leases={plain.id, held.id, kept.id})
        assert (await run(engine, keys, lambda _: heard))[0] == 0
        window = await engine.read(changes_window(revision, 1 << 40, 9))
        assert (window.revision, window.rows) == (revision, [])
        facts = await facts_of(engine, keys)
        assert {lease.heard_until for lease in facts.leases.values()} == {later}
        assert (await facts_of(engine, Keys(due=Instant(AT + 2 * MINUTE - 1)))).due == []
        assert (await facts_of(engine, Keys(due=Instant(AT + 2 * MINUTE)))).due == [held.id]
        assert (await facts_of(engine, Keys(due=later))).due == [held.id, plain.id]
        await saved(engine, ended(facts.leases[plain.id]))
        assert (await facts_of(engine, keys)).leases[plain.id].heard_until == later

    asyncio.run(scenario())


def test_the_earliest_due_are_loaded_first(engine: Engine) -> None:
    """At most `DUE_MAX` are loaded, the earliest first, and ended leases never."""

    async def scenario() -> None:
        leases = [
            ticket(n, "a", heard_until=Instant(AT + (n * 7) % 1_000)) for n in range(DUE_MAX + 5)
        ]
        await saved(engine, pool("a"), *leases, ended(ticket(9_999, "a", heard_until=AT)))
        facts = await facts_of(engine, Keys(due=Instant(AT + 1_000)))
        by_due = sorted(leases, key=lambda lease: (lease.heard_until or 0, lease.id))
        deadlines = [facts.leases[lease].heard_until for lease in facts.due]
        assert deadlines == [lease.heard_until for lease in by_due[:DUE_MAX]]
        assert await engine.read(reads.next_due_load()) == (AT, True)

    asyncio.run(scenario())


def test_the_next_due_time(engine: Engine) -> None:
    """It is that of the next lease or of the next pool to be woken, whichever is earlier."""

    async def scenario() -> None:
        assert await engine.read(reads.next_due_load()) == (None, False)
        await saved(engine, pool("a", wake_at=Instant(AT + 5)))
        assert await engine.read(reads.next_due_load()) == (AT + 5, False)
        await saved(engine, ticket(1, "a", heard_until=Instant(AT + 3)))
        assert await engine.read(reads.next_due_load()) == (AT + 3, True)
        await saved(engine, ended(ticket(1, "a", heard_until=Instant(AT + 3))))
        assert await engine.read(reads.next_due_load()) == (AT + 5, False)

    asyncio.run(scenario())


def test_an_outage_postpones(engine: Engine) -> None:
    """A lease postponed by an outage is due later once it was looked at, and is unchanged."""

    async def scenario() -> None:
        lease = ticket(1, "a", ttl=None, heard_until=Instant(AT + 5))
        await saved(engine, pool("a"), lease)
        timeline = Timeline(downtime=MINUTE)
        looked = Changes(postponed={lease.id})
        keys = Keys(due=Instant(AT + 5))
        assert (await run(engine, keys, lambda _: looked, timeline))[0] == 0
        assert (await facts_of(engine, keys)).due == []
        facts = await facts_of(engine, Keys(due=Instant(AT + 5 + MINUTE)))
        assert facts.leases == {lease.id: lease}
        assert facts.timeline == timeline

    asyncio.run(scenario())


def test_a_lease_that_has_left_a_pool(engine: Engine) -> None:
    """A lease without slots in a pool occupies nothing there, and continues in the others."""

    async def scenario() -> None:
        lease = granted(ticket(1, "a", "b", "c"), slots={"a": ("s",), "b": ("s",), "c": ("s",)})
        other = granted(ticket(2, "a", "b"), slots={"a": ("t",), "b": ("t",)})
        await saved(engine, pool("a", quota=9), pool("b", quota=9), pool("c"), lease, other)
        left = structs.replace(lease, needs=(Need("b", 1),), slots={"b": ("s",)})
        await saved(engine, left, other)
        facts = await facts_of(engine, Keys(pools={"a", "b"}))
        assert facts.held == {("a", "owner"): 1, ("b", "owner"): 2}
        assert (await facts_of(engine, Keys(ends={"a"}))).leases.keys() == {other.id}
        await saved(engine, ended(left), ended(other))
        for name in "abc":
            assert (await facts_of(engine, Keys(ends={name}))).leases == {}

    asyncio.run(scenario())


def test_sizes_of_ended_leases(engine: Engine) -> None:
    """They are added up some at a time, those of one moment together, and live ones not at all."""

    async def scenario() -> None:
        await saved(engine, pool("p"), ticket(1, "p"), granted(ticket(2, "p")))
        assert await engine.read_aside(reads.ended_sizes_load(Instant(0), 2)) is None
        gone = [ticket(n, "p", labels={"a": "\u00e9" * n}) for n in range(3, 8)]
        times = (5, 6, 6, 6, 9)
        gone = [ended(one, at) for one, at in zip(gone, times, strict=True)]
        await saved(engine, *gone)
        sizes = [len(lease_row(one)[-1].encode()) + reads.LEASE_ROWS_BYTES for one in gone]
        first = await engine.read_aside(reads.ended_sizes_load(Instant(0), 2))
        assert first == (6, 4, sum(sizes[:4]))
        assert await engine.read_aside(reads.ended_sizes_load(Instant(6), 2)) == (9, 1, sizes[4])
        assert await engine.read_aside(reads.ended_sizes_load(Instant(9), 2)) is None

    asyncio.run(scenario())


def test_tickets_of_a_project_are_counted_together(engine: Engine) -> None:
    """With an owner, all owners of its project are counted, but none whose name begins so."""
    crowded = pool("crowded", spec=PoolSpec(1, MINUTE, MINUTE, queue_max=20), waiting=12)
    owners = ("a/b/x", "a/b/y", "a/b", "a/b/c/x", "a/bc/x", "a/B/x", "x", "a//x")
    tickets = [ticket(n, "crowded", owner=owner) for n, owner in enumerate(owners, 1)]

    async def counted(*owners: str) -> set[str]:
        asked = {(owner, "k") for owner in owners}
        facts = await facts_of(engine, Keys(pools={"crowded"}, asked=asked, waiters={*owners}))
        assert all(pool == "crowded" and count == 1 for (pool, _), count in facts.waits.items())
        return {owner for _, owner in facts.waits}

    async def scenario() -> None:
        await saved(engine, crowded, *tickets)
        assert await counted("a/b/z") == {"a/b/x", "a/b/y"}
        assert await counted("x", "a/c") == {"x", "a/b"}
        assert await counted("a//z") == {"a//x"}
        assert await counted("z") == set()

    asyncio.run(scenario())


def test_tickets_of_an_owner_are_counted_if_they_may_exceed_a_limit(engine: Engine) -> None:
    """Waiting tickets are counted by pool and owner, but not in lines below the limit."""
    crowded = pool("crowded", spec=PoolSpec(1, MINUTE, MINUTE, queue_max_per_owner=2), waiting=3)
    roomy = pool("roomy", spec=PoolSpec(1, MINUTE, MINUTE, queue_max_per_owner=9), waiting=1)
    plain = pool("plain", spec=PoolSpec(1, MINUTE, MINUTE), waiting=1)
    tickets = [
        ticket(1, "crowded", owner="a"),
        ticket(2, "crowded", "roomy", owner="a"),
        ticket(3, "crowded", "plain", owner="b"),
        granted(ticket(4, "crowded", owner="a")),
        ended(ticket(5, "crowded", owner="a")),
    ]
    names = {"crowded", "roomy", "plain"}

    async def counted(*asked: tuple[str, str]) -> dict[tuple[str, str], int]:
        waiters = {owner for owner, _ in asked}
        return (await facts_of(engine, Keys(pools=names, asked={*asked}, waiters=waiters))).waits

    async def scenario() -> None:
        await saved(engine, crowded, roomy, plain, *tickets)
        assert await counted() == {}
        assert await counted(("a", "x")) == {("crowded", "a"): 2}
        assert await counted(("a", "x"), ("b", "x"), ("c", "x")) == {
            ("crowded", "a"): 2,
            ("crowded", "b"): 1,
        }
        many = await counted(*(("a", f"x{n}") for n in range(9)))
        assert many == {("crowded", "a"): 2, ("roomy", "a"): 1}

    asyncio.run(scenario())
