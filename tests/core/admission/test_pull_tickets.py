"""Pull tickets of the native API: granted only while a request waits for them."""

import pytest

from moorage.core.admission import leases
from moorage.core.admission.bars import is_silent
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import LeaseId
from tests.core.admission.build import START, World

PATIENCE = 30 * SECOND


@pytest.fixture
def world() -> World:
    """Return a world with a pool `p` of two units, which a lease `full` has."""
    made = World()
    made.pool("p", 2)
    made.ask("full", {"p": 2})
    return made


def pull(world: World, name: str, units: int = 1, wait: float = 0, **more: object) -> None:
    """Ask for units with `pull`, and wait for `wait` seconds."""
    until = world.moment.alive + round(wait * SECOND) + PATIENCE
    world.ask(name, {"p": units}, pull=True, patience=PATIENCE, heard_until=until, **more)


def poll(world: World, name: str, wait: float = 0) -> None:
    """Poll a pull ticket, and wait for `wait` seconds."""
    world.poll(name, 30 + wait)


def leave(world: World, name: str, others: Instant | None = None) -> None:
    """Let the client of a ticket leave."""
    world.do(leases.leave(world.facts, world.moment, LeaseId(name), others))


def test_it_is_granted_while_a_request_waits(world: World) -> None:
    """The release of another grants it, without a poll."""
    pull(world, "a", wait=20)
    world.wait(19)
    world.release("full")
    assert world.states() == {"full": "released", "a": "g"}


def test_it_is_not_granted_after_the_wait(world: World) -> None:
    """A wait of 20 s ends after 20 s, although the ticket lives on for its patience."""
    pull(world, "a", wait=20)
    world.wait(20)
    assert not is_silent(world.lease("a"), world.moment)
    world.wait(0.001)
    assert is_silent(world.lease("a"), world.moment)
    world.release("full")
    assert world.states()["a"] == "w"
    poll(world, "a")
    assert world.states()["a"] == "g"


def test_nothing_is_set_aside_for_somebody_who_is_absent(world: World) -> None:
    """A later ticket gets the units at once, and the first keeps its place for its patience."""
    pull(world, "a", 2)
    world.ask("b")
    world.wait(0.001)
    world.release("full")
    assert world.states() == {"full": "released", "a": "w", "b": "g"}
    assert world.facts.pools["p"].wake_at is None
    pull(world, "c", 2, wait=20)
    poll(world, "a", 20)
    world.release("b")
    assert (world.states()["a"], world.states()["c"]) == ("g", "w")


def test_a_request_that_does_not_wait_is_granted_at_once_or_not(world: World) -> None:
    """In its batch it has its turn; units that do not suffice are not set aside for it."""
    world.release("full")
    pull(world, "a")
    assert world.states()["a"] == "g"
    pull(world, "b", 2)
    world.ask("c")
    assert (world.states()["b"], world.states()["c"]) == ("w", "g")


def test_when_the_wait_ends_others_get_the_units(world: World) -> None:
    """Units that were set aside for it are granted without another event."""
    pull(world, "a", 2, wait=20)
    world.ask("b")
    world.release("full")
    world.ask("half")
    assert world.states()["a"] == "g"
    world.release("a")
    assert (world.states()["b"], world.states()["half"]) == ("g", "g")
    world.release("half")
    pull(world, "c", 2, wait=5)
    world.ask("d")
    assert (world.states()["c"], world.states()["d"]) == ("w", "w")
    assert world.facts.pools["p"].wake_at == START + 5 * SECOND + 1
    world.wait(5.001)
    assert (world.states()["c"], world.states()["d"]) == ("w", "g")


def test_at_the_last_moment_of_the_wait_nothing_changes(world: World) -> None:
    """A batch at that moment still sets its units aside, so no later wake-up is lost."""
    world.release("full")
    world.ask("half")
    pull(world, "c", 2, wait=5)
    world.ask("d")
    world.now += 5 * SECOND
    world.sweep()
    assert (world.states()["c"], world.states()["d"]) == ("w", "w")
    assert world.facts.pools["p"].wake_at == START + 5 * SECOND + 1
    world.wait(0.001)
    assert (world.states()["c"], world.states()["d"]) == ("w", "g")


def test_when_its_client_leaves_others_get_the_units(world: World) -> None:
    """At once, if the leave is decided together with its pools."""
    pull(world, "a", 2, wait=60)
    world.ask("b")
    world.release("full")
    assert world.states()["a"] == "g"
    pull(world, "c", 2, wait=60)
    world.ask("d")
    world.release("a")
    assert [world.states()[key] for key in "bcd"] == ["g", "w", "w"]
    leave(world, "c")
    assert world.lease("c").heard_until == world.moment.alive + PATIENCE - 1
    assert world.states()["d"] == "g"


def test_a_later_poll_shortens_the_wait(world: World) -> None:
    """The last poll tells until when a request waits: an earlier one may have been broken."""
    pull(world, "a", wait=60)
    world.wait(1)
    poll(world, "a", 5)
    assert world.lease("a").heard_until == world.moment.alive + 5 * SECOND + PATIENCE
    world.wait(5.001)
    world.release("full")
    assert world.states()["a"] == "w"


def test_a_client_that_leaves_does_not_end_the_wait_of_another(world: World) -> None:
    """Its deadline is that of the client that remains."""
    pull(world, "a", wait=60)
    other = Instant(world.moment.alive + 10 * SECOND + PATIENCE)
    leave(world, "a", other)
    assert world.lease("a").heard_until == other
    world.release("full")
    assert world.states()["a"] == "g"


def test_a_renewal_keeps_the_place_only(world: World) -> None:
    """It is not a request that waits."""
    pull(world, "a")
    world.wait(20)
    world.renew("a")
    world.wait(20)
    world.release("full")
    assert world.states()["a"] == "w"
    assert is_silent(world.lease("a"), world.moment)
    world.wait(10.001)
    assert world.states()["a"] == "unheard"


def test_forced_ones_are_granted_at_once(world: World) -> None:
    """Whether they pull or not."""
    pull(world, "a", forced=True)
    assert world.states()["a"] == "g"


def test_ranks_stay(world: World) -> None:
    """Of two that are waited for, the one that asked first is granted."""
    pull(world, "a")
    pull(world, "b", wait=60)
    world.wait(10)
    poll(world, "a", 20)
    world.ask("one", {"p": 1}, forced=True)
    world.release("full")
    assert (world.states()["a"], world.states()["b"]) == ("g", "w")
