"""Records of leases, keys that are used again, and leases that go back into the line."""

import pytest

from moorage.core.admission import leases
from moorage.core.admission.model import has_left_key, record_age
from moorage.core.admission.owners import GOVERNORS
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.limits import RECORD_BYTES_MAX
from tests.core.admission.build import Refused, World, make_ask

PATIENCE = 30 * SECOND
ME, OTHER = Proof("me"), Proof("somebody else")


@pytest.fixture
def world() -> World:
    """Return a world with a pool `p` of one unit."""
    made = World()
    made.pool("p", 1)
    return made


def write(world: World, key: str, text: str, version: int, proof: Proof = ME) -> int:
    """Write a record; return its version afterwards."""
    made = leases.record(world.facts, world.moment, LeaseId(key), proof, text, version)
    world.do(made)
    return world.lease(key).record_version


def test_a_write_replaces_one_version(world: World) -> None:
    """Another version is refused, so that no step of another writer is lost."""
    world.ask("a")
    assert write(world, "a", '{"step":1}', 0) == 1
    assert write(world, "a", '{"step":2}', 1) == 2
    with Refused(Code.RECORD_CHANGED) as refused:
        write(world, "a", '{"step":9}', 1)
    assert "version 2, not 1" in refused.message
    assert world.lease("a").record == '{"step":2}'


def test_a_repeated_write_is_harmless(world: World) -> None:
    """The answer of the first may have been lost; its time stays."""
    world.ask("a")
    write(world, "a", '{"step":1}', 0)
    since = world.lease("a").recorded_at
    world.now += SECOND
    assert write(world, "a", '{"step":1}', 0) == 1
    assert world.lease("a").recorded_at == since
    write(world, "a", '{"step":2}', 1)
    with Refused(Code.RECORD_CHANGED):
        write(world, "a", '{"step":1}', 0)


def test_only_the_holder_of_a_granted_lease_writes(world: World) -> None:
    """And only a short record."""
    world.ask("a")
    world.ask("b")
    with Refused(Code.HOLDER_MISMATCH):
        write(world, "a", "{}", 0, OTHER)
    with Refused(Code.TOKEN_STALE):
        write(world, "a", "{}", 0, Proof("me", "1.1.9"))
    with Refused(Code.INVALID):
        write(world, "b", "{}", 0)
    with Refused(Code.LEASE_NOT_FOUND):
        leases.record(world.facts, world.moment, LeaseId("c"), ME, "{}", 0)
    with Refused(Code.INVALID):
        write(world, "a", "{}", -1)
    longest = '"' + "x" * (RECORD_BYTES_MAX - 2) + '"'
    with Refused(Code.INVALID):
        write(world, "a", longest + " ", 0)
    assert write(world, "a", longest, 0) == 1
    world.release("a")
    with Refused(Code.LEASE_ENDED):
        write(world, "a", "{}", 1)


def test_the_age_of_a_record(world: World) -> None:
    """It is counted from the last write, or from the grant; a ticket has none."""
    world.ask("a")
    world.ask("b")
    world.now += 5 * SECOND
    at = world.moment.at
    assert record_age(world.lease("a"), at) == 5 * SECOND
    assert record_age(world.lease("b"), at) is None
    write(world, "a", "{}", 0)
    assert record_age(world.lease("a"), at) == 0
    world.now += 3 * SECOND
    assert record_age(world.lease("a"), world.moment.at) == 3 * SECOND


def test_a_release_by_version(world: World) -> None:
    """A live lease with another version stays; of an ended one the version does not matter."""
    world.ask("a")
    write(world, "a", "{}", 0)
    with Refused(Code.RECORD_CHANGED):
        world.release("a", ME, version=0)
    assert world.states()["a"] == "g"
    world.release("a", ME, version=1)
    world.release("a", ME, version=0)
    assert world.states()["a"] == "released"


def test_a_key_is_opened_again(world: World) -> None:
    """An ended lease leaves its key; a live one is the answer."""
    wish = {"key": "host", "reopen": True}
    assert world.ask("a", **wish) == "a"
    assert world.ask("b", **wish) == "a"
    world.release("a")
    assert world.ask("c", **wish) == "c"
    assert world.states() == {"a": "released", "c": "g"}
    assert has_left_key(world.lease("a"))
    assert world.lease("a").key == "host/a"
    assert world.facts.asked["me", "host"] == "c"


def test_a_live_key_belongs_to_one_request(world: World) -> None:
    """Another request may have the key only after the end."""
    world.ask("a", key="host", reopen=True)
    with Refused(Code.KEY_REUSED):
        world.ask("b", key="host", digest="other", reopen=True)
    world.release("a")
    assert world.ask("c", key="host", digest="other", reopen=True) == "c"


def test_without_reopen_a_key_lasts(world: World) -> None:
    """The ended lease is the answer, as before."""
    world.ask("a", key="host", reopen=True)
    world.release("a")
    assert world.ask("b", key="host") == "a"


def test_an_invalid_request_does_not_take_the_key(world: World) -> None:
    """The ended lease keeps it."""
    world.ask("a", key="host")
    world.release("a")
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.ask("b", {"p": 9}, key="host", digest="other", reopen=True)
    assert world.ask("c", key="host") == "a"


def pull(world: World, name: str, wait: int = 60, **more: object) -> None:
    """Ask for a unit with `pull`."""
    until = world.moment.alive + wait * SECOND + PATIENCE
    world.ask(name, pull=True, patience=PATIENCE, heard_until=until, **more)


def requeue(world: World, old: str, new: str, key: str | None = None, **how: object) -> LeaseId:
    """Give a unit back, and wait at the old place."""
    lease = world.lease(old)
    until = world.moment.alive + PATIENCE
    wish = make_ask(new, {"p": 1}, key=key or lease.key, pull=lease.pull, patience=PATIENCE)
    return world.retry(old, wish.heard(until), requeue=True, **how)


def test_a_requeued_lease_waits_at_its_old_place(world: World) -> None:
    """The unit goes to the next; when a request waits for it, it is the first again."""
    pull(world, "a", key="host")
    pull(world, "b")
    old = world.lease("a")
    assert requeue(world, "a", "a2") == "a2"
    assert world.states() == {"a": "retried", "b": "g", "a2": "w"}
    new = world.lease("a2")
    assert (new.key, new.arrival, new.priority, new.pull) == ("host", old.arrival, 0, True)
    assert world.lease("a").key == "host/a"
    assert requeue(world, "a", "a3", key="host") == "a2", "a repeated retry has the same answer"
    pull(world, "c")
    world.poll("a2", 40)
    world.release("b")
    assert (world.states()["a2"], world.states()["c"]) == ("g", "w")


@pytest.mark.parametrize("owner", ["ci", GOVERNORS])
def test_nobody_requeues_past_on_retry(world: World, owner: str) -> None:
    """Where retries go to the end, `hold_max` bounds how long somebody has units while others wait.

    A governor keeps its place: its host could not start just now.
    """
    world.pool("p", 1, on_retry="requeue")
    world.ask("a", owner=owner, key="host")
    world.ask("b", owner="other")
    proof = Proof(owner)
    wish = make_ask("a2", {"p": 1}, owner=owner, key="host")
    world.retry("a", wish, proof, requeue=True)
    first = owner == GOVERNORS
    assert (world.states()["a2"], world.states()["b"]) == (("g", "w") if first else ("w", "g"))


def test_a_requeued_lease_is_not_granted_at_once(world: World) -> None:
    """Nobody waits for it, although nobody else wants the unit."""
    pull(world, "a")
    requeue(world, "a", "a2")
    assert world.states() == {"a": "retried", "a2": "w"}
    world.poll("a2", 30)
    assert world.states()["a2"] == "g"


def test_a_requeue_by_version(world: World) -> None:
    """Another version of the record is refused; the new lease has none."""
    pull(world, "a")
    write(world, "a", "{}", 0)
    with Refused(Code.RECORD_CHANGED):
        requeue(world, "a", "a2", version=0)
    requeue(world, "a", "a2", version=1)
    new = world.lease("a2")
    assert (new.record, new.record_version, new.recorded_at) == (None, 0, None)


def test_what_cannot_be_requeued(world: World) -> None:
    """A forced lease has no place in line, and an ended one gives nothing back."""
    pull(world, "a")
    world.ask("f", forced=True)
    with Refused(Code.INVALID):
        requeue(world, "f", "f2")
    world.release("a")
    with Refused(Code.LEASE_ENDED):
        requeue(world, "a", "a2")


def test_a_requeue_under_another_key(world: World) -> None:
    """The old lease keeps its key."""
    pull(world, "a", key="host")
    requeue(world, "a", "a2", key="other")
    assert (world.lease("a").key, world.lease("a2").key) == ("host", "other")
    world.poll("a2", 30)
    with Refused(Code.HOLDER_MISMATCH):
        world.retry("a2", make_ask("a3", {"p": 1}), OTHER, requeue=True)
    assert world.states()["a2"] == "g"
