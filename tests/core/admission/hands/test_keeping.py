"""A lease is kept for inspection: without renewals, for a bounded time, and visibly."""

from typing import Any

import pytest

from moorage.core.admission import keeping
from moorage.core.admission.handing_over import Acceptance, accept, offer
from moorage.core.admission.owners import GOVERNORS, LEASE_PROXY
from moorage.core.admission.requests import Proof
from moorage.core.clock import HOUR, SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.limits import KEPT_SECONDS_MAX
from tests.core.admission.build import Refused, World

ME = Proof("me")


@pytest.fixture
def world() -> World:
    """Return a world in which I have the one unit of `p`."""
    world = World()
    world.pool("p", 1)
    world.ask("a")
    return world


def keep(
    world: World, seconds: float, key: str = "a", proof: Proof = ME, reason: str = "", **more: Any
) -> LeaseId:
    """Keep a lease for some time."""
    wanted = round(seconds * SECOND)
    made = keeping.keep(world.facts, world.moment, LeaseId(key), proof, wanted, reason, **more)
    return world.do(made)


def test_it_needs_no_renewals_and_ends_by_itself(world: World) -> None:
    """Long after its TTL it is still there; at its end it is gone, and the next one starts."""
    world.ask("next", owner="eve")
    keep(world, 3_600, reason="the test failed")
    world.wait(3_599)
    kept = world.lease("a").kept
    assert world.states() == {"a": "g", "next": "w"}
    assert kept is not None and kept.reason == "the test failed"
    world.wait(1)
    assert world.states() == {"a": "hold_over", "next": "g"}


def test_a_renewal_does_not_bring_back_the_ttl(world: World) -> None:
    """A client that goes on renewing for a moment changes nothing."""
    keep(world, 3_600)
    world.renew("a", ME)
    assert world.lease("a").heard_until is None
    world.wait(3_599)
    assert world.states() == {"a": "g"}


def test_it_always_has_an_end(world: World) -> None:
    """Also if its hold is changed later: operators may give it a later end, but not none."""
    keep(world, 60)
    for proof in (ME, Proof()):
        with Refused(Code.INVALID):
            world.hold("a", None, proof)
    with Refused(Code.HOLD_ABOVE_MAX):
        world.hold("a", (KEPT_SECONDS_MAX + 1) * SECOND, ME)
    world.hold("a", 120 * SECOND, ME)
    world.wait(119)
    assert world.states() == {"a": "g"}
    world.wait(1)
    assert world.states() == {"a": "hold_over"}


def test_without_hold_max_a_day_is_the_most(world: World) -> None:
    """From now on; operators may exceed it."""
    with Refused(Code.HOLD_ABOVE_MAX):
        keep(world, KEPT_SECONDS_MAX + 1)
    keep(world, KEPT_SECONDS_MAX)
    keep(world, 3 * KEPT_SECONDS_MAX, proof=Proof())
    with Refused(Code.INVALID):
        keep(world, 0)
    with Refused(Code.INVALID):
        keep(world, 1e9, proof=Proof())


def test_hold_max_counts_from_the_grant() -> None:
    """`at_most` takes what is left of it; without anything left it is refused."""
    world = World()
    world.pool("p", 1, ttl=HOUR, hold=HOUR, hold_max=2 * HOUR)
    world.ask("a")
    world.wait(1_800)
    with Refused(Code.HOLD_ABOVE_MAX):
        keep(world, 5_401)
    keep(world, 9_000, at_most=True)
    assert world.lease("a").hold_until == Instant(world.now + 5_400 * SECOND)
    keep(world, 60, at_most=True)
    assert world.lease("a").hold_until == Instant(world.now + 60 * SECOND)
    keep(world, 9_000, proof=Proof(), at_most=True)
    assert world.lease("a").hold_until == Instant(world.now + 5_400 * SECOND)
    keep(world, 9_000, proof=Proof())
    assert world.lease("a").hold_until == Instant(world.now + 9_000 * SECOND)
    world.wait(7_200)
    with Refused(Code.HOLD_ABOVE_MAX):
        keep(world, 60, at_most=True)


def test_a_repetition_replaces_end_and_reason(world: World) -> None:
    """It says since when it is kept."""
    keep(world, 600, reason="first")
    since = world.now
    world.wait(100)
    keep(world, 60, reason="second")
    kept = world.lease("a").kept
    assert kept is not None and (kept.reason, kept.since) == ("second", since)
    assert world.lease("a").hold_until == Instant(world.now + 60 * SECOND)


def test_its_owner_and_operators_end_it(world: World) -> None:
    """As any other lease."""
    keep(world, 600)
    with Refused(Code.HOLDER_MISMATCH):
        world.release("a", Proof("eve"))
    world.release("a", Proof(), cause="revoked")
    assert world.states() == {"a": "revoked"}


def test_only_its_holder_keeps_it(world: World) -> None:
    """Not what waits, what has ended, or what belongs to another."""
    world.ask("next")
    with Refused(Code.INVALID):
        keep(world, 60, "next")
    with Refused(Code.HOLDER_MISMATCH):
        keep(world, 60, proof=Proof("eve"))
    with Refused(Code.TOKEN_STALE):
        keep(world, 60, proof=Proof("me", "9.9.9"))
    with Refused(Code.INVALID):
        keep(world, 60, reason="a\nb")
    world.release("a")
    with Refused(Code.LEASE_ENDED):
        keep(world, 60)


@pytest.mark.parametrize("owner", [GOVERNORS, LEASE_PROXY, "boskos:x"])
def test_leases_of_programs_are_not_kept(owner: str) -> None:
    """Nobody could look at them, and their programs release them by their own rules."""
    world = World()
    world.pool("p", 1)
    world.ask("a", owner=owner)
    with Refused(Code.INVALID):
        keep(world, 60, proof=Proof())


def test_a_grant_that_is_not_confirmed_is_kept_too() -> None:
    """Who keeps it knows of it."""
    world = World()
    world.pool("p", 1)
    world.ask("a", attended=True)
    keep(world, 600)
    world.wait(599)
    assert world.states() == {"a": "g"}


def test_it_is_kept_by_who_takes_it_over(world: World) -> None:
    """Somebody else inspects it, without a program that renews; its end stays."""
    keep(world, 600, reason="look at the disk")
    world.do(offer(world.facts, world.moment, LeaseId("a"), ME, "bob", 60 * SECOND))
    how = Acceptance("bob", "b", LeaseId("b"), "d")
    world.do(accept(world.facts, world.moment, world.wall, LeaseId("a"), how))
    kept = world.lease("b").kept
    assert kept is not None and kept.reason == "look at the disk"
    world.wait(599)
    assert world.states() == {"a": "handed_over", "b": "g"}
    world.wait(1)
    assert world.states()["b"] == "hold_over"
