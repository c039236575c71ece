"""Only the newest request of a group waits; what runs is asked to stop."""

from typing import Any

import pytest

from moorage.core.admission import expiry
from moorage.core.admission.requests import NEVER, Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.limits import GROUP_LEASES_MAX
from tests.core.admission.build import START, Refused, World, make_ask
from tests.core.admission.sums import sums_differ
from tests.core.admission.test_expiry import outage


class Groups(World):
    """A pool `p` with one unit, which `holder` of no group has."""

    def __init__(self, limit: int = 1, **more: Any) -> None:
        super().__init__()
        self.pool("p", limit, **more)

    def push(self, name: str, group: str = "main", **more: Any) -> None:
        """Ask for a unit as a request of a group."""
        self.ask(name, group=group, **more)


def test_a_newer_request_ends_the_one_that_waits() -> None:
    """In one batch; the one that runs stays."""
    world = Groups()
    world.push("a")
    world.push("b")
    world.push("c")
    assert world.states() == {"a": "g", "b": "superseded", "c": "w"}
    assert world.lease("b").detail == "by c"
    assert world.lease("b").superseded_by == "c"
    assert world.facts.pools["p"].waiting == 1
    assert sums_differ(world.facts) == []


def test_what_is_superseded_is_never_granted() -> None:
    """Neither in its turn nor by force."""
    world = Groups()
    for name in "abc":
        world.push(name)
    world.release("a")
    assert world.states() == {"a": "released", "b": "superseded", "c": "g"}
    with Refused(Code.NOT_WAITING):
        world.force("b")


def test_other_groups_and_requests_without_a_group_stay() -> None:
    """Only tickets of the same group end."""
    world = Groups()
    world.ask("holder")
    world.push("a")
    world.push("b", "other")
    world.ask("c")
    world.push("d")
    assert world.states() == {"holder": "g", "a": "superseded", "b": "w", "c": "w", "d": "w"}


@pytest.mark.parametrize(
    ("first", "then", "ends"),
    [
        ("shop/ci", "shop/ci", True),
        ("shop/ci", "shop/admin", True),
        ("shop/ci", "bank/ci", False),
        ("shop/ci", "shop", False),
        ("shop", "shop/ci", False),
        ("shop/a/ci", "shop/ci", False),
        ("shop/a/ci", "shop/a/me", True),
        ("alice", "alice", True),
        ("alice", "bob", False),
    ],
)
def test_a_group_belongs_to_a_project(first: str, then: str, ends: bool) -> None:
    """Whatever the roles of the caller are."""
    world = Groups()
    world.ask("holder")
    world.push("a", owner=first)
    world.push("b", owner=then, cancel_running=True, roles=frozenset({"operator", "admin"}))
    assert world.states()["a"] == ("superseded" if ends else "w")


@pytest.mark.parametrize("owner", ["governor:hosts", "boskos:job", "lease-proxy"])
def test_owners_that_stand_for_others_have_no_groups(owner: str) -> None:
    """Their clients would end the tickets of each other."""
    world = Groups()
    with Refused(Code.INVALID) as refused:
        world.push("a", owner=owner)
    assert "stands for many clients" in refused.message


@pytest.mark.parametrize("group", ["x" * 256, "a\nb", "\u202eabc"])
def test_names_of_groups_are_bounded_like_labels(group: str) -> None:
    """In length and in characters."""
    with Refused(Code.INVALID):
        Groups().push("a", group)


def test_a_group_and_its_owner_fit_into_an_index() -> None:
    """Each alone would be short enough."""
    with Refused(Code.INVALID):
        Groups().push("a", "\U0001f600" * 255, owner="\U0001f600" * 330)


def test_a_repeated_request_supersedes_nothing_more() -> None:
    """Its key is known."""
    world = Groups()
    world.ask("holder")
    world.push("a")
    world.push("b")
    before = world.facts.leases.copy()
    world.push("again", key="a")
    world.push("again", key="b")
    assert world.facts.leases == before


def test_the_order_of_arrival_decides() -> None:
    """A request that was lost on its way is the newest once it arrives."""
    world = Groups()
    world.ask("holder")
    world.push("newer")
    world.push("older, but late")
    assert world.states()["newer"] == "superseded"


def test_a_refused_request_supersedes_nothing() -> None:
    """A decision that fails changes nothing."""
    world = Groups()
    world.ask("holder")
    world.push("a")
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.ask("b", {"p": 2}, group="main")
    assert world.states()["a"] == "w"


def test_a_full_line_does_not_refuse_a_replacement() -> None:
    """The ticket that it ends has left the line."""
    world = Groups(queue_max=1)
    world.ask("holder")
    world.push("a")
    with Refused(Code.QUEUE_FULL):
        world.ask("b")
    world.push("c")
    assert world.states() == {"holder": "g", "a": "superseded", "c": "w"}


def test_a_full_share_of_a_line_does_not_refuse_a_replacement() -> None:
    """Nor the share of its owner."""
    world = Groups(queue_max=20, queue_max_per_owner=1)
    world.ask("holder", owner="someone")
    world.push("a")
    with Refused(Code.OWNER_QUEUE_FULL):
        world.ask("b")
    world.push("c")
    assert world.states()["c"] == "w"


def test_a_replacement_takes_over_the_place_in_line() -> None:
    """The bound: a group waits for at most as long as its first ticket would have."""
    world = Groups()
    world.ask("holder")
    world.push("a")
    world.ask("x")
    for n in range(5):
        world.push(f"a{n}")
    world.release("holder")
    assert world.states()["a4"] == "g"
    assert world.states()["x"] == "w"


@pytest.mark.parametrize("more", [{"priority": 1}, {"needs": {"p": 2}}, {"priority": -1}])
def test_another_request_has_its_own_place(more: dict[str, Any]) -> None:
    """Other needs, or another priority, would be a way to go before others."""
    world = Groups(2)
    world.ask("holder", {"p": 2})
    world.push("a")
    world.ask("x")
    world.push("b", **more)
    expected = world.facts.arrivals if "needs" in more or more["priority"] < 0 else 4
    assert world.lease("b").arrival == expected


def test_a_place_that_an_operator_has_given_stays() -> None:
    """As with a retry."""
    world = Groups()
    world.ask("holder")
    world.ask("x")
    world.push("a")
    world.move("a", 5)
    world.push("b")
    assert (world.lease("b").priority, world.lease("b").priority_asked) == (5, 0)


def test_holders_are_asked_to_stop() -> None:
    """The units are free when the holder has released them."""
    world = Groups()
    world.push("a", ttl=40 * SECOND)
    world.push("b", cancel_running=True)
    asked = world.lease("a")
    assert (asked.state, asked.superseded_by) == ("granted", "b")
    assert asked.stop_until == START + 40 * SECOND
    assert world.states()["b"] == "w"
    world.release("a", Proof("me"))
    assert world.states() == {"a": "released", "b": "g"}


def test_without_the_wish_what_runs_continues() -> None:
    """It is not asked to stop."""
    world = Groups()
    world.push("a")
    world.push("b")
    assert world.lease("a").stop_until is None


def test_a_holder_that_does_not_stop_loses_its_lease_after_a_ttl() -> None:
    """The bound of the newer request; the lock delay comes after that."""
    world = Groups(lock_delay=5 * SECOND)
    world.push("a", ttl=40 * SECOND)
    world.push("b", cancel_running=True)
    for _ in range(3):
        world.wait(13)
        world.renew("a", Proof("me"))
    assert world.states()["a"] == "g"
    world.wait(1)
    assert world.states() == {"a": "superseded", "b": "w"}
    assert world.lease("a").detail == "by b"
    world.wait(4.9)
    assert world.states()["b"] == "w"
    world.wait(0.1)
    assert world.states()["b"] == "g"


def test_a_lease_that_need_not_be_renewed_has_the_ttl_of_its_pool_to_stop() -> None:
    """Otherwise there would be no end."""
    world = Groups(ttl=30 * SECOND)
    world.push("a", ttl=NEVER)
    world.push("b", cancel_running=True)
    assert world.lease("a").stop_until == START + 30 * SECOND


def test_another_request_does_not_give_more_time_to_stop() -> None:
    """The first request counts."""
    world = Groups()
    world.push("a", ttl=40 * SECOND)
    world.push("b", cancel_running=True)
    world.wait(10)
    world.push("c", cancel_running=True)
    assert world.lease("a").stop_until == START + 40 * SECOND
    assert world.lease("a").superseded_by == "c"


def test_a_longer_hold_does_not_give_more_time_to_stop() -> None:
    """Nor does a renewal."""
    world = Groups()
    world.push("a", ttl=40 * SECOND, hold=50 * SECOND)
    world.push("b", cancel_running=True)
    world.hold("a", 500 * SECOND, Proof("me"))
    world.renew("a", Proof("me"))
    world.wait(30)
    world.renew("a", Proof("me"))
    world.wait(10)
    assert world.states()["a"] == "superseded"


def test_a_retry_continues_what_was_superseded_only_with_its_units() -> None:
    """What gives its units back does not wait again."""
    world = Groups()
    world.push("a")
    world.push("b")
    world.retry("a", make_ask("a2", {"p": 1}, group="main"), Proof("me"))
    assert world.states() == {"a": "retried", "b": "w", "a2": "g"}
    assert world.lease("a2").superseded_by == "b"
    world.retry("a2", make_ask("a3", {"p": 1}, group="main"), Proof("me"), requeue=True)
    assert world.states() == {"a": "retried", "b": "g", "a2": "retried", "a3": "superseded"}
    assert world.lease("a3").detail == "by b"
    assert sums_differ(world.facts) == []


def test_a_retry_does_not_evade_the_request_to_stop() -> None:
    """It gives the units back."""
    world = Groups()
    world.push("a")
    world.push("b", cancel_running=True)
    world.retry("a", make_ask("a2", {"p": 1}, group="main"), Proof("me"))
    assert world.states() == {"a": "retried", "b": "g", "a2": "superseded"}


def test_a_retry_supersedes_nothing() -> None:
    """It continues an earlier attempt."""
    world = Groups(2)
    world.push("a")
    world.ask("x")
    world.push("b")
    world.retry("b", make_ask("b2", {"p": 1}, group="main"), Proof("me"))
    assert world.states() == {"a": "g", "x": "g", "b": "retried", "b2": "w"}
    assert world.lease("a").superseded_by == "b"


def test_an_unread_grant_that_was_superseded_does_not_wait_again() -> None:
    """A newer ticket waits already."""
    world = Groups()
    world.push("a", attended=True)
    world.push("b")
    made = expiry.undelivered(world.facts, world.moment, world.wall, LeaseId("a"))
    world.do((made, None))
    assert world.states() == {"a": "superseded", "b": "g"}
    assert sums_differ(world.facts) == []


def test_an_unread_grant_waits_again_if_nothing_is_newer() -> None:
    """The control of the test above."""
    world = Groups()
    world.push("a", attended=True)
    made = expiry.undelivered(world.facts, world.moment, world.wall, LeaseId("a"))
    world.do((made, None))
    assert world.states() == {"a": "w"}


def test_the_leases_of_a_group_are_bounded() -> None:
    """Each request of the group reads them."""
    world = Groups(GROUP_LEASES_MAX + 1)
    for n in range(GROUP_LEASES_MAX):
        world.push(f"a{n}")
    with Refused(Code.QUEUE_FULL) as refused:
        world.push("b")
    assert f"has {GROUP_LEASES_MAX} leases" in refused.message
    world.release("a0")
    world.push("c")
    assert world.states()["c"] == "g"


def test_an_outage_is_no_time_to_stop_in() -> None:
    """The holder could not learn of it, and runs on: its unit must not go to the newer request."""
    world = Groups(ttl=30 * SECOND)
    outage(world, 500)
    world.push("a")
    asked = world.now
    world.push("b", cancel_running=True)
    assert world.lease("a").stop_until == asked + 30 * SECOND
    world.wait(10)
    outage(world, 300)
    world.sweep()
    assert world.states() == {"a": "g", "b": "w"}
    world.renew("a")
    world.wait(19.999_999)
    assert world.states() == {"a": "g", "b": "w"}
    world.wait(0.000_001)
    assert world.states() == {"a": "superseded", "b": "g"}
