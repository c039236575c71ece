"""Fair share, cohorts and preemption together with the other features of pools."""

import pytest

from moorage.core.admission import handing_over
from moorage.core.admission.handing_over import Acceptance
from moorage.core.admission.model import (
    Lease,
    Pacing,
)
from moorage.core.admission.requests import Proof
from moorage.core.admission.sharing.fair_share import Share, shares_of
from moorage.core.clock import HOUR, MINUTE, SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.pool_values import Adaptive, FairShare
from tests.core.admission.build import Refused, World
from tests.core.admission.newest.test_templates import Templates
from tests.core.admission.sums import sums_differ
from tests.core.admission.test_expiry import outage

FAIR = FairShare(by="owner", half_life=HOUR)
JOB = 10 * MINUTE


def fair(limit: int = 1, **more: object) -> World:
    """Return a world in which pool `p` has a fair share, and its leases hold ten minutes."""
    world = World()
    world.pool("p", limit, **({"fair_share": FAIR, "hold": JOB, "ttl": HOUR} | more))
    return world


def share(world: World, name: str) -> Share:
    """Return what a sharer has of pool `p`."""
    shares = shares_of(world.facts.pools["p"], world.moment.at)
    return next((one for one in shares if one.name == name), Share(name, 1, 0, 0, 0))


def test_what_cannot_be_together_is_refused() -> None:
    """An adaptive limit in a cohort, the newest first in a fair share, a template in a cohort.

    The control: each is accepted alone, and so are a template and an adaptive limit with a share.
    """
    adaptive = {"adaptive": Adaptive(1, 9)}
    for one in ({"cohort": "c"}, adaptive, {"order": "newest"}, {"fair_share": FAIR}):
        World().pool("p", 2, **one)
    for more in ({"cohort": "c"} | adaptive, {"order": "newest", "fair_share": FAIR}):
        with Refused(Code.INVALID):
            World().pool("p", 2, **more)
        world = World()
        first, second = more
        world.pool("p", 2, **{first: more[first]})
        with Refused(Code.INVALID):
            world.pool("p", 2, **more)
        world.pool("p", 2, **{second: more[second]})
    World().pool("p", 2, fair_share=FAIR, **adaptive)
    with Refused(Code.INVALID) as refused:
        Templates().template(limit=1, cohort="c")
    assert "template" in refused.message
    Templates().template(limit=1, fair_share=FAIR)


@pytest.mark.parametrize("more", [{"fair_share": FAIR}, {"cohort": "c"}], ids=str)
def test_alternatives_in_other_pools_are_refused(more: dict[str, object]) -> None:
    """The tags of two pools cannot be compared; alternatives within one pool are no problem."""
    world = World()
    world.pool("p", 2, **more)
    world.pool("q", 2)
    with Refused(Code.INVALID):
        world.ask("x", any_of=[{"p": 1}, {"q": 1}])
    world.ask("y", any_of=[{"p": 2}, {"p": 1}], in_order=True)
    assert world.states() == {"y": "g"}


def test_alternatives_within_a_fair_share_cost_what_is_granted() -> None:
    """The line counts the least of them; afterwards the sharer owes what it has got."""
    world = fair(2)
    world.ask("x", {"p": 2}, owner="other")
    world.ask("alt", any_of=[{"p": 2}, {"p": 1}], in_order=True, owner="ann")
    world.ask("one", owner="bob")
    waits, also = share(world, "ann"), share(world, "bob")
    assert (waits.debt, waits.waiting) == (also.debt, 1)
    world.release("x")
    assert world.states() == {"x": "released", "alt": "g", "one": "w"}
    assert (share(world, "ann").used, share(world, "ann").waiting) == (2, 0)
    world.release("alt")
    world.release("one")
    assert sums_differ(world.facts) == []


@pytest.mark.parametrize(
    ("more", "books", "asked"),
    [({}, False, "x"), ({}, True, None), ({"pacing": Pacing(HOUR, 1, 0)}, False, None)],
    ids=["the control", "booked", "paced"],
)
def test_nobody_is_asked_to_stop_for_an_alternative_in_a_pool_that_is_booked_or_paced(
    more: dict[str, object], books: bool, asked: str | None
) -> None:
    """Not even if another pool of the ticket's alternatives has leases that may be asked."""
    world = World()
    world.pool("p", 1, hold=JOB, **more)
    world.pool("q", 1)
    for name in "pq":
        world.ask(f"in {name}", {name: 1}, preemptible=MINUTE)
    if books:
        world.book("later", {"p": 1}, (7_200, 10_800))
    world.ask("x", any_of=[{"p": 1}, {"q": 1}], priority=1)
    assert world.states()["x"] == "w"
    assert [world.lease(f"in {name}").preempted_by for name in "pq"] == [asked, None]


def test_a_newer_request_of_a_group_keeps_the_tag_and_is_charged_once() -> None:
    """The cost of the older ticket is returned to its sharer, and the newer one's is charged."""
    world = fair(fair_share=FairShare(by="label:team", half_life=HOUR))
    red, blue = {"labels": {"team": "red"}}, {"labels": {"team": "blue"}}
    world.ask("x", labels={"team": "other"})
    world.ask("old", group="main", **red)
    world.ask("same", group="tip", **red)
    owed, tag = share(world, "red").debt, world.lease("old").place
    world.ask("new", group="main", **red)
    assert world.states()["old"] == "superseded"
    assert world.lease("new").place == tag < world.lease("same").place
    assert (share(world, "red").debt, share(world, "red").waiting) == (owed, 2)
    world.ask("moved", group="main", **blue)
    assert (share(world, "red").waiting, share(world, "blue").waiting) == (1, 1)
    assert share(world, "red").debt < owed
    assert share(world, "blue").debt > 0
    world.release("x")
    assert world.lease("moved").state == "granted"


def give(world: World, key: str, giver: str, to: str, fresh: str) -> Lease:
    """Hand a lease over."""
    lasts = 60 * SECOND
    world.do(handing_over.offer(world.facts, world.moment, LeaseId(key), Proof(giver), to, lasts))
    how = Acceptance(owner=to, key=fresh, fresh=LeaseId(fresh), digest="d")
    world.do(handing_over.accept(world.facts, world.moment, world.wall, LeaseId(key), how))
    return world.lease(fresh)


def test_the_giver_pays_for_its_time_and_the_receiver_from_then_on() -> None:
    """Each owes the time in which it had the unit: five minutes, and three."""
    world = fair(20, fair_share=FairShare(by="owner", half_life=1_000 * HOUR))
    for n in range(9):  # with one sharer, the virtual time would rise by all that it uses
        world.ask(f"x{n}", owner=f"other{n}")
    world.ask("a", owner="ann")
    world.wait(300)
    new = give(world, "a", "ann", "bob", "b")
    assert [share(world, one).used for one in ("ann", "bob")] == [0, 1]
    assert owes(world, "ann", world.lease("a")) == pytest.approx(300, rel=0.01)
    world.wait(180)
    world.release("b")
    assert share(world, "bob").used == 0
    assert owes(world, "bob", new) == pytest.approx(180, rel=0.01)
    assert sums_differ(world.facts) == []


def owes(world: World, name: str, lease: Lease) -> float:
    """Return how much later (seconds of one unit) the next tag of a sharer is than a lease's."""
    sharing = world.facts.pools["p"].sharing
    assert sharing is not None
    return (sharing.sharers[name].finish - lease.place) / 1_000


def test_the_receiver_is_asked_to_stop_until_the_same_time() -> None:
    """Its lease ends as preempted, at the end of the grace that the giver had."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.ask("a", owner="ann", preemptible=30 * SECOND)
    world.ask("high", priority=1, owner="eve")
    until = world.now + 30 * SECOND
    world.wait(10)
    new = give(world, "a", "ann", "bob", "b")
    assert (new.stop_until, new.preempted_by) == (until, "high")
    world.wait(21)
    assert world.states() == {"a": "handed_over", "high": "g", "b": "preempted"}
    assert sums_differ(world.facts) == []


def test_a_lease_that_was_handed_over_may_still_be_preempted() -> None:
    """What its first holder permitted stays true."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.ask("a", owner="ann", preemptible=30 * SECOND)
    give(world, "a", "ann", "bob", "b")
    world.ask("high", priority=1, owner="eve")
    assert world.lease("b").preempted_by == "high"
    assert sums_differ(world.facts) == []


def test_an_outage_does_not_use_up_the_grace() -> None:
    """Nobody learns of the request meanwhile: the holder has the rest of its grace after it."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.ask("low", preemptible=30 * SECOND)
    world.ask("high", priority=1)
    world.wait(10)
    outage(world, 600)
    world.wait(15)
    assert world.states() == {"low": "g", "high": "w"}
    world.wait(10)
    assert world.states() == {"low": "preempted", "high": "g"}


def test_the_grace_of_a_later_request_counts_only_later_outages() -> None:
    """The control: an outage before the holder was asked gives it no more time."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.ask("low", preemptible=30 * SECOND)
    outage(world, 600)
    world.ask("high", priority=1)
    assert world.lease("low").stop_until == Instant(world.now + 30 * SECOND)
    world.wait(31)
    assert world.states() == {"low": "preempted", "high": "g"}
