"""Preemption: who may have a lease asked to stop, when its units are free, and that it ends."""

import random

import pytest

from moorage.core.admission import expiry
from moorage.core.admission.model import (
    CONFIRM_WITHIN,
    Lease,
)
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.limits import GRACE_SECONDS_MAX
from moorage.core.pool_values import FairShare
from tests.core.admission.build import OPERATOR, Refused, World, make_ask
from tests.core.admission.sums import sums_differ

HOUR = 3_600 * SECOND
GRACE = 10 * SECOND


def shared(world: World, limit: int, **more: object) -> None:
    """Create or change pool `p`, whose leases last."""
    world.pool("p", limit, **({"ttl": HOUR} | more))


def test_a_higher_priority_has_a_lease_stopped_with_its_grace() -> None:
    """Its units are granted only when it has ended, as `preempted`, and then to that ticket."""
    world = World()
    shared(world, 1)
    world.ask("low", preemptible=GRACE)
    world.ask("high", priority=1)
    low = world.lease("low")
    assert (low.preempted_by, low.stop_until) == ("high", world.now + GRACE)
    assert world.states() == {"low": "g", "high": "w"}
    world.wait(9)
    assert world.states() == {"low": "g", "high": "w"}
    world.wait(2)
    assert world.states() == {"low": "preempted", "high": "g"}
    assert world.lease("low").detail == "for high"


def test_a_holder_that_stops_earlier_makes_room_earlier() -> None:
    """A release is a release."""
    world = World()
    shared(world, 1)
    world.ask("low", preemptible=GRACE)
    world.ask("high", priority=1)
    world.release("low")
    assert world.states() == {"low": "released", "high": "g"}


@pytest.mark.parametrize("priority", [0, -1])
def test_nobody_is_asked_for_an_equal_or_lower_priority(priority: int) -> None:
    """The control of the rule by priority."""
    world = World()
    shared(world, 1)
    world.ask("low", preemptible=GRACE)
    world.ask("other", priority=priority)
    assert world.lease("low").stop_until is None


def test_nobody_is_asked_who_did_not_permit_it() -> None:
    """The control: leases are not preemptible by default."""
    world = World()
    shared(world, 1)
    world.ask("low")
    world.ask("high", priority=1)
    assert world.lease("low").stop_until is None
    world.wait(60)
    assert world.states() == {"low": "g", "high": "w"}


def test_the_lowest_and_newest_are_asked_and_no_more_than_needed() -> None:
    """Of five, a ticket for two units needs two: the lowest priority, then the newest."""
    world = World()
    shared(world, 5)
    for n, priority in enumerate([0, 0, -1, 0, 1]):
        world.wait(1)
        world.ask(f"v{n}", priority=priority, preemptible=GRACE)
    world.ask("t", {"p": 2}, priority=1)
    asked = {key for key, one in world.facts.leases.items() if one.stop_until is not None}
    assert asked == {"v2", "v3"}


def test_what_is_free_or_stopping_already_counts() -> None:
    """A second batch asks nobody more; a later ticket asks for what it lacks itself."""
    world = World()
    shared(world, 3)
    for n in range(3):
        world.ask(f"v{n}", preemptible=GRACE)
    world.ask("t1", priority=1)
    world.sweep()
    world.ask("t0")
    assert sum(one.stop_until is not None for one in world.facts.leases.values()) == 1
    world.ask("t2", priority=1)
    assert sum(one.stop_until is not None for one in world.facts.leases.values()) == 2


def test_if_all_would_not_be_enough_nobody_is_asked() -> None:
    """Neither for the first in line, nor for a smaller one behind it, which could not start."""
    world = World()
    shared(world, 3)
    world.ask("own", {"p": 2})
    world.ask("v", preemptible=GRACE)
    world.ask("large", {"p": 2}, priority=1)
    world.ask("small", priority=1)
    assert world.lease("v").stop_until is None
    world.release("large")
    assert world.lease("v").stop_until is not None


def test_who_is_passed_over_asks_nobody() -> None:
    """A quota that is used up, and a paused pool."""
    world = World()
    shared(world, 2, quota=1)
    world.ask("v", preemptible=GRACE, owner="other")
    world.ask("mine")
    world.ask("more", priority=1)
    assert world.lease("v").stop_until is None
    world.pause("p")
    world.ask("third", priority=1, owner="third")
    assert world.lease("v").stop_until is None
    world.pause("p", False)
    assert world.lease("v").stop_until is not None


@pytest.mark.parametrize("any_of", [(), ({"p": 1}, {"q": 1})])
def test_who_is_silent_asks_nobody(any_of: tuple[dict[str, int], ...]) -> None:
    """It is passed over, also with alternatives; when it is polled, it asks."""
    world = World()
    shared(world, 1)
    world.pool("q", 1, ttl=HOUR)
    world.ask("first")
    world.ask("other", {"q": 1})
    until = world.moment.alive + 120 * SECOND
    polled = {"pull": True, "patience": 100 * SECOND, "heard_until": until}
    world.ask("high", any_of=any_of, priority=1, **polled)
    world.ask("low", preemptible=GRACE)
    world.wait(21)
    world.release("first")
    assert world.states()["low"] == "g"
    world.sweep()
    assert world.lease("low").stop_until is None
    world.poll("high", 120)
    assert world.lease("low").preempted_by == "high"


def test_a_preempted_lease_that_is_retried_waits_and_does_not_preempt_back() -> None:
    """Its ticket has its old place, behind the one for which it stopped."""
    world = World()
    shared(world, 1)
    world.ask("low", preemptible=GRACE)
    world.ask("high", priority=1, preemptible=GRACE)
    world.retry("low", make_ask("again", {"p": 1}, preemptible=GRACE))
    assert world.states() == {"low": "retried", "high": "g", "again": "w"}
    assert world.lease("high").stop_until is None


def test_an_unconfirmed_grant_is_not_asked() -> None:
    """It is confirmed or taken back within seconds."""
    world = World()
    shared(world, 1)
    until = world.now + HOUR
    world.ask("low", preemptible=GRACE, attended=True, heard_until=until)
    world.ask("high", priority=1)
    assert world.lease("low").stop_until is None
    world.renew("low", OPERATOR)
    world.sweep()
    assert world.lease("low").stop_until is not None


def test_the_line_is_looked_at_again_when_a_grant_must_have_been_confirmed() -> None:
    """A confirmation loads no pool: its batch cannot ask the holder to stop."""
    world = World()
    shared(world, 1)
    world.ask("low", preemptible=GRACE, attended=True, heard_until=world.now + HOUR)
    world.ask("high", priority=1)
    assert world.facts.pools["p"].wake_at == world.now + CONFIRM_WITHIN + 1
    confirmed = expiry.confirm(world.facts, world.moment, LeaseId("low"))
    world.facts.apply(confirmed)
    world.wait(16)
    assert world.lease("low").stop_until is not None
    assert world.facts.pools["p"].wake_at is None


def test_who_has_gone_keeps_nobody_behind_it_from_asking() -> None:
    """For the first ticket nobody can be asked, so nobody is for the next until it is silent."""
    world = World()
    shared(world, 2)
    world.ask("firm")
    world.ask("low", preemptible=GRACE)
    until = world.now + HOUR + 5 * SECOND
    world.ask("big", {"p": 2}, priority=2, attended=True, patience=HOUR, heard_until=until)
    world.ask("next", priority=1)
    assert world.lease("low").stop_until is None
    silent_at = world.now + 5 * SECOND + 1
    assert world.due() == silent_at
    world.wait(6)
    assert world.lease("low").preempted_by == "next"
    assert world.lease("low").stop_until == silent_at + GRACE


def test_the_control_a_line_that_waits_for_no_grant_is_not_looked_at_again() -> None:
    """Nobody who might be asked is unconfirmed."""
    world = World()
    shared(world, 1)
    world.ask("low", attended=True, heard_until=world.now + HOUR)
    world.ask("high", priority=1)
    assert world.facts.pools["p"].wake_at is None


def test_slots_of_a_preempted_lease_go_to_the_ticket() -> None:
    """The same in a pool with named slots; a drained slot is of no use."""
    world = World()
    world.slots("s", "one", "two")
    world.ask("a", {"s": 1}, preemptible=GRACE, ttl=600 * SECOND)
    world.ask("b", {"s": 1}, preemptible=GRACE, ttl=600 * SECOND)
    world.ask("high", {"s": 1}, priority=1)
    asked = [key for key in "ab" if world.lease(key).stop_until is not None]
    assert len(asked) == 1
    world.wait(11)
    assert world.states()["high"] == "g"
    assert world.lease("high").slots == world.lease(asked[0]).slots


def test_a_grace_has_bounds() -> None:
    """From a second to an hour."""
    world = World()
    shared(world, 1)
    for grace in (0, SECOND - 1, (GRACE_SECONDS_MAX + 1) * SECOND):
        with Refused(Code.INVALID):
            world.ask("x", preemptible=grace)


def fair(world: World, limit: int) -> None:
    """Make `p` a pool with a fair share by owner."""
    shared(world, limit, fair_share=FairShare("owner", HOUR))


def test_a_smaller_share_has_leases_of_a_larger_one_stopped() -> None:
    """Until the shares are equal, and no further: of four units, each of two owners has two."""
    world = World()
    fair(world, 4)
    for n in range(4):
        world.ask(f"a{n}", owner="a", preemptible=GRACE, hold=HOUR)
    for n in range(4):
        world.ask(f"b{n}", owner="b", preemptible=GRACE, hold=HOUR)
    world.wait(30)
    held = [world.lease(key).owner for key in world.holders()]
    assert sorted(held) == ["a", "a", "b", "b"]
    ended = [key for key, state in world.states().items() if state == "preempted"]
    assert len(ended) == 2
    world.wait(60)
    assert len([key for key, state in world.states().items() if state == "preempted"]) == 2


def test_weights_count() -> None:
    """An owner with weight 3 gets three of four units."""
    world = World()
    shared(world, 4, fair_share=FairShare("owner", HOUR, {"b": 3}))
    for n in range(4):
        world.ask(f"a{n}", owner="a", preemptible=GRACE, hold=HOUR)
    for n in range(4):
        world.ask(f"b{n}", owner="b", preemptible=GRACE, hold=HOUR)
    world.wait(30)
    assert sorted(world.lease(key).owner for key in world.holders()) == ["a", "b", "b", "b"]


def test_the_owner_of_lent_units_has_borrowers_stopped() -> None:
    """Whatever their priority, as far as it stays within its limit; others do not."""
    world = World()
    world.pool("a", 1, cohort="c", borrowing=3, ttl=HOUR)
    world.pool("b", 2, cohort="c", borrowing=3, ttl=HOUR)
    for n in range(3):
        world.ask(f"a{n}", {"a": 1}, priority=5, preemptible=GRACE)
    world.ask("b0", {"b": 1})
    asked = {key for key, one in world.facts.leases.items() if one.stop_until is not None}
    assert len(asked) == 1
    world.ask("b1", {"b": 1})
    world.ask("b2", {"b": 1})  # it would borrow itself
    asked = {key for key, one in world.facts.leases.items() if one.stop_until is not None}
    assert len(asked) == 2
    world.wait(11)
    states = world.states()
    assert [states[one] for one in ("b0", "b1", "b2")] == ["g", "g", "w"]


def may(ticket: Lease, lease: Lease, world: World) -> bool:
    """Say naively whether a lease may be asked to stop for a ticket."""
    facts = world.facts
    pool, other = facts.pools[ticket.needs[0].pool], facts.pools[lease.needs[0].pool]
    if lease.preemptible is None:
        return False
    if pool.name != other.name:
        return pool.spec.cohort is not None and pool.spec.cohort == other.spec.cohort
    if lease.priority == ticket.priority:
        return pool.spec.fair_share is not None and lease.owner != ticket.owner
    return lease.priority < ticket.priority


class Play:
    """Random requests; each preempted lease asks again at once. Nothing else ends in the end."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        draw = self.random.choice
        self.world = World(page=draw([1, 4, 50]))
        share = draw([None, FairShare("owner", draw([20, 600]) * SECOND, {"a": draw([1, 3])})])
        cohort = draw([None, "c"])
        lent = {"cohort": cohort, "borrowing": 2} if cohort else {}
        for name in "pq":
            self.world.pool(name, draw([2, 4, 6]), ttl=HOUR, fair_share=share, **lent)
        self.count = 0
        self.preempted = 0

    def ask(self) -> None:
        draw = self.random.choice
        self.count += 1
        most = self.world.facts.pools
        name = draw("pq")
        self.world.ask(
            f"t{self.count}",
            {name: min(draw([1, 1, 2, 3]), most[name].spec.limit or 1)},
            owner=draw("abc"),
            priority=draw([0, 0, 0, 1, 2]),
            preemptible=draw([None, GRACE, 3 * GRACE]),
            hold=HOUR,
        )

    def act(self) -> None:
        before = dict(self.world.facts.leases)
        what = self.random.choice(["ask"] * 4 + ["end", "wait"])
        if what == "ask":
            self.ask()
        elif what == "wait":
            self.wait(self.random.choice([1, 12, 40]))
            return
        else:
            live = [key for key, state in self.world.states().items() if state in "wg"]
            if live:
                self.world.release(self.random.choice(live))
        self.check(before)

    def wait(self, seconds: int) -> None:
        """Let time pass, second by second; who is preempted asks again."""
        for _ in range(seconds):
            before = dict(self.world.facts.leases)
            self.world.wait(1)
            self.check(before)
            for key, lease in list(self.world.facts.leases.items()):
                if lease.cause == "preempted" and before[key].state == "granted":
                    self.preempted += 1
                    self.count += 1
                    self.world.ask(
                        f"t{self.count}",
                        lease.needs,
                        owner=lease.owner,
                        priority=lease.priority,
                        preemptible=lease.preemptible,
                        hold=HOUR,
                    )

    def check(self, before: dict[LeaseId, Lease]) -> None:
        facts, now = self.world.facts, self.world.now
        assert sums_differ(facts) == []
        for key, lease in facts.leases.items():
            was = before.get(key)
            if lease.preempted_by is None:
                continue
            if was is None or was.preempted_by is None:
                ticket = facts.leases[lease.preempted_by]
                assert was is not None and was.state == "granted", "it was granted before"
                assert lease.stop_until == now + (lease.preemptible or 0), "its grace"
                assert ticket.state == "waiting", "for a ticket that waits"
                assert may(ticket, lease, self.world), f"{key} for {ticket.id}"
            if lease.state == "granted":
                assert lease.stop_until is not None and now < lease.stop_until, "it ends in time"
            elif lease.cause == "preempted":
                assert lease.ended_at == lease.stop_until, "it has all of its grace"
        if not any(pool.spec.cohort for pool in facts.pools.values()):
            for name in "pq":
                self.first(name)

    def first(self, name: str) -> None:
        """Enough is free or stopping for the first in line, or too little may be asked."""
        facts = self.world.facts
        pool = facts.pools[name]
        live = [one for one in facts.leases.values() if one.needs[0].pool == name]
        line = [one for one in live if one.state == "waiting"]
        if not line:
            return
        first = min(line, key=lambda one: (-one.priority, one.place, one.arrival))
        held = [one for one in live if one.state == "granted"]
        coming = (pool.spec.limit or 0) - sum(
            one.needs[0].units for one in held if one.stop_until is None
        )
        lower = sum(
            one.needs[0].units
            for one in held
            if one.stop_until is None
            and one.preemptible is not None
            and one.priority < first.priority
        )
        needed = first.needs[0].units
        assert coming >= needed or coming + lower < needed, f"{first.id} could start"


@pytest.mark.parametrize("seed", range(24))
def test_random_requests_come_to_rest(seed: int) -> None:
    """Each stop has its rule, its grace and its end; without new requests they cease."""
    play = Play(seed)
    for _ in range(60):
        play.act()
    play.preempted = 0
    play.wait(150)
    settled = play.preempted
    play.wait(60)
    assert play.preempted == settled, "preemption goes round"


def test_nobody_is_asked_by_share_for_one_that_may_have_more() -> None:
    """Units of before the fair share may be those of the ticket's sharer, so they count as its."""
    world = World()
    shared(world, 4)
    world.ask("old", {"p": 2}, owner="b")
    shared(world, 4, fair_share=FairShare("owner", HOUR))
    world.ask("a", {"p": 1}, owner="a", preemptible=GRACE)
    world.ask("a+", {"p": 1}, owner="a", preemptible=GRACE)
    world.ask("b", owner="b")
    assert {world.lease(key).preempted_by for key in ("a", "a+")} == {None}
    world.release("old")
    assert world.states()["b"] == "g"


def test_one_that_has_less_has_a_lease_stopped_by_share() -> None:
    """The control: all units are of known sharers."""
    world = World()
    shared(world, 2, fair_share=FairShare("owner", HOUR))
    world.ask("a", {"p": 1}, owner="a", preemptible=GRACE)
    world.ask("a+", {"p": 1}, owner="a", preemptible=GRACE)
    world.ask("b", owner="b")
    assert {world.lease(key).preempted_by for key in ("a", "a+")} == {None, "b"}


def test_a_lease_that_the_same_scan_has_forced_may_be_asked() -> None:
    """It takes the place of what the ticket waits for, and may be asked as any other."""
    world = World()
    shared(world, 1)
    world.ask("low", preemptible=GRACE)
    world.ask("high", priority=1)
    world.ask("forced", preemptible=GRACE, forced=True)
    assert world.states() == {"low": "g", "high": "w", "forced": "g"}
    assert world.lease("forced").stop_until == world.now + GRACE
    world.wait(11)
    assert world.states() == {"low": "preempted", "high": "g", "forced": "preempted"}


def test_the_control_a_forced_lease_that_cannot_be_asked() -> None:
    """It is not `preemptible`."""
    world = World()
    shared(world, 1)
    world.ask("low", preemptible=GRACE)
    world.ask("high", priority=1)
    world.ask("forced", forced=True)
    world.wait(11)
    assert world.states() == {"low": "preempted", "high": "w", "forced": "g"}
