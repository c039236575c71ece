"""What became of starts: told once, by whoever held the lease, whenever it is known."""

import pytest
from msgspec import structs

from moorage.core.admission import leases
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Cause, Result
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from tests.core.admission.build import Refused, World, wish


@pytest.fixture
def world() -> World:
    """Return a world with pool p of two units."""
    made = World()
    made.pool("p", 2)
    return made


def told(world: World, key: str, result: Result, detail: str = "") -> Changes:
    """Tell the outcome of a lease; return what that changes."""
    made, lease = leases.outcome(world.facts, world.moment, LeaseId(key), Proof(), result, detail)
    world.do((made, lease))
    return made


def test_outcomes_tell_limit_and_occupation(world: World) -> None:
    """One for each pool, with what is so when it is told; of what never started there is none."""
    world.pool("q", 7)
    world.ask("a", {"p": 1, "q": 3})
    world.ask("b", {"p": 2})
    made = told(world, "a", "ok", "x" * 2000)
    seen = [(each.pool, each.result, each.limit, each.occupied) for each in made.outcomes]
    assert seen == [("p", "ok", 2, 1), ("q", "ok", 7, 3)]
    assert len(made.outcomes[0].detail) == 1_000
    with Refused(Code.INVALID):
        told(world, "b", "ok")


def test_a_lease_has_one_outcome(world: World) -> None:
    """The first that is told counts; to repeat it changes nothing, another one is refused."""
    world.ask("a")
    made = told(world, "a", "throttled")
    assert [each.result for each in made.outcomes] == ["throttled"]
    assert world.lease("a").outcome == "throttled"
    assert not told(world, "a", "throttled", "again")
    with Refused(Code.OUTCOME_TOLD):
        told(world, "a", "failed")


@pytest.mark.parametrize("end", ["released", "revoked", "ttl_over", "hold_over", "retried"])
def test_an_outcome_may_come_after_the_end(world: World, end: Cause) -> None:
    """However a lease has ended: it is told of it, and nothing becomes free or taken by that."""
    world.ask("a", ttl=5 * SECOND, hold=3 * SECOND if end == "hold_over" else None)
    if end in ("hold_over", "ttl_over"):
        world.wait(6)
    elif end == "retried":
        world.retry("a", wish("again", {"p": 1}))
    else:
        world.release("a", cause=end)
    before = world.lease("a")
    assert before.cause == end
    made = told(world, "a", "failed")
    assert (len(made.outcomes), dict(made.pools), dict(made.slots)) == (1, {}, {})
    assert world.lease("a") == structs.replace(before, outcome="failed")
