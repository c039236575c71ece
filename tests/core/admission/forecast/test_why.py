"""Where a ticket stands, why, and for how long: codes for programs, sentences for people."""

import pytest
from msgspec import structs

from moorage.core.admission import leases
from moorage.core.admission.bars import silence_ends
from moorage.core.admission.forecast.eta import Holder, Outlook, Place
from moorage.core.admission.forecast.queue_order import Queue, Waiter, queue_of
from moorage.core.admission.forecast.why import (
    CODES,
    Evidence,
    Standing,
    binding,
    floors_of,
    span,
    standing,
    view_of,
)
from moorage.core.admission.model import Lease, Need, Pacing
from moorage.core.admission.units import limit_of, units_by_pool
from moorage.core.clock import SECOND, Instant
from tests.core.admission.build import START, World, wish

HELD = tuple(float(seconds) for seconds in range(100, 201))
EVIDENCE = {"p": Evidence(HELD, (("ci-a", 30), ("ci-b", 12), ("ci-c", 5), ("ci-d", 3)))}


@pytest.fixture
def world() -> World:
    """Return a world with pool p of two units."""
    made = World()
    made.pool("p", 2)
    return made


def stands(world: World, key: str, evidence: dict[str, Evidence] | None = None) -> Standing:
    """Return where a ticket stands."""
    line = sorted(
        (lease for lease in world.facts.leases.values() if lease.state == "waiting"),
        key=lambda lease: (-lease.priority, lease.arrival),
    )
    queues = {
        name: queue_of(world.facts, world.moment, pool, [_waiter(x, name) for x in _in(line, name)])
        for name, pool in world.facts.pools.items()
    }
    told_of = evidence or {}
    plain = {
        name: view_of(world.facts, pool, seen(world, name, queues[name], told_of.get(name)))
        for name, pool in world.facts.pools.items()
    }
    views = {}
    for name, pool in world.facts.pools.items():
        others = {other: view for other, view in plain.items() if other != name}
        floors = floors_of(world.facts, world.moment, queues[name].gangs, queues, others)
        views[name] = view_of(world.facts, pool, plain[name].evidence, floors)
    ticket = world.lease(key)
    found = {need.pool: queues[need.pool].place_of(ticket, need.pool) for need in ticket.needs}
    told = standing(world.facts, world.moment, ticket, found, views)
    assert told.code in CODES
    return told


def _in(line: list[Lease], name: str) -> list[Lease]:
    return [lease for lease in line if name in units_by_pool(lease.needs)]


def _waiter(lease: Lease, name: str) -> Waiter:
    """Return a ticket as the store reads it."""
    whole = len(units_by_pool(lease.needs)) > 1 or lease.allocations is not None
    silent = silence_ends(lease) if lease.pull else None
    units = units_by_pool(lease.needs)[name]
    return Waiter(lease.id, units, lease.owner, lease.forced, silent, lease if whole else None)


def seen(world: World, name: str, queue: Queue, told: Evidence | None) -> Evidence:
    """Return what there is to see of a pool, as the store reads it, besides what a test tells."""
    holding = sorted(
        (
            Holder(units_by_pool(lease.needs)[name], lease.granted_at, lease.hold_until)
            for lease in world.facts.leases.values()
            if lease.state == "granted" and name in units_by_pool(lease.needs)
        ),
        key=lambda holder: holder.granted_at,
    )
    return structs.replace(told or Evidence(), holding=tuple(holding), line=queue.line)


def test_everything_is_held(world: World) -> None:
    """The first is told who holds it, those behind how many are before them."""
    world.ask("full", {"p": 2})
    world.ask("a")
    world.ask("b")
    world.ask("c")
    told = stands(world, "a", EVIDENCE)
    assert (told.position, told.code) == (1, "limit")
    assert told.reason == (
        "first in line; limit: 2 of 2 units of p are held by ci-a (30), ci-b (12), ci-c (5)"
        " and 1 more"
    )
    told = stands(world, "c")
    assert (told.position, told.code) == (3, "ahead")
    assert told.reason == "2 ahead; limit: 2 of 2 units of p are held"


def test_pacing_says_when_the_next_is_granted(world: World) -> None:
    """In the words of the pool, to everybody in the line."""
    world.pool("p", 9, pacing=Pacing(12 * SECOND))
    for key in ("x", "a", "b", "c", "d"):
        world.ask(key)
    assert stands(world, "a").code == "pacing"
    assert stands(world, "a").reason == "first in line; pacing: next grant in 12 s"
    assert stands(world, "d").reason == "3 ahead; pacing: next grant in 12 s"


def test_a_resting_unit_says_for_how_long(world: World) -> None:
    """And not that somebody holds it."""
    world.pool("p", 1, cooldown=90 * SECOND)
    world.ask("x")
    world.release("x")
    world.ask("a")
    assert stands(world, "a").reason == (
        "first in line; resting: 1 freed unit of p in cooldown, the first for another 90 s"
    )
    assert stands(world, "a").eta_seconds == (90, 90)


def test_who_is_passed_over_is_told_why(world: World) -> None:
    """Above the limit, above a quota, in a paused pool: there is no telling until when."""
    world.ask("x", {"p": 2})
    world.ask("wide", {"p": 2})
    world.pool("p", 1, quota=2)
    told = stands(world, "wide", EVIDENCE)
    assert (told.code, told.eta_seconds) == ("above_limit", None)
    assert "asks for 2 units of p, but the limit is now 1" in told.reason
    world.pool("p", 4, quota=2)
    told = stands(world, "wide", EVIDENCE)
    assert (told.code, told.eta_seconds) == ("quota", None)
    assert told.reason == "quota: me holds 2 of at most 2 units of p and asks for 2 more"
    world.pause("p")
    told = stands(world, "wide", EVIDENCE)
    assert (told.code, told.eta_seconds) == ("paused", None)


def test_over_the_limit(world: World) -> None:
    """A lowered limit is named as what it is."""
    world.ask("x", {"p": 2})
    world.pool("p", 1)
    world.ask("a")
    told = stands(world, "a")
    assert (told.code, told.reason) == (
        "over",
        "first in line; over the limit: 2 of 1 unit of p are held",
    )


def test_a_large_ticket_is_told_what_it_lacks(world: World) -> None:
    """The units that it waits for are free in part; those behind see them set aside."""
    world.ask("x")
    world.ask("two", {"p": 2})
    world.ask("one")
    told = stands(world, "two")
    assert told.code == "limit"
    assert told.reason == ("first in line; limit: 1 of 2 units of p is held; 2 needed, 1 free")
    told = stands(world, "one")
    assert (told.code, told.reason) == ("set_aside", "1 ahead; 1 free, set aside for them")


def test_a_gang_is_told_which_pool_binds(world: World) -> None:
    """And what lies idle for it meanwhile."""
    world.pool("q", 1)
    world.ask("x", {"q": 1})
    world.ask("before", {"q": 1})
    world.ask("gang", {"p": 2, "q": 1})
    told = stands(world, "gang")
    assert (told.position, told.code) == (2, "ahead")
    assert told.reason == "1 ahead in q; limit: 1 of 1 unit of q is held; 2 of p set aside for it"


def test_capacity_is_what_the_ledger_said(world: World) -> None:
    """Its own words stand in the reason."""
    world.claim = lambda lease: "no room for 8 VCPU"
    world.ask("a", allocations="{}")
    told = stands(world, "a")
    assert (told.code, told.reason) == ("capacity", "waiting for capacity: no room for 8 VCPU")


def test_a_poller_is_told_that_its_turn_has_come(world: World) -> None:
    """It is granted in its next poll; another one is granted at any moment."""
    world.ask("full", {"p": 2})
    world.ask("a", pull=True, heard_until=world.moment.alive + 30 * SECOND)
    world.release("full")
    assert stands(world, "a").code == "poll"
    world.pool("q", 1)
    made, _ = leases.ask(world.facts, world.moment, wish("b", {"q": 1}))
    world.facts.apply(made)
    assert stands(world, "b").code == "next"


def test_slots_are_told_by_state(world: World) -> None:
    """What nobody holds and is not free is named."""
    world.slots("s", "a")
    world.slots("s", "b", "c", state="dirty")
    world.ask("x", {"s": 1})
    world.ask("a", {"s": 1})
    assert stands(world, "a").reason == ("first in line; limit: 1 of 3 units of s is held, 2 dirty")
    assert binding(world.facts, world.moment, world.facts.pools["s"], state="dirty") is None


def test_an_eta_needs_evidence_or_a_hold(world: World) -> None:
    """Without either there is nothing to tell from."""
    world.ask("x", {"p": 2})
    world.ask("a")
    assert stands(world, "a").eta_seconds is None
    assert not stands(world, "a").overdue
    assert stands(world, "a", EVIDENCE).eta_seconds == (110.0, 190.0)
    world.pool("p", 2, hold=60 * SECOND)
    assert stands(world, "a").eta_seconds == (0.0, 60.0)


def test_an_eta_never_falls_with_the_position(world: World) -> None:
    """Over rounds of holders, pacing, rests and tickets of any size, those beyond the line, too."""
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
        found = outlook.of("free", 0, (), Instant(START), Place(rank, units), own).seconds
        assert found is not None
        assert found[0] <= found[1]
        assert found[0] >= last[0]
        assert found[1] >= last[1]
        last = found


def test_an_eta_of_a_paced_pool_is_its_pacing(world: World) -> None:
    """With enough units the range is as narrow as the jitter."""
    world.pool("p", 100, pacing=Pacing(10 * SECOND, 1, 2 * SECOND))
    world.ask("x", hold=5 * SECOND)
    paid = (world.facts.pools["p"].paced_at - START) / SECOND
    for n in range(4):
        world.ask(f"a{n}")
    assert stands(world, "a0").eta_seconds == (paid, paid)
    assert stands(world, "a3").eta_seconds == (paid + 30, paid + 36)


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_the_range_holds_what_happens(limit: int) -> None:
    """For holders that behave as those before, every grant falls into the range told at first."""
    world = World()
    world.pool("p", limit)
    hold = 40
    evidence = {"p": Evidence((float(hold),) * 5)}
    for n in range(limit):
        world.ask(f"x{n}", hold=hold * SECOND)
    told = {}
    for n in range(3 * limit):
        world.ask(f"a{n}", hold=hold * SECOND)
        told[f"a{n}"] = stands(world, f"a{n}", evidence).eta_seconds
    world.wait(200)
    for key, found in told.items():
        granted_at = world.lease(key).granted_at
        assert granted_at is not None
        assert found is not None
        assert found[0] <= (granted_at - START) / SECOND <= found[1], (key, found)


def test_spans() -> None:
    """A duration in words."""
    told = {0: "1 s", 1: "1 s", 12: "12 s", 119: "119 s", 120: "2 min", 121: "3 min"}
    told |= {7_199: "2 h", 7_260: "2 h 1 min", 86_400: "24 h"}
    assert {seconds: span(seconds * SECOND) for seconds in told} == told


def test_needs_of_two_states_are_one_place() -> None:
    """A pool that is needed in two states is one line."""
    needs = (Need("s", 1), Need("s", 2, "dirty"))
    assert units_by_pool(needs) == {"s": 3}


def test_who_is_passed_over_is_not_counted(world: World) -> None:
    """Tickets that wait for something of their own make nobody behind them wait."""
    world.pool("p", 2, quota=1)
    world.ask("x", owner="greedy")
    world.ask("y", owner="other")
    for n in range(50):
        world.ask(f"again-{n}", owner="greedy")
    world.ask("next", owner="third")
    told = stands(world, "next", {"p": Evidence((100.0,) * 9)})
    assert (told.position, told.eta_seconds) == (1, (100.0, 100.0))
    assert told.reason.startswith("first in line; limit: 2 of 2 units")
    assert stands(world, "again-7").code == "quota"
    world.release("y")
    assert world.states()["next"] == "g"


def test_of_one_owner_only_so_many_are_ahead_as_its_quota_lets_start(world: World) -> None:
    """Of ten tickets of an owner with a quota of one, one will be granted before who comes next."""
    world.pool("p", 2, quota=1)
    world.ask("x", owner="first")
    world.ask("y", owner="second")
    for n in range(10):
        world.ask(f"many-{n}", owner="many")
    world.ask("next", owner="next")
    assert stands(world, "next").position == 2


def test_what_does_not_fit_into_the_ledger_is_not_counted(world: World) -> None:
    """A ticket that was tried and did not fit waits for capacity, and nobody waits for it."""
    world.claim = lambda _: "no host has room"
    for n in range(3):
        world.ask(f"large-{n}", allocations="much")
    world.ask("x", {"p": 2})
    world.ask("next")
    assert stands(world, "next").position == 1
    assert stands(world, "large-0").code == "capacity"


def test_a_silent_client_is_not_counted(world: World) -> None:
    """Nobody waits for a polling client that does not poll any more."""
    world.ask("x", {"p": 2})
    world.ask("gone", pull=True, heard_until=Instant(START + 30 * SECOND))
    world.ask("next")
    assert stands(world, "next").position == 2
    world.wait(11)
    assert stands(world, "next").position == 1


def test_a_pause_keeps_everybody_in_place(world: World) -> None:
    """It passes over all of them, so they are as far from the head as before."""
    world.ask("x", {"p": 2})
    world.ask("a")
    world.ask("b")
    world.pause("p")
    assert [stands(world, key).position for key in "ab"] == [1, 2]


def test_who_is_ahead_may_wait_for_another_pool(world: World) -> None:
    """Behind a ticket whose units are set aside until another pool frees its own."""
    world.pool("q", 1)
    world.ask("q-holder", {"q": 1})
    world.ask("p-holder", {"p": 1})
    world.ask("gang", {"p": 1, "q": 1})
    world.ask("next", {"p": 1})
    evidence = {"p": Evidence((10.0,) * 9), "q": Evidence((300.0,) * 9)}
    assert stands(world, "gang", evidence).eta_seconds == (300.0, 300.0)
    assert stands(world, "next", evidence).eta_seconds == (10.0, 10.0)
    world.ask("both", {"p": 2})
    assert stands(world, "both", evidence).eta_seconds == (310.0, 310.0)
    assert stands(world, "both", {"p": Evidence((10.0,) * 9)}).eta_seconds is None


def test_a_gang_takes_its_units_only_once(world: World) -> None:
    """Units that are set aside are those that it holds later; the others go round."""
    world.pool("q", 1)
    world.ask("q-holder", {"q": 1})
    world.ask("gang", {"p": 1, "q": 1})
    world.ask("p-holder", {"p": 1})
    for n in range(3):
        world.ask(f"next-{n}", {"p": 1})
    evidence = {"p": Evidence((10.0,) * 9), "q": Evidence((300.0,) * 9)}
    told = [stands(world, f"next-{n}", evidence).eta_seconds for n in range(3)]
    assert told == [(10.0, 10.0), (20.0, 20.0), (30.0, 30.0)]
