"""Leases of a group of requests that are handed over, kept for inspection, or both."""

from typing import Any

import pytest

from moorage.core.admission import handing_over, keeping
from moorage.core.admission.handing_over import Acceptance
from moorage.core.admission.requests import Proof, request_again
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from tests.core.admission.build import Refused, World
from tests.core.admission.sums import sums_differ

ANN, BOB = "shop/ann", "shop/bob"
EVE = "bank/eve"


@pytest.fixture
def world() -> World:
    """Return a world in which ann has the one unit of `p`, as a request of the group `main`."""
    world = World()
    world.pool("p", 1)
    world.ask("a", owner=ANN, group="main")
    return world


def hand_over(world: World, to: str, given: str = "a", fresh: str = "b") -> None:
    """Offer a lease and accept it."""
    offer(world, to, given)
    accept(world, to, given, fresh)


def offer(world: World, to: str, given: str = "a") -> None:
    """Offer a lease for a minute."""
    proof = Proof(world.lease(given).owner)
    lasts = 60 * SECOND
    world.do(handing_over.offer(world.facts, world.moment, LeaseId(given), proof, to, lasts))


def accept(world: World, owner: str, given: str = "a", fresh: str = "b") -> None:
    """Accept a lease."""
    how = Acceptance(owner, fresh, LeaseId(fresh), f"of {given}")
    world.do(handing_over.accept(world.facts, world.moment, world.wall, LeaseId(given), how))


def keep(world: World, name: str = "a", owner: str | None = ANN, **more: Any) -> None:
    """Keep a lease for an hour."""
    proof = Proof(owner)
    made = keeping.keep(world.facts, world.moment, LeaseId(name), proof, 3600 * SECOND, "", **more)
    world.do(made)


def push(world: World, name: str, owner: str = BOB, *, cancels: bool = True) -> None:
    """Make a newer request of the group `main` of an owner."""
    world.ask(name, owner=owner, group="main", cancel_running=cancels)


def test_within_its_project_it_stays_in_its_group(world: World) -> None:
    """So the receiver is asked to stop as the giver would have been."""
    hand_over(world, BOB)
    assert world.lease("b").group == "main"
    push(world, "c", ANN)
    assert world.lease("b").superseded_by == "c"
    assert world.lease("b").stop_until is not None
    assert world.states() == {"a": "handed_over", "b": "g", "c": "w"}
    assert sums_differ(world.facts) == []


@pytest.mark.parametrize("receiver", [EVE, "carol"], ids=["another project", "no project"])
def test_outside_it_leaves_its_group(world: World, receiver: str) -> None:
    """The group of this name is another one there, which the receiver did not ask for."""
    hand_over(world, receiver)
    assert world.lease("b").group == ""
    push(world, "theirs", receiver)
    assert world.lease("b").superseded_by is None
    assert world.lease("b").stop_until is None
    push(world, "ours", ANN)
    assert world.lease("b").stop_until is None, "nor is it in that of the giver"


def test_it_does_not_come_back_into_a_group(world: World) -> None:
    """Its owner gets it back, but not as a request of a group."""
    hand_over(world, EVE)
    hand_over(world, ANN, "b", "c")
    assert world.lease("c").group == ""


@pytest.mark.parametrize("receiver", [BOB, EVE], ids=["own project", "another project"])
@pytest.mark.parametrize("offered", ["before", "after"])
def test_who_is_asked_to_stop_cannot_pass_that_on(
    world: World, receiver: str, offered: str
) -> None:
    """The newer request waits for one TTL at most, also if the lease changes hands."""
    if offered == "before":
        offer(world, receiver)
        push(world, "newer")
        accept(world, receiver)
    else:
        push(world, "newer")
        hand_over(world, receiver)
    stop = world.lease("a").stop_until
    new = world.lease("b")
    assert stop is not None
    assert (new.stop_until, new.superseded_by) == (stop, "newer")
    world.wait(30)
    world.renew("b", Proof(receiver))
    world.wait(31)
    assert world.states()["b"] == "superseded"
    assert world.lease("b").detail == "by newer"
    assert world.states()["newer"] == "g"


def test_a_preempted_lease_is_retried_elsewhere_whatever_its_group_asks_for(world: World) -> None:
    """It stops for another ticket, so nothing was promised to the newer request of its group."""
    world.pool("q", 1)
    world.ask("x", {"q": 1}, owner=ANN, group="main", preemptible=60 * SECOND)
    push(world, "c", ANN, cancels=False)
    world.ask("high", {"q": 1}, owner=EVE, priority=1)
    assert world.lease("x").preempted_by == "high"
    hand_over(world, EVE, "x", "y")
    assert world.lease("y").stop_until == world.lease("x").stop_until
    new = request_again(world.lease("y"), LeaseId("z"), "z")
    world.retry("y", new, Proof(EVE))
    assert world.states()["z"] == "w"
    assert world.states()["high"] == "g"


def test_another_project_retries_what_left_its_group(world: World) -> None:
    """A newer request there, which nobody was asked to stop for, is nothing to the receiver."""
    push(world, "newer", cancels=False)
    hand_over(world, EVE)
    assert world.lease("b").superseded_by is None
    new = request_again(world.lease("b"), LeaseId("again"), "again")
    world.retry("b", new, Proof(EVE), requeue=True)
    assert world.states() == {"a": "handed_over", "newer": "g", "b": "retried", "again": "w"}


def test_what_is_kept_is_not_asked_to_stop(world: World) -> None:
    """Nothing runs that could; the newer request knows that it waits for its end."""
    keep(world)
    push(world, "newer")
    assert world.lease("a").superseded_by == "newer"
    assert world.lease("a").stop_until is None
    assert world.states() == {"a": "g", "newer": "w"}


@pytest.mark.parametrize("owner", [ANN, None], ids=["its owner", "an operator"])
@pytest.mark.parametrize("at_most", [False, True])
def test_what_ends_for_a_newer_request_is_not_kept(
    world: World, owner: str | None, at_most: bool
) -> None:
    """It would end sooner than was promised."""
    push(world, "newer")
    before = world.lease("a")
    with Refused(Code.INVALID) as refused:
        keep(world, owner=owner, at_most=at_most)
    assert "'newer'" in refused.message
    assert world.lease("a") == before


def test_a_longer_hold_does_not_postpone_it(world: World) -> None:
    """An extension of what is asked to stop changes its hold only."""
    push(world, "newer")
    stop = world.lease("a").stop_until
    world.hold("a", 7200 * SECOND, Proof(ANN))
    assert world.lease("a").stop_until == stop
    world.wait(30)
    world.renew("a", Proof(ANN))
    world.wait(31)
    assert world.states() == {"a": "superseded", "newer": "g"}
