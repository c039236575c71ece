"""What operators do with waiting tickets: they move them, and force their grants."""

import pytest

from moorage.core.admission import leases, operator_actions
from moorage.core.admission.admit import order
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease
from moorage.core.admission.requests import Proof, request_again
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.limits import MOVED_PRIORITY_MAX, PRIORITY_MAX
from tests.core.admission.build import Refused, World


@pytest.fixture
def world() -> World:
    """Return a world with a full pool `p`, in whose line a, b and c wait."""
    world = World()
    world.pool("p", 1)
    for name in ("held", "a", "b", "c"):
        world.ask(name)
    return world


def line(world: World) -> list[str]:
    """Grant all tickets one after another; return their order."""
    order = []
    while world.holders():
        (holder,) = world.holders()
        order.append(holder)
        world.release(holder)
    return order[1:]


def test_the_first_is_the_next(world: World) -> None:
    """The ticket that was moved last is the first; all others keep their order."""
    world.move("c")
    world.move("b")
    assert [world.lease(key).priority for key in ("a", "b", "c")] == [0, 1, 1]
    assert line(world) == ["b", "c", "a"]


def test_a_move_of_the_first_changes_nothing(world: World) -> None:
    """Repeating a move does not raise the priority again, nor does a move of the first ticket."""
    world.move("c")
    before, revision = world.lease("c"), world.revision
    world.move("c")
    world.move("c", before.priority)
    assert (world.lease("c"), world.revision) == (before, revision)


def test_a_lower_priority_is_the_end_of_the_line(world: World) -> None:
    """A lowered ticket goes behind the others, although it was in the page that is loaded first."""
    world.move("a", -1)
    assert line(world) == ["b", "c", "a"]


def test_a_move_may_grant_at_once() -> None:
    """A ticket that is moved before a gang gets what was set aside for the gang."""
    world = World()
    for name in ("p", "q"):
        world.pool(name, 1)
    world.ask("held", {"q": 1})
    world.ask("gang", {"p": 1, "q": 1})
    world.ask("one", {"p": 1})
    assert world.states()["one"] == "w"
    world.move("one")
    assert (world.states()["one"], world.states()["gang"]) == ("g", "w")


def test_a_move_back_is_decided_by_the_stored_line() -> None:
    """A scan in the batch of a move reads on from where the moved ticket was, not from where it is.

    Else it would skip all tickets between them.
    """
    world = World(page=1)
    world.pool("p", 1)
    for name in ("held", "a", "b", "c", "d"):
        world.ask(name)
    changes, _ = operator_actions.move(world.facts, LeaseId("a"), -5)
    ends = leases.release(world.facts, world.moment, world.wall, LeaseId("held"), Proof())
    changes.update(ends[0])
    world.do((changes, None))
    assert world.holders() == ["b"]


def test_first_in_all_lines() -> None:
    """A gang that is made first is first in each of its lines."""
    world = World()
    for name in ("p", "q"):
        world.pool(name, 1)
        world.ask(f"held {name}", {name: 1})
    world.ask("p1", {"p": 1}, priority=3)
    world.ask("q1", {"q": 1}, priority=7)
    world.ask("gang", {"p": 1, "q": 1})
    world.move("gang")
    assert world.lease("gang").priority == 8
    world.release("held p")
    world.release("held q")
    assert (world.states()["gang"], world.states()["p1"], world.states()["q1"]) == ("g", "w", "w")


def test_first_among_tickets_of_the_same_batch(world: World) -> None:
    """Tickets that came in the same batch count, although no row has them yet."""
    facts = Facts(pools=world.facts.pools, leases=dict(world.facts.leases))
    world.ask("urgent", priority=9)
    facts.leases[LeaseId("urgent")] = world.lease("urgent")
    changes, _ = operator_actions.move(facts, LeaseId("c"), None)
    moved = changes.leases[LeaseId("c")]
    assert moved is not None and moved.priority == 9, "it has asked earlier"


def test_first_after_it_was_lowered_in_the_same_batch(world: World) -> None:
    """The stored first ticket that was lowered goes back before those behind it.

    They are not loaded: only its own stored place tells where they may be at most.
    """
    stored = world.lease("a")
    facts = Facts(pools=world.facts.pools, leases={stored.id: stored}, heads={"p": order(stored)})
    lowered, _ = operator_actions.move(facts, LeaseId("a"), -1)
    facts.apply(lowered)
    changes, _ = operator_actions.move(facts, LeaseId("a"), None)
    lowered.update(changes)
    world.do((lowered, None))
    assert line(world) == ["a", "b", "c"]


def test_what_cannot_be_moved(world: World) -> None:
    """A granted, an ended and an unknown lease are refused, and a priority beyond all bounds."""
    world.release("a")
    for name, code in (
        ("held", Code.NOT_WAITING),
        ("a", Code.NOT_WAITING),
        ("?", Code.LEASE_NOT_FOUND),
    ):
        with Refused(code):
            world.move(name, 1)
    with Refused(Code.INVALID):
        world.move("b", PRIORITY_MAX + 1)


def test_the_highest_priority_has_an_end(world: World) -> None:
    """Users cannot keep an operator from the front; only operators can, and the refusal says so."""
    world.ask("top", priority=PRIORITY_MAX)
    world.move("c")
    world.move("top")
    world.move("c")
    assert world.lease("top").priority == PRIORITY_MAX + 1
    top = world.lease("top")
    world.facts.leases[top.id] = Lease(
        **{name: getattr(top, name) for name in top.__struct_fields__}
        | {"priority": MOVED_PRIORITY_MAX, "arrival": 0}
    )
    with Refused(Code.INVALID) as refused:
        world.move("b")
    assert "lower priority" in refused.message


def again(world: World, key: str) -> Lease:
    """Retry a lease or ticket as its owner does; return the new one."""
    new = request_again(world.lease(key), LeaseId(f"{key}2"), f"{key}2")
    world.retry(key, new, Proof("me"))
    return world.lease(f"{key}2")


def test_retries_keep_the_place_of_a_move() -> None:
    """A ticket that keeps its place keeps that of the move; one that goes to the end does not.

    A priority above the pool's maximum for users does not keep its owner from trying again.
    """
    for on_retry, place in (("keep", 7), ("requeue", 0)):
        world = World()
        world.pool("p", 1, on_retry=on_retry, priority_max=5)
        world.ask("held")
        for name in ("a", "b"):
            world.ask(name)
        world.ask("c", priority=5)
        world.move("c", 6)
        world.move("b", 7)
        ticket = again(world, "b")
        assert ticket.priority == place, on_retry
        assert (ticket.priority_asked or 0) == 0
        assert ticket.digest == world.lease("b").digest


def test_a_forced_ticket_is_granted_over_the_limit(world: World) -> None:
    """It is granted at once, also by a paused pool, and is shown as forced; others wait for it."""
    world.pause("p")
    world.force("b")
    assert world.states() == {"held": "g", "a": "w", "b": "g", "c": "w"}
    assert world.lease("b").forced
    assert world.facts.pools["p"].occupied == 2
    world.pause("p", False)
    world.release("held")
    assert world.states()["a"] == "w"
    world.release("b")
    assert world.states()["a"] == "g"


def test_force_is_safe_to_repeat(world: World) -> None:
    """Repeating it changes nothing; a lease that was granted in turn is refused."""
    world.force("b")
    before, revision = world.lease("b"), world.revision
    world.force("b")
    assert (world.lease("b"), world.revision) == (before, revision)
    with Refused(Code.NOT_WAITING):
        world.force("held")


def test_a_retry_of_what_an_operator_forced_waits(world: World) -> None:
    """Its holder has not asked for force, so it needs no right for a retry, and waits in line."""
    world.force("b")
    again(world, "b")
    assert (world.states()["b2"], world.lease("b2").forced) == ("w", False)


def test_force_needs_slots() -> None:
    """In a pool with slots there must be free ones; a slot in its cooldown is one."""
    world = World()
    world.slots("s", "s1")
    world.pool("s", None, cooldown=60 * SECOND)
    world.ask("held", {"s": 1})
    world.ask("a", {"s": 1})
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.force("a")
    world.release("held")
    assert world.states()["a"] == "w"
    world.force("a")
    assert world.states()["a"] == "g"


def test_what_cannot_be_forced() -> None:
    """Allocations might not fit, and clients of Boskos would not learn of the grant."""
    world = World()
    world.pool("p", 1)
    world.ask("held")
    world.ask("claims", allocations="{}")
    world.ask("boskos", owner="boskos:ann", pull=True)
    for name in ("claims", "boskos"):
        with Refused(Code.INVALID):
            world.force(name)


def test_why_a_pool_is_paused() -> None:
    """The reason is kept until the pool is resumed; a pause without one does not drop it."""
    world = World()
    world.pool("p", 1)
    world.pause("p", reason="rack 7 has no power")
    world.pause("p")
    assert world.facts.pools["p"].pause_reason == "rack 7 has no power"
    world.pause("p", reason="rack 7 is checked")
    assert world.facts.pools["p"].pause_reason == "rack 7 is checked"
    with Refused(Code.INVALID):
        world.pause("p", reason="two\nlines")
    world.pause("p", False)
    world.pause("p")
    assert world.facts.pools["p"].pause_reason == ""
