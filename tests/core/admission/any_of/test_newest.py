"""Tickets in several lines, in groups of which only the newest waits, and in pools on demand."""

import pytest

from moorage.core.admission import pools
from moorage.core.admission.requests import NEVER, request_again
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from tests.core.admission.any_of.test_any_of import A, B, full, needs, right, two
from tests.core.admission.build import START, Refused, World
from tests.core.admission.newest.test_templates import Templates

WEB, SHOP = {"deploy/web": 1}, {"deploy/shop": 1}


def test_the_newest_ticket_takes_over_its_places_in_all_lines() -> None:
    """The older one leaves all of them in the same batch."""
    world = full()
    world.ask("old", any_of=[A, B], group="main")
    world.ask("other", any_of=[A, B])
    world.ask("new", any_of=[A, B], group="main")
    assert world.states()["old"] == "superseded"
    assert [world.facts.pools[name].waiting for name in "ab"] == [2, 2]
    right(world)
    world.release("y")
    assert (world.states()["new"], needs(world, "new")) == ("g", B)
    right(world)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"any_of": [A, B]}, {"needs": {"a": 1, "b": 1}}),
        ({"needs": {"a": 1, "b": 1}}, {"any_of": [A, B]}),
        ({"any_of": [A, B]}, {"any_of": [A, {"b": 2}, B]}),
        ({"any_of": [A, B]}, {"any_of": [B, A]}),
    ],
)
def test_other_alternatives_get_a_place_of_their_own(
    first: dict[str, object], then: dict[str, object]
) -> None:
    """Also if the lines are the same: to ask for less would be a way to go before others."""
    world = two(2, 2)
    world.ask("x", {"a": 2, "b": 2})
    world.ask("old", group="main", **first)  # type: ignore[arg-type]  # a test's shorthand
    world.ask("other", any_of=[A, B])
    world.ask("new", group="main", **then)  # type: ignore[arg-type]  # a test's shorthand
    assert world.states()["old"] == "superseded"
    assert world.lease("new").arrival > world.lease("other").arrival
    right(world)


def test_an_unread_grant_that_was_superseded_does_not_wait_again() -> None:
    """It ends with the needs of the alternative that it had, and is in no line."""
    world, far = two(), START + 300 * SECOND
    world.ask("old", any_of=[A, B], group="main", attended=True, heard_until=far)
    world.ask("x", B)
    world.ask("new", A, group="main")
    world.wait(20)
    assert world.states()["old"] == "superseded"
    assert needs(world, "old") == A
    assert world.states()["new"] == "g"
    assert [world.facts.pools[name].waiting for name in "ab"] == [0, 0]
    right(world)


def test_a_retry_that_was_superseded_ends() -> None:
    """Whatever its alternatives are, unless it keeps its units."""
    world = two(on_retry="requeue")
    world.ask("old", any_of=[A, B], group="main", in_order=True)
    world.ask("y", B)
    world.ask("new", A, group="main")
    world.retry("old", request_again(world.lease("old"), LeaseId("again"), "again"))
    assert world.states() == {"old": "retried", "y": "g", "new": "g", "again": "superseded"}
    right(world)


def test_a_retry_keeps_what_it_has_although_another_alternative_is_gone() -> None:
    """And a ticket its place: to ask for fewer alternatives is no advantage."""
    world = full()
    world.pool("c", 1)
    world.ask("t", any_of=[A, B, {"c": 1}])
    assert needs(world, "t") == {"c": 1}
    world.release("x")
    world.do(pools.delete(world.facts, world.moment, "a"))
    world.ask("first in line", {"c": 1})
    world.retry("t", request_again(world.lease("t"), LeaseId("t2"), "t2"))
    assert (world.states()["t2"], needs(world, "t2")) == ("g", {"c": 1})
    assert len(world.lease("t2").alternatives) == 2
    right(world)


def test_all_alternatives_have_one_order() -> None:
    """A ticket has one place in all its lines."""
    world = two(order="newest")
    with Refused(Code.INVALID) as refused:
        world.ask("t", any_of=[A, B])
    assert "one request cannot need both" in refused.message


def test_the_newest_request_goes_first_in_each_of_its_lines() -> None:
    """By its own place, also if it is the newest of a group."""
    world = World()
    world.pool("a", 1, order="newest")
    world.pool("b", 1, order="newest")
    world.ask("x", A)
    world.ask("y", B)
    world.ask("t", any_of=[A, B], group="main")
    world.ask("u", any_of=[A, B])
    world.ask("v", any_of=[A, B], group="main")
    world.release("x")
    world.release("y")
    assert world.states() == {
        "x": "released",
        "y": "released",
        "t": "superseded",
        "u": "g",
        "v": "g",
    }
    assert needs(world, "v") == A
    right(world)


def test_alternatives_make_their_pools() -> None:
    """The ticket is in all lines, so all are made; those that nobody uses go again."""
    world = Templates()
    world.template(limit=1, idle=60 * SECOND)
    world.ask("t", any_of=[WEB, SHOP], in_order=True)
    assert needs(world, "t") == WEB
    assert world.facts.pools.keys() == {"deploy/web", "deploy/shop"}
    world.wait(61)
    assert world.facts.pools.keys() == {"deploy/web"}
    right(world)


def test_pools_stay_while_a_ticket_is_in_their_lines() -> None:
    """Also if they were made for it, and cannot grant it anything."""
    world = Templates()
    world.template(limit=1, idle=60 * SECOND)
    world.pool("other", 1)
    world.ask("x", {"other": 1}, ttl=NEVER)
    world.ask("y", WEB, ttl=NEVER)
    world.ask("t", any_of=[WEB, WEB | SHOP, {"other": 1}])
    world.wait(600)
    assert world.states() == {"x": "g", "y": "g", "t": "w"}
    assert world.facts.pools.keys() == {"deploy/web", "deploy/shop", "other"}
    world.release("x")
    assert needs(world, "t") == {"other": 1}
    world.wait(59)
    assert "deploy/shop" in world.facts.pools
    world.wait(2)
    assert world.facts.pools.keys() == {"deploy/web", "other"}
    right(world)


def test_a_full_template_refuses_the_whole_request() -> None:
    """As a full line does; nothing is made."""
    world = Templates()
    world.template(limit=1, pools_max=1)
    with Refused(Code.TEMPLATE_FULL):
        world.ask("t", any_of=[WEB, SHOP])
    assert world.facts.pools == {}
