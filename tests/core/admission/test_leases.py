"""Requests, renewals, holds, releases and retries of leases, with every refusal."""

from typing import Any

import pytest

from moorage.core.admission import leases
from moorage.core.admission.model import Need, Pacing
from moorage.core.admission.requests import NEVER, Proof, request_again
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from tests.core.admission.build import START, Refused, World, make_ask


@pytest.fixture
def world() -> World:
    """Return a world with pool p of two units."""
    made = World()
    made.pool("p", 2)
    return made


def test_the_same_key_is_the_same_lease(world: World) -> None:
    """A repeated key returns the same ticket or lease, even ended; another request is refused."""
    world.ask("a", {"p": 2})
    assert world.ask("again", {"p": 2}, key="a") == "a"
    world.ask("b")
    assert world.ask("again", key="b") == "b"
    world.release("a")
    assert world.ask("again", {"p": 2}, key="a") == "a"
    assert world.states() == {"a": "released", "b": "g"}
    with Refused(Code.KEY_REUSED):
        world.ask("again", {"p": 1}, key="a", digest="other")
    assert world.ask("theirs", key="a", owner="you") == "theirs", "keys are per owner"


def test_a_forgotten_key_makes_a_new_lease(world: World) -> None:
    """After an ended lease is deleted, its key makes a new lease with a higher fencing token."""
    world.ask("a")
    token = world.lease("a").token
    world.release("a")
    world.facts._lease(LeaseId("a"), None)
    assert world.ask("new", key="a") == "new"
    again = world.lease("new").token
    assert token is not None
    assert again is not None
    assert again > token


@pytest.mark.parametrize(
    ("needs", "more"),
    [
        ((), {}),
        (tuple(Need(f"p{n}", 1) for n in range(17)), {}),
        ((Need("p", 1), Need("p", 1)), {}),
        ((Need("p", 0),), {}),
        ((Need("p", 1 << 31),), {}),
        ((Need("p", 1, "dirty"),), {}),
        ((Need("p", 1),), {"key": ""}),
        ((Need("p", 1),), {"owner": "o" * 2_300}),
        ((Need("p", 1),), {"owner": "😀" * 511, "key": "😀" * 255}),
        ((Need("p", 1),), {"key": "k" * 256}),
        ((Need("p", 1),), {"priority": 1_000_001}),
        ((Need("p", 1),), {"priority": -1_000_001}),
        ((Need("p", 1),), {"ttl": SECOND - 1}),
        ((Need("p", 1),), {"ttl": 3_600 * SECOND + 1}),
        ((Need("p", 1),), {"hold": 0}),
        ((Need("p", 1),), {"hold": 400 * 86_400 * SECOND}),
        ((Need("p", 1),), {"patience": 0}),
        ((Need("p", 1),), {"patience": 3_601 * SECOND}),
        ((Need("p", 1),), {"labels": {"": "x"}}),
        ((Need("p", 1),), {"labels": {"x": "y" * 256}}),
        ((Need("p", 1),), {"labels": {str(n): "" for n in range(33)}}),
        ((Need("p", 1),), {"forced": True, "allocations": "{}"}),
    ],
)
def test_an_invalid_request_is_refused(
    world: World, needs: tuple[Need, ...], more: dict[str, Any]
) -> None:
    """An invalid request is refused and changes nothing."""
    before = world.facts.pools["p"]
    with Refused(Code.INVALID):
        world.ask("a", needs, **more)
    assert (world.facts.pools["p"], world.facts.leases) == (before, {})
    assert world.facts.arrivals == 0


def test_a_request_that_never_fits_is_refused(world: World) -> None:
    """More units than the limit, the quota or the slots are refused, and so are unknown pools."""
    world.pool("q", 5, quota=2)
    world.slots("s", "a", "b")
    with Refused(Code.UNITS_ABOVE_LIMIT) as refused:
        world.ask("a", {"p": 3})
    assert refused.message == "The request needs 3 units of pool 'p', but the pool has only 2."
    for needs in ({"q": 3}, {"s": 3}):
        with Refused(Code.UNITS_ABOVE_LIMIT):
            world.ask("a", needs)
    with Refused(Code.POOL_UNKNOWN):
        world.ask("a", {"p": 1, "x": 1})
    world.ask("held", {"s": 1})
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.ask("a", {"s": 2}, forced=True)


def test_a_full_line_takes_no_ticket(world: World) -> None:
    """A ticket above `queue_max` is refused, but not a request that is forced or need not wait."""
    world.pool("p", 2, queue_max=1)
    for key in ("a", "b", "c"):
        world.ask(key)
    assert world.states() == {"a": "g", "b": "g", "c": "w"}
    with Refused(Code.QUEUE_FULL):
        world.ask("d")
    world.ask("f", forced=True)
    assert world.states()["f"] == "g"


def test_a_batch_fills_free_units_before_the_line(world: World) -> None:
    """Requests of one batch fill the free units and then the line, before any is granted."""
    world.pool("p", 3, queue_max=2, queue_max_per_owner=2, pacing=Pacing(SECOND, 2))
    for n in range(4):
        made, _ = leases.acquire(world.facts, world.moment, make_ask(f"a{n}", {"p": 1}))
        world.facts.apply(made)
    with Refused(Code.QUEUE_FULL):
        leases.acquire(world.facts, world.moment, make_ask("a4", {"p": 1}))
    world.sweep()
    assert world.states() == {"a0": "g", "a1": "g", "a2": "w", "a3": "w"}


def test_terms_are_the_strictest_of_all_pools(world: World) -> None:
    """The strictest TTL and hold of all pools count, unless the request sets its own or none."""
    world.pool("q", 2, ttl=30 * SECOND, hold=100 * SECOND)
    world.pool("r", 2, ttl=90 * SECOND, hold=50 * SECOND, expire="keep")
    world.ask("a", {"p": 1, "q": 1, "r": 1})
    lease = world.lease("a")
    assert (lease.ttl, lease.hold, lease.keep) == (30 * SECOND, 50 * SECOND, True)
    world.ask("b", {"q": 1}, ttl=NEVER, hold=NEVER)
    lease = world.lease("b")
    assert (lease.ttl, lease.hold, lease.heard_until, lease.hold_until) == (None,) * 4
    assert lease.keep is False


def test_only_its_holder_may_change_a_lease(world: World) -> None:
    """Another owner and an outdated token are refused; an operator is allowed."""
    world.ask("a")
    token = str(world.lease("a").token)
    for proof, code in (
        (Proof("you", token), Code.HOLDER_MISMATCH),
        (Proof("me", "1.1.0"), Code.TOKEN_STALE),
        (Proof(None, "1.1.0"), Code.TOKEN_STALE),
    ):
        for change in (
            lambda proof=proof: world.renew("a", proof),
            lambda proof=proof: world.release("a", proof),
            lambda proof=proof: world.hold("a", SECOND, proof),
            lambda proof=proof: world.retry("a", make_ask("b", {"p": 1}), proof),
        ):
            before = world.lease("a")
            with Refused(code):
                change()
            assert world.lease("a") == before
    assert world.renew("a", Proof("me", world.lease("a").token)) == "a"
    assert world.release("a", Proof()) == "a"


def test_a_second_release_changes_nothing(world: World) -> None:
    """A repeated release changes neither the ended lease nor the present holder of its units."""
    world.ask("a", {"p": 2})
    world.ask("b", {"p": 2})
    proof = Proof("me", world.lease("a").token)
    world.release("a", proof)
    ended = world.lease("a")
    revision = world.revision
    world.release("a", proof)
    assert (world.lease("a"), world.revision) == (ended, revision)
    assert world.states()["b"] == "g"
    assert world.facts.pools["p"].occupied == 2


def test_an_ended_lease_gives_the_cause(world: World) -> None:
    """Renewals, holds and retries of an ended lease are refused with the cause of its end."""
    world.ask("a")
    world.release("a", cause="revoked", detail="drained by ops")
    with Refused(Code.LEASE_ENDED) as refused:
        world.renew("a")
    assert refused.message == "Lease 'a' has ended: revoked (drained by ops)."
    with Refused(Code.LEASE_ENDED):
        world.hold("a", None)
    with Refused(Code.LEASE_ENDED):
        world.retry("a", make_ask("b", {"p": 1}))
    with Refused(Code.LEASE_NOT_FOUND):
        world.renew("x")


def test_a_ticket_that_is_released_is_withdrawn(world: World) -> None:
    """A released ticket leaves its lines, and a later poll does not bring it back."""
    world.ask("a", {"p": 2})
    world.ask("b")
    world.release("b")
    world.poll("b")
    assert world.states()["b"] == "withdrawn"
    assert world.facts.pools["p"].waiting == 0


def test_renewals_make_no_change_rows(world: World) -> None:
    """A renewal only moves the deadline, without a change row."""
    world.ask("a")
    world.wait(20)
    made, _ = leases.renew(world.facts, world.moment, LeaseId("a"), Proof())
    assert not made.is_published
    assert made.heard == {"a": START + 80 * SECOND}


def test_a_repeated_request_renews(world: World) -> None:
    """A repeated request renews a lease and polls a ticket; an ended lease stays ended."""
    world.ask("a", {"p": 2})
    world.ask("b", heard_until=world.moment.alive + 30 * SECOND)
    world.wait(20)

    def again(key: str, until: int) -> dict[LeaseId, Instant]:
        changes, _ = leases.repeat(world.facts, world.moment, LeaseId(key), Instant(until))
        assert not changes.is_published
        return changes.heard

    assert again("a", 0) == {"a": START + 80 * SECOND}
    assert again("b", START + 50 * SECOND) == {"b": START + 56 * SECOND}
    world.release("a")
    assert again("a", START + 90 * SECOND) == {}


def test_a_poll_never_shortens_a_wait(world: World) -> None:
    """A shorter long poll after a longer one keeps the deadline; unlimited patience stays so."""
    world.ask("full", {"p": 2}, ttl=NEVER)
    world.ask("a", heard_until=world.moment.alive + 30 * SECOND)
    world.poll("a", 60)
    world.poll("a", 10)
    assert world.lease("a").heard_until == START + 60 * SECOND
    world.ask("b")
    world.poll("b", 10)
    assert world.lease("b").heard_until is None


def test_a_retry_keeps_its_units_and_slots() -> None:
    """A retry gives a new lease and token the same slots, although a higher priority waits."""
    world = World()
    world.pool("s", None, cooldown=10 * SECOND)
    world.slots("s", "one")
    world.ask("a", {"s": 1})
    world.ask("b", {"s": 1}, priority=9)
    world.wait(10)
    assert world.retry("a", make_ask("a2", {"s": 1}), Proof("me", world.lease("a").token)) == "a2"
    assert world.states() == {"a": "retried", "b": "w", "a2": "g"}
    old, new = world.lease("a"), world.lease("a2")
    assert new.slots == old.slots == {"s": ("one",)}
    assert old.token is not None
    assert new.token is not None
    assert new.token > old.token
    assert new.heard_until == START + 70 * SECOND
    assert world.facts.slots["s"]["one"].lease == "a2"
    assert world.facts.pools["s"].occupied == 1


def test_the_order_of_needs_does_not_matter(world: World) -> None:
    """A retry that names its pools in another order keeps its units."""
    world.pool("q", 1)
    world.ask("a", {"q": 1, "p": 2})
    world.ask("b", {"q": 1}, priority=9)
    world.retry("a", make_ask("a2", {"q": 1, "p": 2}))
    assert world.states() == {"a": "retried", "b": "w", "a2": "g"}


def test_a_repeated_retry_is_the_same_lease(world: World) -> None:
    """After a lost answer, a repeated retry finds the new lease by its key."""
    world.ask("a")
    proof = Proof("me", world.lease("a").token)
    world.retry("a", make_ask("a2", {"p": 1}), proof)
    assert world.retry("a", make_ask("a3", {"p": 1}, key="a2"), proof) == "a2"
    assert world.states() == {"a": "retried", "a2": "g"}


def test_a_retry_pays_for_pacing_and_does_not_wait(world: World) -> None:
    """A retry does not wait for pacing, but delays the next grant like any other start."""
    world.pool("p", 2, pacing=Pacing(10 * SECOND))
    world.ask("a")
    world.retry("a", make_ask("a2", {"p": 1}))
    world.ask("b")
    assert world.states() == {"a": "retried", "a2": "g", "b": "w"}
    assert world.facts.pools["p"].wake_at == START + 20 * SECOND


@pytest.mark.parametrize("what", ["requeue", "paused", "over", "other needs"])
def test_a_retry_that_may_not_keep_its_units_waits(what: str) -> None:
    """A retry that may not keep its units goes to the end of the line, or to its old place."""
    world = World()
    world.pool("p", 3, on_retry="requeue" if what == "requeue" else "keep")
    world.ask("a", {"p": 2})
    world.ask("other")
    world.ask("b")
    if what == "paused":
        world.pause("p")
    if what == "over":
        world.pool("p", 2)
    world.retry("a", make_ask("a2", {"p": 3 if what == "other needs" else 2}))
    place, b, a2 = {
        "requeue": (4, "g", "w"),
        "other needs": (4, "g", "w"),
        "paused": (1, "w", "w"),
        "over": (1, "w", "w"),
    }[what]
    assert world.states() == {"a": "retried", "other": "g", "b": b, "a2": a2}
    assert world.lease("a2").arrival == place


def test_a_retry_keeps_no_units_above_a_quota(world: World) -> None:
    """After the quota was lowered, the retry waits until its owner occupies less."""
    world.ask("a")
    world.ask("b")
    world.pool("p", 2, quota=1)
    world.retry("a", make_ask("a2", {"p": 1}))
    assert world.states() == {"a": "retried", "b": "g", "a2": "w"}
    world.release("b")
    assert world.states()["a2"] == "g"


def test_a_retried_ticket_keeps_its_place_in_line(world: World) -> None:
    """A retried ticket keeps its place, except with `on_retry: requeue`."""
    world.ask("full", {"p": 2})
    world.ask("a")
    world.ask("b")
    world.retry("a", make_ask("a2", {"p": 1}))
    assert world.lease("a2").arrival == 2
    world.pool("p", 2, on_retry="requeue")
    world.retry("a2", make_ask("a3", {"p": 1}))
    assert world.lease("a3").arrival == 4
    assert world.facts.pools["p"].waiting == 2


def test_a_retry_with_allocations_claims_again(world: World) -> None:
    """The ledger decides again, so the retry goes through the line, at its old place."""
    claimed = []
    world.claim = lambda lease: claimed.append(lease.id)
    world.ask("a", {"p": 2}, allocations="{}")
    world.ask("b", {"p": 2})
    world.retry("a", make_ask("a2", {"p": 2}, allocations="{}"))
    assert world.states() == {"a": "retried", "b": "w", "a2": "g"}
    assert claimed == ["a", "a2"]


def test_a_repeated_request_has_the_same_terms(world: World) -> None:
    """`anew` repeats the request of a lease under another key."""
    world.ask("a", {"p": 2}, hold=5 * SECOND, priority=3, labels={"x": "y"})
    again = request_again(world.lease("a"), LeaseId("b"), "b")
    world.retry("a", again)
    old, new = world.lease("a"), world.lease("b")
    assert (new.needs, new.ttl, new.hold, new.priority, new.labels) == (
        old.needs,
        old.ttl,
        old.hold,
        old.priority,
        old.labels,
    )


def test_a_client_that_gives_up_withdraws_only_a_ticket(world: World) -> None:
    """The cause says so; a lease that was granted in the meantime is simply released."""
    world.ask("holder", {"p": 2}, ttl=NEVER)
    world.ask("ticket")
    world.release("ticket", cause="gave_up")
    world.release("ticket", cause="gave_up")
    world.release("holder", cause="gave_up")
    assert world.states() == {"ticket": "gave_up", "holder": "released"}


def test_a_retry_with_another_priority_keeps_its_place_and_remembers_what_it_asked_for() -> None:
    """So only a request for the same is the same: a newer one of a group, or the receiver's."""
    world = World()
    world.pool("p", 1)
    world.ask("old")
    again = world.retry("old", make_ask("new", {"p": 1}, priority=1))
    new = world.lease(again)
    assert (new.state, new.priority, new.priority_asked) == ("granted", 0, 1)
    back = world.lease(world.retry("new", make_ask("back", {"p": 1})))
    assert (back.priority, back.priority_asked) == (0, None)
