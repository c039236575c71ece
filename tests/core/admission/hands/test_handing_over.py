"""A lease is handed over: offered, accepted, declined, withdrawn, and what happens in between."""

from typing import Any

import pytest

from moorage.core.admission import handing_over, leases, pools
from moorage.core.admission.handing_over import Acceptance
from moorage.core.admission.model import Lease, Pacing
from moorage.core.admission.owners import GOVERNORS, LEASE_PROXY
from moorage.core.admission.requests import Proof, request_again
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.limits import OFFER_SECONDS_MAX
from tests.core.admission.build import Refused, World

ANN, BOB = Proof("ann"), Proof("bob")


@pytest.fixture
def world() -> World:
    """Return a world in which ann has the one unit of `p`, and somebody waits for it."""
    world = World()
    world.pool("p", 1)
    world.ask("a", owner="ann")
    world.ask("next", owner="eve")
    return world


def offer(
    world: World, key: str = "a", to: str = "bob", *, proof: Proof = ANN, lasts: int = 60 * SECOND
) -> LeaseId:
    """Offer a lease."""
    made = handing_over.offer(world.facts, world.moment, LeaseId(key), proof, to, lasts)
    return world.do(made)


def accept(
    world: World, given: str = "a", fresh: str = "b", owner: str = "bob", **more: Any
) -> LeaseId:
    """Accept a lease."""
    known = {"owner": owner, "key": fresh, "fresh": LeaseId(fresh), "digest": f"of {given}"}
    how = Acceptance(**(known | more))
    made = handing_over.accept(world.facts, world.moment, world.wall, LeaseId(given), how)
    return world.do(made)


def withdraw(world: World, key: str = "a", proof: Proof = ANN) -> LeaseId:
    """Withdraw an offer."""
    return world.do(handing_over.withdraw(world.facts, world.moment, LeaseId(key), proof))


def decline(world: World, key: str = "a", owner: str = "bob") -> LeaseId:
    """Decline an offer."""
    return world.do(handing_over.decline(world.facts, world.moment, LeaseId(key), owner))


def test_the_giver_holds_it_until_it_is_accepted(world: World) -> None:
    """And may renew, change and release it as before."""
    offer(world)
    world.renew("a", Proof("ann", world.lease("a").token))
    world.hold("a", 50 * SECOND, ANN)
    assert world.states() == {"a": "g", "next": "w"}
    assert world.lease("a").offer is not None, "a change of its hold keeps the offer"
    world.release("a", ANN)
    assert world.states() == {"a": "released", "next": "g"}
    with Refused(Code.NOT_OFFERED):
        accept(world)


def test_the_receiver_holds_it_from_then_on(world: World) -> None:
    """One lease ends and the other starts in one batch; nobody in line gets the unit between."""
    old = world.lease("a")
    offer(world)
    assert accept(world) == "b"
    assert world.states() == {"a": "handed_over", "b": "g", "next": "w"}
    new = world.lease("b")
    assert world.facts.pools["p"].occupied == 1
    assert old.token is not None and new.token is not None and new.token > old.token
    assert (new.owner, new.key, new.taken_from, new.offer) == ("bob", "b", "a", None)
    assert world.lease("a").detail == "to bob"


def test_what_the_giver_sends_later_is_refused(world: World) -> None:
    """About its own lease, which has ended, and about that of the receiver."""
    token = world.lease("a").token
    offer(world)
    accept(world)
    with Refused(Code.LEASE_ENDED):
        world.renew("a", Proof("ann", token))
    with Refused(Code.HOLDER_MISMATCH):
        world.renew("b", Proof("ann", token))
    with Refused(Code.TOKEN_STALE):
        world.renew("b", Proof("bob", token))
    with Refused(Code.LEASE_ENDED):
        world.hold("a", 5 * SECOND, ANN)
    with Refused(Code.LEASE_ENDED):
        offer(world, to="carl")
    with Refused(Code.LEASE_ENDED):
        withdraw(world)
    world.release("a", Proof("ann", token))  # harmless, as any repeated release
    assert world.states() == {"a": "handed_over", "b": "g", "next": "w"}


def test_a_lost_answer_is_asked_for_again(world: World) -> None:
    """The same key gives the same lease, and renews it; another key gets nothing."""
    offer(world)
    accept(world)
    before = world.lease("b")
    world.wait(20)
    assert accept(world, fresh="b2", key="b") == "b"
    again = world.lease("b")
    assert again.token == before.token
    assert again.heard_until is not None and before.heard_until is not None
    assert again.heard_until == before.heard_until + 20 * SECOND
    with Refused(Code.NOT_OFFERED):
        accept(world, fresh="b3")
    world.release("b")
    assert accept(world, fresh="b4", key="b") == "b", "its lease has ended, and stays so"
    assert world.holders() == ["next"]


def test_a_key_stands_for_one_request(world: World) -> None:
    """That of the receiver may not have been used for anything else, nor later."""
    world.ask("mine", {"p": 1}, owner="bob", key="k")
    offer(world)
    with Refused(Code.KEY_REUSED):
        accept(world, key="k")
    accept(world, key="other")
    with Refused(Code.KEY_REUSED):
        world.ask("more", {"p": 1}, owner="bob", key="other")


@pytest.mark.parametrize("owner", ["eve", "ann", "bo"])
def test_nobody_else_may_accept_or_decline(world: World, owner: str) -> None:
    """Neither the giver, nor anybody to whom it is not offered."""
    offer(world)
    with Refused(Code.NOT_OFFERED):
        accept(world, owner=owner)
    with Refused(Code.NOT_OFFERED):
        decline(world, owner=owner)


def test_an_offer_has_an_end(world: World) -> None:
    """At its end it cannot be accepted any more; a new one can."""
    world.pool("p", 1, ttl=600 * SECOND)
    offer(world, lasts=10 * SECOND)
    world.wait(9.999_999)
    assert handing_over.is_offered(world.lease("a"), world.moment.at)
    world.wait(0.000_001)
    assert not handing_over.is_offered(world.lease("a"), world.moment.at)
    with Refused(Code.NOT_OFFERED):
        accept(world)
    with Refused(Code.NOT_OFFERED):
        decline(world)
    offer(world)
    accept(world)


def test_what_should_have_ended_is_not_offered_any_more(world: World) -> None:
    """The sweep of that time may come after the acceptance, and would not see the new lease."""
    world.hold("a", 30 * SECOND, ANN)
    offer(world)
    world.now += 30 * SECOND - 1
    assert handing_over.is_offered(world.lease("a"), world.moment.at)
    world.now += 1
    assert not handing_over.is_offered(world.lease("a"), world.moment.at)
    for answer in (accept, decline):
        with Refused(Code.NOT_OFFERED) as refused:
            answer(world)
        assert refused.message.endswith("any more.")
    world.sweep()
    assert world.states() == {"a": "hold_over", "next": "g"}


@pytest.mark.parametrize("left", [0, 1])
def test_a_lease_that_must_have_stopped_is_not_offered_any_more(left: int) -> None:
    """The control: a microsecond before, and the receiver's lease stops in time, too."""
    world = World()
    world.pool("p", 1)
    world.ask("a", owner="ann", preemptible=10 * SECOND)
    offer(world)
    world.ask("high", owner="eve", priority=1)
    world.now += 10 * SECOND - left
    if left:
        assert accept(world) == "b"
    else:
        with Refused(Code.NOT_OFFERED):
            accept(world)
    world.wait(1)
    assert world.states()["high"] == "g"


def test_an_offer_is_taken_back_or_declined(world: World) -> None:
    """Then nothing is offered; taking it back again is harmless."""
    for end in (withdraw, decline):
        offer(world)
        end(world)
        assert world.lease("a").offer is None
        with Refused(Code.NOT_OFFERED):
            accept(world)
    withdraw(world)
    with Refused(Code.NOT_OFFERED):
        decline(world)
    assert world.states() == {"a": "g", "next": "w"}


def test_a_later_offer_replaces_an_earlier_one(world: World) -> None:
    """Only the last one may be accepted."""
    offer(world)
    offer(world, to="carl")
    with Refused(Code.NOT_OFFERED):
        accept(world)
    accept(world, owner="carl")


def test_only_the_holder_offers(world: World) -> None:
    """Or an operator; not with an old token, and not what waits."""
    with Refused(Code.HOLDER_MISMATCH):
        offer(world, proof=BOB)
    with Refused(Code.TOKEN_STALE):
        offer(world, proof=Proof("ann", "9.9.9"))
    with Refused(Code.HOLDER_MISMATCH):
        withdraw(world, proof=BOB)
    with Refused(Code.INVALID):
        offer(world, "next", proof=Proof("eve"))
    offer(world, proof=Proof())


@pytest.mark.parametrize(
    "to", ["", "ann", "*", "shop/*", GOVERNORS, LEASE_PROXY, "boskos:x", "a\nb"]
)
def test_nobody_is_offered_what_they_cannot_accept(world: World, to: str) -> None:
    """A project is many owners; others do not know the native API; the holder has it."""
    with Refused(Code.INVALID):
        offer(world, to=to)


@pytest.mark.parametrize("lasts", [0, -1, OFFER_SECONDS_MAX * SECOND + 1])
def test_an_offer_lasts_for_a_bounded_time(world: World, lasts: int) -> None:
    """A day at most."""
    with Refused(Code.INVALID):
        offer(world, lasts=lasts)


@pytest.mark.parametrize("owner", [GOVERNORS, LEASE_PROXY, "boskos:x"])
def test_leases_of_programs_are_not_handed_over(owner: str) -> None:
    """They would go on using what they have given away."""
    world = World()
    world.pool("p", 1)
    world.ask("a", owner=owner)
    with Refused(Code.INVALID):
        offer(world, proof=Proof())


def test_a_lease_with_allocations_is_not_handed_over() -> None:
    """They belong to its project in the ledger."""
    world = World()
    world.claim = lambda _: None
    world.pool("p", 1)
    world.ask("a", owner="ann", allocations="{}")
    with Refused(Code.INVALID):
        offer(world)


def test_the_receiver_is_checked_when_it_accepts(world: World) -> None:
    """Its quota, and whether the pool is for it: as they are then. The giver keeps it meanwhile."""
    world.pool("p", 3, quota=1)
    world.ask("mine", owner="bob")
    offer(world)
    with Refused(Code.QUOTA_EXCEEDED) as refused:
        accept(world)
    assert "quota 1" in refused.message
    assert world.states()["a"] == "g"
    world.release("mine")
    world.pool("p", 3, quota=1, askers=("ann",))
    with Refused(Code.ASKER_REFUSED):
        accept(world)
    world.pool("p", 3, quota=1, askers=("shop/*",))
    offer(world, to="shop/bob", proof=ANN)
    accept(world, owner="shop/bob")
    assert world.facts.held["p", "shop/bob"] == 1 and not world.facts.held["p", "ann"]


def test_the_receiver_is_checked_for_what_the_lease_has() -> None:
    """Not for what else it was asked for: those pools may be gone, or not for the receiver."""
    world = World()
    world.pool("p", 10, quota=4)
    world.pool("q", 1, askers=("ann",))
    world.pool("r", 1)
    world.ask("mine", {"p": 3}, owner="bob")
    alternatives = [{"p": 4}, {"p": 1, "q": 1}, {"r": 1}]
    world.ask("a", owner="ann", any_of=alternatives, in_order=True)
    assert world.facts.held["p", "ann"] == 4
    world.do(pools.delete(world.facts, world.moment, "r"))
    offer(world)
    with Refused(Code.QUOTA_EXCEEDED) as refused:
        accept(world)
    assert "this lease has 4" in refused.message
    world.release("mine")
    accept(world)
    assert world.facts.held["p", "bob"] == 4


def test_an_operator_may_be_given_what_the_pool_is_not_for(world: World) -> None:
    """As operators may ask."""
    world.pool("p", 1, askers=("ann",))
    offer(world)
    accept(world, roles=frozenset({"operator"}))


def test_it_starts_nothing() -> None:
    """So no pause, pacing or lowered limit prevents it, and it does not count in the pacing."""
    world = World()
    world.pool("p", 2, pacing=Pacing(60 * SECOND))
    world.ask("a", {"p": 2}, owner="ann")
    offer(world)
    paced_at = world.facts.pools["p"].paced_at
    world.pool("p", 1, pacing=Pacing(60 * SECOND))
    world.pause("p")
    accept(world)
    assert world.facts.pools["p"].paced_at == paced_at
    assert world.facts.pools["p"].occupied == 2


def test_its_hold_goes_on() -> None:
    """Two owners who hand it to and fro have it no longer than one could."""
    world = World()
    world.pool("p", 1, ttl=600 * SECOND, hold=100 * SECOND, hold_max=200 * SECOND)
    world.ask("a", owner="ann")
    until = world.lease("a").hold_until
    world.wait(90)
    offer(world)
    accept(world)
    assert world.lease("b").hold_until == until
    with Refused(Code.HOLD_ABOVE_MAX):
        world.hold("b", 111 * SECOND, BOB)
    world.hold("b", 110 * SECOND, BOB)
    offer(world, "b", "ann", proof=BOB)
    accept(world, "b", "c", "ann")
    with Refused(Code.HOLD_ABOVE_MAX):
        world.hold("c", 111 * SECOND, ANN)
    world.wait(109)
    assert world.holders() == ["c"]
    world.wait(1)
    assert world.states() == {"a": "handed_over", "b": "handed_over", "c": "hold_over"}


def test_slots_change_their_owner() -> None:
    """The same slots, in the state that they have."""
    world = World()
    world.slots("s", "one", "two")
    world.ask("a", {"s": 1}, owner="ann")
    names = world.lease("a").slots
    offer(world)
    accept(world)
    (name,) = names["s"]
    slot = world.facts.slots["s"][name]
    assert (slot.owner, slot.lease, slot.state) == ("bob", "b", "leased")
    assert world.lease("b").slots == names
    assert sum(one.occupied for one in world.facts.slots["s"].values()) == 1


def test_the_receiver_need_not_confirm(world: World) -> None:
    """An unconfirmed grant is taken back, and then its units would be free."""
    world.pool("p", 3)
    world.ask("b1", owner="bob", attended=True)
    assert world.lease("b1").confirm_by is not None
    offer(world, "b1", "carl", proof=BOB)
    assert world.lease("b1").confirm_by != world.lease("b1").heard_until, "who offers knows of it"
    accept(world, "b1", "c", "carl")
    assert world.lease("c").confirm_by is None
    world.wait(59)
    assert "c" in world.holders()
    world.wait(2)
    assert world.states()["c"] == "ttl_over"


def test_the_record_goes_with_it(world: World) -> None:
    """And the outcome: of one start there is one."""
    made = leases.record(world.facts, world.moment, LeaseId("a"), ANN, '{"host":"x"}', 0)
    world.do(made)
    offer(world)
    accept(world, labels={"job": "inspect"})
    new = world.lease("b")
    assert (new.record, new.record_version, new.labels) == ('{"host":"x"}', 1, {"job": "inspect"})
    with Refused(Code.LEASE_ENDED):
        leases.outcome(world.facts, world.moment, LeaseId("a"), ANN, "ok", "")
    world.do(leases.outcome(world.facts, world.moment, LeaseId("b"), BOB, "failed", ""))


def test_a_retry_of_the_receiver_is_its_own(world: World) -> None:
    """It asks for the same needs, and it keeps the unit."""
    offer(world)
    accept(world)
    again = request_again(world.lease("b"), LeaseId("b2"), "b2")
    world.retry("b", again, BOB)
    renewed: Lease = world.lease("b2")
    assert (renewed.owner, renewed.taken_from, world.holders()) == ("bob", None, ["b2"])
