"""Outcomes of starts: each lease reports one, during the lease or after its end."""

import pytest
from msgspec import structs

from moorage.core.admission import leases
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Cause, Result
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from tests.core.admission.build import Refused, World, make_ask


@pytest.fixture
def world() -> World:
    """Return a world with pool p of two units."""
    made = World()
    made.pool("p", 2)
    return made


def report(world: World, key: str, result: Result, detail: str = "") -> Changes:
    """Report the outcome of a lease; return the changes."""
    made, lease = leases.outcome(world.facts, world.moment, LeaseId(key), Proof(), result, detail)
    world.do((made, lease))
    return made


def test_outcomes_contain_limit_and_occupied_units(world: World) -> None:
    """Each pool gets an outcome with its present limit and occupied units; a ticket has none."""
    world.pool("q", 7)
    world.ask("a", {"p": 1, "q": 3})
    world.ask("b", {"p": 2})
    made = report(world, "a", "ok", "x" * 2000)
    seen = [(each.pool, each.result, each.limit, each.occupied) for each in made.outcomes]
    assert seen == [("p", "ok", 2, 1), ("q", "ok", 7, 3)]
    assert len(made.outcomes[0].detail) == 1_000
    with Refused(Code.INVALID):
        report(world, "b", "ok")


def test_a_lease_has_one_outcome(world: World) -> None:
    """The first outcome counts; repeating it changes nothing, and a different one is refused."""
    world.ask("a")
    made = report(world, "a", "throttled")
    assert [each.result for each in made.outcomes] == ["throttled"]
    assert world.lease("a").outcome == "throttled"
    assert not report(world, "a", "throttled", "again")
    with Refused(Code.OUTCOME_TOLD):
        report(world, "a", "failed")


@pytest.mark.parametrize("end", ["released", "revoked", "ttl_over", "hold_over", "retried"])
def test_an_outcome_may_come_after_the_end(world: World, end: Cause) -> None:
    """An ended lease accepts an outcome, which changes neither pools nor slots."""
    world.ask("a", ttl=5 * SECOND, hold=3 * SECOND if end == "hold_over" else None)
    if end in ("hold_over", "ttl_over"):
        world.wait(6)
    elif end == "retried":
        world.retry("a", make_ask("again", {"p": 1}))
    else:
        world.release("a", cause=end)
    before = world.lease("a")
    assert before.cause == end
    made = report(world, "a", "failed")
    assert (len(made.outcomes), dict(made.pools), dict(made.slots)) == (1, {}, {})
    assert world.lease("a") == structs.replace(before, outcome="failed")
