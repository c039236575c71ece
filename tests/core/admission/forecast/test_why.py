"""The standing of a ticket: position, code, reason and estimate."""

import pytest
from msgspec import structs

from moorage.core.admission import leases
from moorage.core.admission.bars import silence_ends
from moorage.core.admission.forecast.eta import Holder, LinePlace, Outlook, Queue, Waiter, queue_of
from moorage.core.admission.forecast.holders import Holders, Holding
from moorage.core.admission.forecast.why import (
    CODES,
    Evidence,
    Standing,
    binding,
    floors_of,
    standing,
    view_of,
)
from moorage.core.admission.model import Lease, Need, Pacing
from moorage.core.admission.units import limit_of, units_by_pool
from moorage.core.clock import SECOND, Instant
from moorage.core.counting import span
from tests.core.admission.build import START, World, make_ask

HELD = tuple(float(seconds) for seconds in range(100, 201))
HOLDERS = (("ci-a", 30), ("ci-b", 12), ("ci-c", 5))
EVIDENCE = {"p": Evidence(HELD, Holders(tuple(Holding(*one) for one in HOLDERS), 1))}


@pytest.fixture
def world() -> World:
    """Return a world with pool p of two units."""
    made = World()
    made.pool("p", 2)
    return made


def standing_of(world: World, key: str, evidence: dict[str, Evidence] | None = None) -> Standing:
    """Return the standing of a ticket."""
    line = sorted(
        (lease for lease in world.facts.leases.values() if lease.state == "waiting"),
        key=lambda lease: (-lease.priority, lease.arrival),
    )
    queues = {
        name: queue_of(world.facts, world.moment, pool, [_waiter(x, name) for x in _in(line, name)])
        for name, pool in world.facts.pools.items()
    }
    given = evidence or {}
    plain = {
        name: view_of(world.facts, pool, evidence_of(world, name, queues[name], given.get(name)))
        for name, pool in world.facts.pools.items()
    }
    views = {}
    for name, pool in world.facts.pools.items():
        others = {other: view for other, view in plain.items() if other != name}
        floors = floors_of(world.facts, world.moment, queues[name].gangs, queues, others)
        views[name] = view_of(world.facts, pool, plain[name].evidence, floors)
    ticket = world.lease(key)
    found = {need.pool: queues[need.pool].place_of(ticket, need.pool) for need in ticket.needs}
    answer = standing(world.facts, world.moment, ticket, found, views)
    assert answer.code in CODES
    return answer


def _in(line: list[Lease], name: str) -> list[Lease]:
    return [lease for lease in line if name in units_by_pool(lease.needs)]


def _waiter(lease: Lease, name: str) -> Waiter:
    """Return a ticket as the store would read it."""
    whole = len(units_by_pool(lease.needs)) > 1 or lease.allocations is not None
    silent = silence_ends(lease) if lease.pull else None
    units = units_by_pool(lease.needs)[name]
    return Waiter(lease.id, units, lease.owner, lease.forced, silent, lease if whole else None)


def evidence_of(world: World, name: str, queue: Queue, given: Evidence | None) -> Evidence:
    """Return the given evidence with the holders and the line, as the store would read them."""
    holding = sorted(
        (
            Holder(units_by_pool(lease.needs)[name], lease.granted_at, lease.hold_until)
            for lease in world.facts.leases.values()
            if lease.state == "granted" and name in units_by_pool(lease.needs)
        ),
        key=lambda holder: holder.granted_at,
    )
    return structs.replace(given or Evidence(), holding=tuple(holding), line=queue.line)


def test_all_units_are_held(world: World) -> None:
    """The reason names the holders, and for later tickets how many are ahead."""
    world.ask("full", {"p": 2})
    world.ask("a")
    world.ask("b")
    world.ask("c")
    answer = standing_of(world, "a", EVIDENCE)
    assert (answer.position, answer.code) == (1, "limit")
    assert answer.reason == (
        "first in line; limit: 2 of 2 units of p are held by ci-a (30), ci-b (12), ci-c (5)"
        " and 1 more"
    )
    answer = standing_of(world, "c")
    assert (answer.position, answer.code) == (3, "ahead")
    assert answer.reason == "2 ahead; limit: 2 of 2 units of p are held"


def test_pacing_gives_the_next_grant(world: World) -> None:
    """All tickets in the line get the time of the next grant."""
    world.pool("p", 9, pacing=Pacing(12 * SECOND))
    for key in ("x", "a", "b", "c", "d"):
        world.ask(key)
    assert standing_of(world, "a").code == "pacing"
    assert standing_of(world, "a").reason == "first in line; pacing: next grant in 12 s"
    assert standing_of(world, "d").reason == "3 ahead; pacing: next grant in 12 s"


def test_cooldown_gives_the_remaining_time(world: World) -> None:
    """A unit in its cooldown is not reported as held, but with the rest of the cooldown."""
    world.pool("p", 1, cooldown=90 * SECOND)
    world.ask("x")
    world.release("x")
    world.ask("a")
    assert standing_of(world, "a").reason == (
        "first in line; resting: 1 freed unit of p in cooldown, the first for another 90 s"
    )
    assert standing_of(world, "a").eta_seconds == (90, 90)


def test_passed_over_tickets_get_the_reason(world: World) -> None:
    """Tickets above the limit, above a quota or in a paused pool have no estimate."""
    world.ask("x", {"p": 2})
    world.ask("wide", {"p": 2})
    world.pool("p", 1, quota=2)
    answer = standing_of(world, "wide", EVIDENCE)
    assert (answer.code, answer.eta_seconds) == ("above_limit", None)
    assert "asks for 2 units of p, but the limit is now 1" in answer.reason
    world.pool("p", 4, quota=2)
    answer = standing_of(world, "wide", EVIDENCE)
    assert (answer.code, answer.eta_seconds) == ("quota", None)
    assert answer.reason == "quota: me holds 2 of at most 2 units of p and asks for 2 more"
    world.pause("p")
    answer = standing_of(world, "wide", EVIDENCE)
    assert (answer.code, answer.eta_seconds) == ("paused", None)


def test_over_the_limit(world: World) -> None:
    """Above a lowered limit the code is `over`."""
    world.ask("x", {"p": 2})
    world.pool("p", 1)
    world.ask("a")
    answer = standing_of(world, "a")
    assert (answer.code, answer.reason) == (
        "over",
        "first in line; over the limit: 2 of 1 unit of p are held",
    )


def test_a_large_ticket_sees_its_missing_units(world: World) -> None:
    """A large ticket sees its free units; later tickets see that these are set aside."""
    world.ask("x")
    world.ask("two", {"p": 2})
    world.ask("one")
    answer = standing_of(world, "two")
    assert answer.code == "limit"
    assert answer.reason == ("first in line; limit: 1 of 2 units of p is held; 2 needed, 1 free")
    answer = standing_of(world, "one")
    assert (answer.code, answer.reason) == ("set_aside", "1 ahead; 1 free, set aside for them")


def test_a_gang_sees_the_binding_pool(world: World) -> None:
    """The reason names the pool that binds, and the units set aside in the other."""
    world.pool("q", 1)
    world.ask("x", {"q": 1})
    world.ask("before", {"q": 1})
    world.ask("gang", {"p": 2, "q": 1})
    answer = standing_of(world, "gang")
    assert (answer.position, answer.code) == (2, "ahead")
    assert answer.reason == "1 ahead in q; limit: 1 of 1 unit of q is held; 2 of p set aside for it"


def test_capacity_quotes_the_ledger(world: World) -> None:
    """The reason contains the ledger's message."""
    world.claim = lambda lease: "no room for 8 VCPU"
    world.ask("a", allocations="{}")
    answer = standing_of(world, "a")
    assert (answer.code, answer.reason) == ("capacity", "waiting for capacity: no room for 8 VCPU")


def test_a_pull_ticket_sees_its_turn(world: World) -> None:
    """A pull ticket whose turn has come has the code `poll`, another ticket `next`."""
    world.ask("full", {"p": 2})
    until = world.moment.alive + 30 * SECOND
    world.ask("a", owner="boskos:x", pull=True, heard_until=until)
    world.release("full")
    assert standing_of(world, "a").code == "poll"
    world.pool("q", 1)
    made, _ = leases.acquire(world.facts, world.moment, make_ask("b", {"q": 1}))
    world.facts.apply(made)
    assert standing_of(world, "b").code == "next"


def test_slots_are_counted_by_state(world: World) -> None:
    """The reason counts unowned slots that are not free, by state."""
    world.slots("s", "a")
    world.slots("s", "b", "c", state="dirty")
    world.ask("x", {"s": 1})
    world.ask("a", {"s": 1})
    assert standing_of(world, "a").reason == (
        "first in line; limit: 1 of 3 units of s is held, 2 dirty"
    )
    assert binding(world.facts, world.moment, world.facts.pools["s"], state="dirty") is None


def test_an_eta_needs_evidence_or_a_hold(world: World) -> None:
    """An estimate needs past leases or a hold of the pool."""
    world.ask("x", {"p": 2})
    world.ask("a")
    assert standing_of(world, "a").eta_seconds is None
    assert not standing_of(world, "a").overdue
    assert standing_of(world, "a", EVIDENCE).eta_seconds == (110.0, 190.0)
    world.pool("p", 2, hold=60 * SECOND)
    assert standing_of(world, "a").eta_seconds == (0.0, 60.0)


def test_an_eta_never_falls_with_the_position(world: World) -> None:
    """Estimates rise with the position, with pacing, cooldown and tickets of any size."""
    world.pool("p", 3, pacing=Pacing(7 * SECOND, 2, SECOND), cooldown=5 * SECOND)
    world.ask("x", {"p": 3})
    pool = world.facts.pools["p"]
    last = (0.0, 0.0)
    units = 0
    line = [1 + rank % 3 for rank in range(1, 60)]
    holders = [Holder(3, Instant(START), None)]
    outlook = Outlook(pool, limit_of(world.facts, pool), line[:-1], HELD, holders)
    for rank, own in enumerate(line, 1):
        units += own
        found = outlook.of("free", 0, (), Instant(START), LinePlace(rank, units), own).seconds
        assert found is not None
        assert found[0] <= found[1]
        assert found[0] >= last[0]
        assert found[1] >= last[1]
        last = found


def test_an_eta_of_a_paced_pool_is_its_pacing(world: World) -> None:
    """With enough units only pacing counts, and the range is as narrow as the jitter."""
    world.pool("p", 100, pacing=Pacing(10 * SECOND, 1, 2 * SECOND))
    world.ask("x", hold=5 * SECOND)
    paid = (world.facts.pools["p"].paced_at - START) / SECOND
    for n in range(4):
        world.ask(f"a{n}")
    assert standing_of(world, "a0").eta_seconds == (paid, paid)
    assert standing_of(world, "a3").eta_seconds == (paid + 30, paid + 36)


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_the_estimate_contains_the_grant(limit: int) -> None:
    """If holders behave as before, every grant falls into the first estimate."""
    world = World()
    world.pool("p", limit)
    hold = 40
    evidence = {"p": Evidence((float(hold),) * 5)}
    for n in range(limit):
        world.ask(f"x{n}", hold=hold * SECOND)
    estimates = {}
    for n in range(3 * limit):
        world.ask(f"a{n}", hold=hold * SECOND)
        estimates[f"a{n}"] = standing_of(world, f"a{n}", evidence).eta_seconds
    world.wait(200)
    for key, found in estimates.items():
        granted_at = world.lease(key).granted_at
        assert granted_at is not None
        assert found is not None
        assert found[0] <= (granted_at - START) / SECOND <= found[1], (key, found)


def test_spans() -> None:
    """`span` formats a duration and rounds it up."""
    expected = {0: "1 s", 1: "1 s", 12: "12 s", 119: "119 s", 120: "2 min", 121: "3 min"}
    expected |= {7_199: "2 h", 7_260: "2 h 1 min", 86_400: "24 h"}
    expected |= {172_799: "2 d", 172_800: "2 d", 172_801: "2 d 1 h", 5 * 86_400 - 1: "5 d"}
    assert {seconds: span(seconds * SECOND) for seconds in expected} == expected


def test_needs_of_two_states_are_one_place() -> None:
    """Needs of one pool in two states are added up, since the pool has one line."""
    needs = (Need("s", 1), Need("s", 2, "dirty"))
    assert units_by_pool(needs) == {"s": 3}


def test_passed_over_tickets_are_not_counted(world: World) -> None:
    """Tickets that are passed over count neither for positions nor for estimates."""
    world.pool("p", 2, quota=1)
    world.ask("x", owner="greedy")
    world.ask("y", owner="other")
    for n in range(50):
        world.ask(f"again-{n}", owner="greedy")
    world.ask("next", owner="third")
    answer = standing_of(world, "next", {"p": Evidence((100.0,) * 9)})
    assert (answer.position, answer.eta_seconds) == (1, (100.0, 100.0))
    assert answer.reason.startswith("first in line; limit: 2 of 2 units")
    assert standing_of(world, "again-7").code == "quota"
    world.release("y")
    assert world.states()["next"] == "g"


def test_a_quota_bounds_the_tickets_ahead(world: World) -> None:
    """Of an owner's ten tickets only as many count as its quota permits."""
    world.pool("p", 2, quota=1)
    world.ask("x", owner="first")
    world.ask("y", owner="second")
    for n in range(10):
        world.ask(f"many-{n}", owner="many")
    world.ask("next", owner="next")
    assert standing_of(world, "next").position == 2


def test_a_misfit_is_not_counted(world: World) -> None:
    """A misfit does not count for the positions of others."""
    world.claim = lambda _: "no host has room"
    for n in range(3):
        world.ask(f"large-{n}", allocations="much")
    world.ask("x", {"p": 2})
    world.ask("next")
    assert standing_of(world, "next").position == 1
    assert standing_of(world, "large-0").code == "capacity"


def test_a_silent_client_is_not_counted(world: World) -> None:
    """A pull ticket that is no longer polled does not count for positions."""
    world.ask("x", {"p": 2})
    until = Instant(START + 30 * SECOND)
    world.ask("gone", owner="boskos:x", pull=True, heard_until=until)
    world.ask("next")
    assert standing_of(world, "next").position == 2
    world.wait(11)
    assert standing_of(world, "next").position == 1


def test_a_pause_keeps_all_positions(world: World) -> None:
    """A pause does not change positions, since it concerns all tickets."""
    world.ask("x", {"p": 2})
    world.ask("a")
    world.ask("b")
    world.pause("p")
    assert [standing_of(world, key).position for key in "ab"] == [1, 2]


def test_a_ticket_ahead_may_wait_for_another_pool(world: World) -> None:
    """The estimate behind a gang depends on the other pool of the gang."""
    world.pool("q", 1)
    world.ask("q-holder", {"q": 1})
    world.ask("p-holder", {"p": 1})
    world.ask("gang", {"p": 1, "q": 1})
    world.ask("next", {"p": 1})
    evidence = {"p": Evidence((10.0,) * 9), "q": Evidence((300.0,) * 9)}
    assert standing_of(world, "gang", evidence).eta_seconds == (300.0, 300.0)
    assert standing_of(world, "next", evidence).eta_seconds == (10.0, 10.0)
    world.ask("both", {"p": 2})
    assert standing_of(world, "both", evidence).eta_seconds == (310.0, 310.0)
    assert standing_of(world, "both", {"p": Evidence((10.0,) * 9)}).eta_seconds is None


def test_a_gang_takes_its_units_only_once(world: World) -> None:
    """Units that are set aside for a gang are not counted again when it starts."""
    world.pool("q", 1)
    world.ask("q-holder", {"q": 1})
    world.ask("gang", {"p": 1, "q": 1})
    world.ask("p-holder", {"p": 1})
    for n in range(3):
        world.ask(f"next-{n}", {"p": 1})
    evidence = {"p": Evidence((10.0,) * 9), "q": Evidence((300.0,) * 9)}
    estimates = [standing_of(world, f"next-{n}", evidence).eta_seconds for n in range(3)]
    assert estimates == [(10.0, 10.0), (20.0, 20.0), (30.0, 30.0)]


def test_a_pause_that_has_an_end_is_waited_for(world: World) -> None:
    """The estimate begins at its end; other reasons, and pauses without one, leave it unknown."""
    world.pool("p", 2, ttl=3_600 * SECOND, hold=600 * SECOND, quota=3)
    world.pause("p", seconds=60)
    for key in ("a", "b", "c"):
        world.ask(key, owner=key)
    first, last = standing_of(world, "a"), standing_of(world, "c")
    assert (first.code, first.eta_seconds) == ("paused", (60.0, 60.0))
    assert first.reason == "paused: p grants nothing until its pause ends"
    assert last.eta_seconds == (660.0, 660.0)
    world.wait(45)
    assert standing_of(world, "a").eta_seconds == (15.0, 15.0)
    world.pause("p")
    without_end = standing_of(world, "a")
    assert without_end.eta_seconds is None
    world.pause("p", seconds=60)
    world.ask("many", {"p": 2}, owner="many")
    world.pool("p", 2, ttl=3_600 * SECOND, hold=600 * SECOND, quota=1)
    assert standing_of(world, "many").eta_seconds is None  # nor after the pause


def test_the_latest_of_several_pauses_decides(world: World) -> None:
    """One that has no end among them leaves the time unknown; a forced ticket waits for none."""
    world.pool("q", 2)
    world.pause("p", seconds=60)
    world.pause("q", seconds=90)
    world.ask("a", {"p": 1, "q": 1})
    assert standing_of(world, "a").eta_seconds == (90, 90)
    world.pause("q")
    assert standing_of(world, "a").eta_seconds is None
    view = view_of(world.facts, world.facts.pools["p"], Evidence(line=(1,)))
    own = (world.moment.at, LinePlace(1, 1), 1)
    assert view.outlook.of("free", 2, (), *own).seconds == (60, 60)
    assert view.outlook.of("free", 2, (), *own, forced=True).seconds == (0, 0)
