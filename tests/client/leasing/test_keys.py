"""Leases with a key of the caller: who asks again continues, and places in line are kept."""

import asyncio
from uuid import uuid4

import pytest

from moorage.client import (
    AsyncClient,
    Client,
    Holding,
    LeaseLostError,
    NotInTimeError,
    RefusedError,
)
from moorage.client.leasing.options import KEPT_SECONDS
from moorage.wire.admission import LeaseWanted, NeedWanted
from tests.client.leasing.pools import in_thread, leases, pool_made, waited_for, waiting
from tests.client.single import ROOT

SECONDS = 30.0


@pytest.fixture
def pool(client: Client) -> str:
    """Return a new pool with one unit."""
    return pool_made(client, f"keys/{uuid4()}")


def position(client: Client, ticket: str) -> int:
    """Return the place of a ticket in its line."""
    found = client.admission.lease(ticket).waiting
    assert found is not None
    return found.position


def test_a_place_in_line_outlasts_a_try(client: Client, served: tuple[str, str], pool: str) -> None:
    """Who was not granted the lease in time and asks again with its key is before those who came
    in between. Without a key the place is lost (the control).
    """
    with client.lease(pool):
        for key in (pool, None):
            with pytest.raises(NotInTimeError, match="held by"):
                client.lease(pool, wait="300ms", key=key).acquire()
        (kept,) = leases(client, pool, "waiting")
        assert kept.key == pool
        thread, later = in_thread(client.lease(pool))
        while len(leases(client, pool, "waiting")) < 2:
            pass
        waited_for(client, pool, kept.id, False)
        again, first = in_thread(Client(*served).lease(pool, key=pool))
        waited_for(client, pool, kept.id, True)
    again.join(SECONDS)
    (holding,) = first
    assert isinstance(holding, Holding)
    assert holding.id == kept.id
    assert not later, "who came later has overtaken it"
    holding.release()
    thread.join(SECONDS)
    assert isinstance(later[0], Holding)
    later[0].release()


def test_nobody_waits_for_a_program_that_is_away(client: Client, pool: str) -> None:
    """A unit that becomes free goes to the next one, and the place of the absent one is kept."""
    with client.lease(pool):
        with pytest.raises(NotInTimeError):
            client.lease(pool, wait=0, key=pool).acquire()
        (kept,) = leases(client, pool, "waiting")
        thread, later = in_thread(client.lease(pool))
        while len(leases(client, pool, "waiting")) < 2:
            pass
    thread.join(SECONDS)
    (holding,) = later
    assert isinstance(holding, Holding), holding
    assert position(client, kept.id) == 1
    holding.release()
    with client.lease(pool, wait=0, key=pool) as lease:
        assert lease.id == kept.id


def test_how_long_a_place_is_kept(client: Client, pool: str) -> None:
    """It is as long as the page says: the server accepts a repetition only with this time."""
    page = (ROOT / "docs/howto/python-client.md").read_text()
    assert f"for {KEPT_SECONDS / 60:g} minutes" in page
    wanted = {"needs": [NeedWanted(pool=pool)], "pull": True}
    with client.lease(pool):
        for silence, kept in (("60s", KEPT_SECONDS), ("10m", 630.0), ("2h", 3600.0)):
            key = f"{pool}/{silence}"
            with pytest.raises(NotInTimeError):
                client.lease(
                    pool, wait=0, key=key, about=False, unreachable_after=silence
                ).acquire()
            wanted["key"] = key
            again = client.admission.ask(LeaseWanted(**wanted, patience=kept))  # type: ignore[arg-type] # as above
            assert again.state == "waiting"
            with pytest.raises(RefusedError, match="key"):
                client.admission.ask(LeaseWanted(**wanted, patience=kept - 1))  # type: ignore[arg-type] # as above


def test_a_lease_is_found_again(client: Client, served: tuple[str, str], pool: str) -> None:
    """Who asks again while it has the lease gets the same one, with the same token."""
    first = client.lease(pool, key=pool).acquire()
    with Client(*served).lease(pool, wait=0, key=pool) as again:
        assert (again.id, again.token) == (first.id, first.token)
    with pytest.raises(NotInTimeError), client.lease(pool):
        client.lease(pool, wait=0).acquire()
    first.release()


def test_a_key_can_be_used_again(client: Client, pool: str) -> None:
    """After the release the key gets a new lease, also with other arguments; before, other
    arguments are refused.
    """
    with client.lease(pool, key=pool) as first:
        with pytest.raises(RefusedError) as refused:
            client.lease(pool, key=pool, priority=1).acquire()
        assert refused.value.code == "key_reused"
        assert first.lost is None
    with client.lease(pool, key=pool, priority=1) as second:
        assert second.id != first.id
    with client.lease(pool), pytest.raises(NotInTimeError):
        client.lease(pool, wait=0, key=pool).acquire()
    (ticket,) = leases(client, pool, "waiting")
    client.admission.revoke(ticket.id, "away for too long")
    with client.lease(pool, key=pool) as third:
        assert third.id not in (first.id, second.id, ticket.id)


def test_two_live_programs_with_one_key(client: Client, served: tuple[str, str], pool: str) -> None:
    """They share one lease; the release by one of them is a loss for the other."""
    pool_made(client, pool, limit=2)
    with (
        pytest.raises(LeaseLostError, match="released"),
        client.lease(pool, key=pool) as lease,
    ):
        with Client(*served).lease(pool, key=pool) as other:
            assert other.id == lease.id
            assert client.admission.pool(pool).occupied == 1
            assert (lease.lost, other.lost) == (None, None)
        while lease.lost is None:
            pass


@pytest.mark.parametrize("named", [True, False])
def test_a_cancelled_task(served: tuple[str, str], pool: str, named: bool) -> None:
    """A task that is cancelled while it waits keeps its place if it has a key, and only then."""
    aclient, key = AsyncClient(*served), pool if named else None

    async def wanting() -> None:
        async with aclient.lease(pool, key=key):
            raise AssertionError("granted")

    async def main() -> None:
        async with aclient.lease(pool):
            task = asyncio.create_task(wanting())
            ticket = await asyncio.to_thread(waiting, aclient.client, pool)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            found = await asyncio.to_thread(aclient.client.admission.lease, ticket.id)
            assert found.state == ("ended" if key is None else "waiting")
        async with aclient.lease(pool, key=key) as lease:
            assert (lease.id == ticket.id) is (key is not None)

    asyncio.run(main())


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb"])
def test_keys_that_are_not_valid(client: Client, pool: str, key: str) -> None:
    """The server refuses them and says why."""
    with pytest.raises(RefusedError, match="key") as refused:
        client.lease(pool, key=key).acquire()
    assert refused.value.code == "invalid"
    assert not leases(client, pool)
