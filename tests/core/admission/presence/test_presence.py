"""Nothing is granted to a client that is gone, and nothing is held by one."""

import re
from pathlib import Path

import pytest

from moorage.core.admission import expiry, leases
from moorage.core.admission.bars import PRESENCE, waits_until
from moorage.core.admission.model import CONFIRM_WITHIN, Need, is_unconfirmed
from moorage.core.admission.requests import NEVER, Proof
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.service_time import Timeline
from tests.core.admission.build import World

PATIENCE = 600 * SECOND
PRESENT = PRESENCE // SECOND
CONFIRM = CONFIRM_WITHIN // SECOND


@pytest.fixture
def world() -> World:
    """Return a world with one unit, which is held."""
    made = World()
    made.pool("p", 1)
    made.ask("holder", ttl=NEVER)
    return made


def ask(world: World, name: str, wait: int = 0, **more: object) -> None:
    """Ask over a connection, and wait for some seconds."""
    until = waits_until(world.moment, wait * SECOND, PATIENCE, pull=False, attended=True)
    world.ask(name, attended=True, heard_until=until, **({"patience": PATIENCE} | more))


def poll(world: World, name: str, wait: int = 0) -> set[str]:
    """Poll a ticket; return the pools that are to be scanned because of that."""
    until = waits_until(world.moment, wait * SECOND, PATIENCE, pull=False, attended=True)
    changes, _ = leases.poll(world.facts, world.moment, LeaseId(name), until)
    world.do((changes, None))
    return changes.returned


def leave(world: World, name: str) -> None:
    """Lose the connection on which a ticket's client waits."""
    world.do(leases.leave(world.facts, world.moment, LeaseId(name)))


def confirm(world: World, name: str) -> None:
    """Note that the answer about a grant was read."""
    world.do((expiry.confirm(world.facts, world.moment, LeaseId(name)), None))


def test_who_has_left_is_passed_over_at_once(world: World) -> None:
    """A killed waiter gets nothing; the next, which is there, gets the unit when it is freed."""
    ask(world, "dead", wait=60)
    ask(world, "live", wait=60)
    leave(world, "dead")
    world.wait(0.1)
    world.release("holder")
    assert world.states() == {"holder": "released", "dead": "w", "live": "g"}


def test_who_returns_has_kept_its_place(world: World) -> None:
    """Between, others go first; then it is before those that asked later."""
    ask(world, "away", wait=60)
    ask(world, "later", wait=60)
    leave(world, "away")
    world.wait(30)
    assert poll(world, "away", wait=60) == {"p"}
    assert poll(world, "away", wait=60) == set(), "it was there already"
    world.release("holder")
    assert world.states() == {"holder": "released", "away": "g", "later": "w"}


def test_who_is_away_for_its_patience_is_withdrawn(world: World) -> None:
    """It is withdrawn after its patience, neither sooner nor much later."""
    ask(world, "away", wait=60)
    leave(world, "away")
    world.wait(PATIENCE // SECOND - 1)
    assert world.states()["away"] == "w"
    world.wait(1)
    assert world.states()["away"] == "unheard"


@pytest.mark.parametrize("wait", [0, 20])
def test_who_asks_again_soon_is_present(world: World, wait: int) -> None:
    """Between two requests a client has a moment, with and without long polls."""
    ask(world, "first", wait=wait)
    for _ in range(20):
        world.wait(wait + PRESENT / 2)
        poll(world, "first", wait=wait)
    ask(world, "next", wait=60)
    world.wait(wait + PRESENT / 2)
    world.release("holder")
    assert world.states() == {"holder": "released", "first": "g", "next": "w"}


@pytest.mark.parametrize("wait", [0, 20])
def test_who_does_not_ask_again_is_passed_over(world: World, wait: int) -> None:
    """A host that vanishes is passed over a moment after the end of its last request."""
    ask(world, "first", wait=wait)
    ask(world, "next", wait=60)
    world.wait(wait + PRESENT + 1)
    world.release("holder")
    assert world.states() == {"holder": "released", "first": "w", "next": "g"}


def test_few_polls_are_stored(world: World) -> None:
    """Of polls every second, one of several changes the ticket."""
    ask(world, "t")
    stored = 0
    for _ in range(60):
        world.wait(1)
        until = waits_until(world.moment, 0, PATIENCE, pull=False, attended=True)
        changes, _ = leases.poll(world.facts, world.moment, LeaseId("t"), until)
        stored += bool(changes.heard)
        world.do((changes, None))
        assert not changes.returned, "it is always present"
    assert stored <= 12


def test_nothing_stays_set_aside_for_who_is_gone() -> None:
    """A gang whose client vanishes frees what was set aside for it, without another event."""
    world = World()
    world.pool("p", 2)
    world.ask("holder", ttl=NEVER)
    ask(world, "gang", needs=(Need("p", 2),))
    ask(world, "one", wait=60)
    assert world.states() == {"holder": "g", "gang": "w", "one": "w"}
    world.wait(PRESENT + 1)
    assert world.states() == {"holder": "g", "gang": "w", "one": "g"}


def test_a_forced_ticket_waits_for_its_client() -> None:
    """Forcing the grant of a ticket whose client is away keeps it for the client's return."""
    world = World()
    world.pool("p", 1)
    world.ask("holder", ttl=NEVER)
    ask(world, "away", wait=60)
    leave(world, "away")
    world.wait(1)
    world.force("away")
    assert world.states()["away"] == "w"
    poll(world, "away", wait=60)
    assert world.states()["away"] == "g"


@pytest.mark.parametrize("expire", ["free", "keep"])
@pytest.mark.parametrize("ttl", [None, NEVER, 3 * SECOND, 600 * SECOND])
def test_a_grant_that_nobody_confirms_is_taken_back(expire: str, ttl: object) -> None:
    """Within seconds, without cooldown or lock-delay, whatever its TTL and its pool."""
    world = World()
    world.pool("p", 1, expire=expire, cooldown=60 * SECOND, lock_delay=90 * SECOND)
    ask(world, "dead", ttl=ttl)
    ask(world, "next", wait=60)
    assert world.states() == {"dead": "g", "next": "w"}
    world.wait(CONFIRM)
    assert world.states() == {"dead": "w", "next": "g"}
    world.wait(PATIENCE // SECOND)
    assert world.states()["dead"] == "unheard"


CONFIRMATIONS = {
    "the answer was read": confirm,
    "a renewal": lambda world, name: world.renew(name),
    "a record": lambda world, name: world.do(
        leases.record(world.facts, world.moment, LeaseId(name), Proof(), "{}", 0)
    ),
    "an outcome": lambda world, name: world.do(
        leases.outcome(world.facts, world.moment, LeaseId(name), Proof(), "ok", "")
    ),
    "a hold": lambda world, name: world.hold(name, 900 * SECOND),
}


@pytest.mark.parametrize("way", CONFIRMATIONS)
@pytest.mark.parametrize(("ttl", "lasts"), [(NEVER, 800), (3 * SECOND, 3), (600 * SECOND, 600)])
def test_a_confirmed_grant_has_its_full_ttl(way: str, ttl: object, lasts: int) -> None:
    """Any sign that the holder knows of it gives a lease its TTL from then on, or none."""
    world = World()
    world.pool("p", 1)
    ask(world, "a", ttl=ttl)
    world.wait(1)
    assert is_unconfirmed(world.lease("a"))
    CONFIRMATIONS[way](world, "a")
    assert not is_unconfirmed(world.lease("a"))
    world.wait(lasts - 0.1)
    assert world.states()["a"] == "g"
    world.wait(0.1)
    assert world.states()["a"] == ("g" if ttl is NEVER else "ttl_over")


def test_a_repeated_request_does_not_confirm(world: World) -> None:
    """Its answer may be lost, too; it keeps the deadline of the grant."""
    world.release("holder")
    ask(world, "a")
    world.wait(CONFIRM - 1)
    world.do(leases.repeat(world.facts, world.moment, LeaseId("a"), Instant(0)))
    world.wait(1)
    assert world.states()["a"] == "w"


def test_who_confirms_too_late_has_kept_its_place(world: World) -> None:
    """A client that was cut off at its grant gets another one, before those that asked later."""
    world.release("holder")
    ask(world, "a", wait=60)
    first = world.lease("a")
    ask(world, "later", wait=60)
    ask(world, "last", wait=600)
    world.wait(CONFIRM)
    assert world.states() == {"holder": "released", "a": "w", "later": "g", "last": "w"}
    assert world.facts.pools["p"].occupied == 1
    with pytest.raises(Error) as late:
        world.renew("a", Proof(token=first.token))
    assert late.value.code == Code.LEASE_ENDED, "its client must not believe that it has a lease"
    poll(world, "a", wait=60)
    world.release("later")
    assert world.states()["a"] == "g"
    assert world.lease("a").token != first.token


def test_who_was_granted_too_late_may_withdraw(world: World) -> None:
    """A client that gives back a grant that was taken back leaves no ticket behind."""
    world.release("holder")
    ask(world, "a")
    token = world.lease("a").token
    world.wait(CONFIRM)
    assert world.states()["a"] == "w"
    proof = Proof(token=token)
    world.do(leases.release(world.facts, world.moment, world.wall, LeaseId("a"), proof))
    assert world.states()["a"] == "withdrawn"
    assert world.facts.pools["p"].waiting == 0


def test_a_short_hold_ends_nothing_that_nobody_knows_of(world: World) -> None:
    """A grant whose hold is over before its client has polled is taken back, too."""
    world.release("holder")
    ask(world, "a", hold=2 * SECOND)
    world.wait(2)
    assert world.states()["a"] == "w"
    poll(world, "a")
    assert world.states()["a"] == "g"
    confirm(world, "a")
    world.wait(2)
    assert world.states()["a"] == "hold_over"


def test_a_forced_grant_without_a_client_ends(world: World) -> None:
    """A forced pull ticket is granted without a poll, so it would be granted again at once."""
    ask(world, "forced", forced=True, pull=True)
    assert world.states()["forced"] == "g"
    world.wait(CONFIRM)
    assert world.states()["forced"] == "unconfirmed"


def test_an_unread_grant_is_taken_back_at_once_unless_it_is_known(world: World) -> None:
    """A grant whose answer was not read is given back; a confirmed one is not."""
    world.release("holder")
    ask(world, "lost")
    ask(world, "read", wait=60)

    def unread(name: str) -> None:
        made = expiry.undelivered(world.facts, world.moment, world.wall, LeaseId(name))
        world.do((made, None))

    unread("lost")
    assert world.states()["read"] == "g"
    confirm(world, "read")
    unread("read")
    assert world.states() == {"holder": "released", "lost": "w", "read": "g"}


def test_a_slot_gets_its_state_back() -> None:
    """A slot that nobody has used is in the state in which it was granted."""
    world = World()
    world.slots("p", "s", state="dirty")
    need = Need("p", 1, state="dirty", dest="cleaning")
    world.pool("p", None)
    ask(world, "janitor", needs=(need,), owner="boskos:janitor", ttl=NEVER)
    assert world.facts.slots["p"]["s"].state == "cleaning"
    world.wait(CONFIRM)
    assert world.states()["janitor"] == "unconfirmed"
    assert world.facts.slots["p"]["s"].state == "dirty"


def test_an_outage_leaves_seconds_to_confirm(world: World) -> None:
    """After an outage a holder has a few seconds, but restarts do not add up."""
    world.release("holder")
    ask(world, "a")
    outages = 0
    while world.states()["a"] == "g":
        outages += 1
        world.now += 60 * SECOND
        before = world.facts.timeline
        world.facts.timeline = Timeline(
            downtime=before.downtime + 60 * SECOND,
            alive_at=Instant(world.now),
            outage_ended_at=Instant(world.now),
        )
        world.wait(CONFIRM / 2)
    assert outages == 4
    assert world.states()["a"] == "w"


def test_after_a_restart_clients_have_a_moment(world: World) -> None:
    """No request waits any more: who does not return is passed over, whatever its last wait was."""
    ask(world, "gone", wait=60)
    ask(world, "back", wait=60)
    for name in ("gone", "back"):
        made = leases.left_at_restart(world.facts, world.moment, LeaseId(name))
        assert made.unfinished == {"p"}
        world.do((made, None))
    world.wait(PRESENT / 2)
    poll(world, "back", wait=60)
    world.wait(PRESENT / 2 + 1)
    world.release("holder")
    assert world.states() == {"holder": "released", "gone": "w", "back": "g"}


def test_the_reference_has_these_times() -> None:
    """The table of how soon a unit is free follows from the two constants, and names each way."""
    text = (Path(__file__).parents[4] / "docs/reference/native-api.md").read_text()
    part = text.partition("### Clients that are gone")[2].partition("\n### ")[0]
    said = " ".join(part.split())
    assert f"{PRESENT} s after its last request" in said
    assert f"A grant must be confirmed within {CONFIRM} s" in said
    rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 6
    most = PRESENT + CONFIRM
    assert {row[-1] for row in rows} == {f"{most} s after the start |"}
    for row in rows:
        seconds = {int(found) for cell in row for found in re.findall(r"(\d+) s", cell)}
        assert seconds <= {PRESENT, CONFIRM, most, 16}, row
