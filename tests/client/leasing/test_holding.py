"""Leases as `with` blocks, against a real server."""

import os
import threading

import pytest

from moorage.client import (
    AskedToStopError,
    Client,
    ConfigurationError,
    LeaseLostError,
    NotGrantedError,
    NotInTimeError,
    RefusedError,
    RevokedError,
    UnreachableError,
)
from moorage.client.leasing.holding import Holding
from moorage.client.leasing.options import options_of
from moorage.client.run.api_types import Lease, LeaseRequest
from moorage.client.run.lease.api import Leases
from moorage.client.transport import Transport
from tests.client.leasing.pools import in_thread, leases, pool_made, waiting

SECONDS = 30.0


def test_a_block_has_a_lease(client: Client) -> None:
    """The block has the units and their fencing token; after it they are free, and it was ok."""
    pool = pool_made(client, "block", limit=3)
    with client.lease(pool, 2, hold="20m", labels={"job": "7"}, about=False, outcome=True) as lease:
        assert client.admission.verify(pool, lease.token).lease == lease.id
        (found,) = leases(client, pool)
        assert (found.state, found.hold, found.labels) == ("granted", 1200.0, {"job": "7"})
        assert (found.needs[0].units, lease.lost, lease.over) == (2, None, False)
        lease.check()
    (found,) = leases(client, pool)
    assert (found.cause, found.outcome, lease.lost) == ("released", "ok", None)
    lease.release()
    with pytest.raises(RuntimeError, match=r"client\.lease"):
        lease.acquire()


def test_several_pools_are_granted_together(client: Client) -> None:
    """A mapping asks for units of several pools at once."""
    needs = {pool_made(client, "both/a"): 1, pool_made(client, "both/b", limit=2): 2}
    with client.lease(needs) as lease:
        assert {need.pool: need.units for need in client.admission.lease(lease.id).needs} == needs


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KeyError("x"), "failed"),
        (SystemExit(3), "failed"),
        (KeyboardInterrupt(), None),
        (AskedToStopError("l", "a newer request waits"), None),
        (LeaseLostError("l", "revoked"), None),
    ],
)
def test_an_exception_releases(client: Client, error: BaseException, outcome: str | None) -> None:
    """An exception passes through, the lease is released, and the outcome is that of the block."""
    pool = pool_made(client, f"raised/{type(error).__name__.lower()}")
    with pytest.raises(type(error)), client.lease(pool, outcome=True):
        raise error
    (found,) = leases(client, pool)
    assert (found.cause, found.outcome) == ("released", outcome)
    with client.lease(pool, wait=0) as lease:
        lease.report("throttled", "quota")
    assert leases(client, pool)[1].outcome == "throttled"


def test_a_lease_that_is_not_granted_in_time(client: Client) -> None:
    """The error says what the ticket waited for, and the ticket is withdrawn."""
    pool = pool_made(client, "busy")
    with client.lease(pool):
        for wait in (0, "300ms"):
            with pytest.raises(NotInTimeError, match="held by") as missed:
                client.lease(pool, wait=wait).acquire()
            assert missed.value.why == "timed_out"
        assert [one.state for one in leases(client, pool)] == ["granted", "ended", "ended"]


def test_refusals_have_their_code(client: Client) -> None:
    """A refused request raises the server's refusal, whatever it is."""
    pool_made(client, "small", ttl_max=100.0)
    for call, code in (
        (client.lease("nope"), "pool_unknown"),
        (client.lease("small", 2), "units_above_limit"),
        (client.lease("small", ttl=3600), "invalid"),
    ):
        with pytest.raises(RefusedError) as refused, call:
            pass
        assert refused.value.code == code
    with pytest.raises(ValueError, match="unit"):
        client.lease("small", 0)
    with pytest.raises(ValueError, match="20m"):
        client.lease("small", hold="soon")


def test_no_server() -> None:
    """A server that does not answer is another error than one that refuses."""
    nowhere = Client("http://127.0.0.1:1", "token")
    with pytest.raises(UnreachableError, match="no answer"):
        nowhere.lease("any", unreachable_after=0).acquire()


def test_the_environment(served: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The server and the token come from the variables that `moorage run` reads."""
    for name in ("MOORAGE_URL", "MOORAGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    misspelt = "MOORAGE_" + "ULR"  # another test looks for all variables in the sources
    monkeypatch.setenv(misspelt, served[0])
    with pytest.raises(ConfigurationError, match="did you mean MOORAGE_URL"):
        Client().admission.pool("any")
    monkeypatch.setenv("MOORAGE_URL", served[0])
    monkeypatch.setenv("MOORAGE_TOKEN", served[1])
    assert isinstance([*Client().admission.pools()], list)
    monkeypatch.setenv("MOORAGE_TOKEN", "two words")
    with pytest.raises(ConfigurationError, match="MOORAGE_TOKEN is not a token"):
        Client()
    with pytest.raises(ConfigurationError, match="not the URL"):
        Client("localhost:8778", "token")


def test_a_revoked_lease_is_lost(client: Client) -> None:
    """The holder learns at once that its lease was revoked, and the block ends with an error."""
    pool = pool_made(client, "revoked")
    told: list[str] = []
    heard = threading.Event()

    def on_lost(reason: str) -> None:
        told.append(reason)
        heard.set()

    with (
        pytest.raises(LeaseLostError, match="maintenance") as lost,
        client.lease(pool, on_lost=on_lost) as lease,
    ):
        client.admission.revoke(lease.id, "maintenance")
        assert heard.wait(SECONDS)
        with pytest.raises(LeaseLostError):
            lease.check()
    assert (lost.value.lease_id, len(told)) == (lease.id, 1)
    assert lease.lost == lost.value.reason == told[0]


def test_a_loss_before_it_is_confirmed(client: Client, served: tuple[str, str]) -> None:
    """A grant that is revoked while its answer is on the way was never held: it is refused."""
    pool = pool_made(client, "unconfirmed")
    told: list[str] = []

    class RevokedOnTheWay(Leases):
        def ask(self, wish: LeaseRequest, key: str, seconds_max: float = SECONDS) -> Lease:
            lease = super().ask(wish, key, seconds_max)
            client.admission.revoke(lease.id, "maintenance")
            return lease

    holding = Holding(RevokedOnTheWay(Transport(*served)), options_of(pool, on_lost=told.append))
    with pytest.raises(RevokedError, match="maintenance"):
        holding.acquire()
    assert (told, leases(client, pool)[0].cause) == ([], "revoked")


def test_an_error_of_the_block_comes_before_a_loss(client: Client) -> None:
    """An exception of the block is not replaced because the lease was lost as well."""
    pool = pool_made(client, "twice")
    heard = threading.Event()
    with (
        pytest.raises(KeyError),
        client.lease(pool, on_lost=lambda _: heard.set()) as lease,
    ):
        client.admission.revoke(lease.id)
        assert heard.wait(SECONDS)
        raise KeyError


def test_the_end_of_a_hold_is_no_loss(client: Client) -> None:
    """A hold that is over frees the unit while the block continues."""
    pool = pool_made(client, "held", pacing=None)
    with client.lease(pool, hold="200ms") as lease:
        with client.lease(pool, wait="20s"):
            pass
        found = client.admission.lease(lease.id)
        assert (found.cause, lease.lost) == ("hold_over", None)


def test_a_ticket_that_is_removed(client: Client) -> None:
    """A ticket that an operator removes from the line raises, and says why."""
    pool = pool_made(client, "removed")
    with client.lease(pool):
        thread, results = in_thread(client.lease(pool))
        client.admission.revoke(waiting(client, pool).id, "not today")
        thread.join(SECONDS)
    (error,) = results
    assert isinstance(error, NotGrantedError)
    assert not isinstance(error, NotInTimeError)
    assert "not today" in str(error)


def test_abandoning_a_wait(client: Client) -> None:
    """Another thread can end the wait: the ticket is withdrawn at once."""
    pool = pool_made(client, "abandoned")
    with client.lease(pool):
        holding = client.lease(pool)
        thread, results = in_thread(holding)
        ticket = waiting(client, pool)
        holding.abandon()
        thread.join(SECONDS)
        assert isinstance(results[0], NotGrantedError)
        assert client.admission.lease(ticket.id).cause == "withdrawn"


def test_a_forked_child_leaves_the_lease_alone(client: Client) -> None:
    """A child that leaves the block does not release it, and cannot say whether it is lost."""
    pool = pool_made(client, "forked")
    with client.lease(pool) as lease:
        child = os.fork()
        if not child:
            try:
                lease.release()
                os._exit(0 if "forked" in (lease.lost or "") else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert client.admission.verify(pool, lease.token).current
        assert lease.lost is None


def test_a_lease_that_was_made_before_a_fork(client: Client) -> None:
    """Who acquires it is another holder than a process that was forked before: they do not share
    one lease under one key, and each knows its own.
    """
    pool = pool_made(client, "made-before")
    lease = client.lease(pool, wait=0)
    child = os.fork()
    if not child:
        try:
            with lease:
                known = lease.lost is None
            os._exit(0 if known else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    with client.lease(pool, wait=0), pytest.raises(NotInTimeError):
        lease.acquire()
    (first, second, third) = leases(client, pool)
    assert len({first.key, second.key, third.key}) == 3
