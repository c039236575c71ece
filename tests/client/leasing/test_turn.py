"""A program that only waits for a lease: another one, with the same key, has it afterwards."""

import asyncio
from contextlib import suppress
from uuid import uuid4

import pytest

from moorage.client import AsyncClient, Client, NotInTimeError
from tests.client.leasing.pools import leases, pool_made, waiting

TTL = 30.0


@pytest.fixture
def pool(client: Client) -> str:
    """Return a new pool with one unit."""
    return pool_made(client, f"turn/{uuid4()}", ttl=TTL)


def test_who_waits_leaves_the_lease_to_who_asks_next(
    client: Client, served: tuple[str, str], pool: str
) -> None:
    """Both have the same lease with the same token; in between it is granted to nobody else."""
    aclient = AsyncClient(*served, leases_max=1)

    async def main() -> tuple[str, str]:
        lease = await aclient.lease(pool, key=pool).turn()
        with pytest.raises(NotInTimeError):  # it also counts no longer among those of the client
            async with aclient.lease(pool, wait=0):
                raise AssertionError("granted")
        return lease.id, lease.token

    seen = asyncio.run(main())
    (granted,) = leases(client, pool, "granted")
    assert granted.id == seen[0]
    with client.lease(pool, wait=0, key=pool) as lease:
        assert (lease.id, lease.token) == seen
    assert client.admission.lease(seen[0]).cause == "released"


def test_a_lease_that_nobody_resumes_ends_by_its_ttl(client: Client, pool: str) -> None:
    """No unit leaks. It is not renewed after its turn: its end is that of its confirmation."""
    pool_made(client, pool, ttl=2.0)
    lease = client.lease(pool, key=pool).turn()
    assert lease.lost is None
    with client.lease(pool, wait="20s"):
        assert client.admission.lease(lease.id).cause == "ttl_over"
    lease.release()  # it is not this program's


def test_a_cancelled_wait_keeps_its_place(
    client: Client, served: tuple[str, str], pool: str
) -> None:
    """Its ticket is passed over, and is that of who asks with the key next."""
    aclient = AsyncClient(*served)

    async def main() -> str:
        task = asyncio.create_task(aclient.lease(pool, key=pool).turn())
        ticket = await asyncio.to_thread(waiting, client, pool)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ticket.id

    with client.lease(pool):
        ticket = asyncio.run(main())
        assert client.admission.lease(ticket).state == "waiting"
    assert client.lease(pool, key=pool).turn().id == ticket


def test_only_with_a_key(client: Client, pool: str) -> None:
    """Without one nobody else could ask for the lease."""
    with pytest.raises(ValueError, match="key"):
        client.lease(pool).turn()
    assert not leases(client, pool)


def test_cancelled_at_any_moment_it_is_not_given_back(
    client: Client, served: tuple[str, str], pool: str
) -> None:
    """Not even at the grant: what was there is for who asks with the key next."""
    pool_made(client, pool, limit=100, ttl=600.0)
    aclient = AsyncClient(*served)

    async def main() -> None:
        for turns in [*range(10), *range(10, 2000, 400)]:
            task = asyncio.create_task(aclient.lease(pool, key=f"{pool}/{turns}").turn())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(main())
    found = leases(client, pool)
    assert {one.cause for one in found} == {None}
    for one in found:
        with client.lease(pool, wait="20s", key=one.key) as lease:
            assert lease.id == one.id
