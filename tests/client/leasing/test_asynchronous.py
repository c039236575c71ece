"""Leases as `async with` blocks, against a real server."""

import asyncio
import threading

import pytest

from moorage.client import AsyncClient, LeaseLostError, NotInTimeError, TooManyLeasesError
from moorage.wire.admission import Lease
from tests.client.leasing.pools import leases, pool_made
from tests.e2e.support.carried import eventually


@pytest.fixture
def aclient(served: tuple[str, str]) -> AsyncClient:
    """Return the administrator's client."""
    return AsyncClient(*served)


async def waiting(aclient: AsyncClient, pool: str, count: int = 1) -> list[Lease]:
    """Wait until a pool has this many tickets; return them."""
    while len(found := await asyncio.to_thread(leases, aclient.client, pool, "waiting")) < count:
        pass
    return found


def test_a_block_has_a_lease(aclient: AsyncClient) -> None:
    """The block has the lease; while it waits, other tasks run; after it the unit is free."""
    pool = pool_made(aclient.client, "block")
    order: list[str] = []

    async def second(first_is_there: asyncio.Event) -> None:
        await first_is_there.wait()
        async with aclient.lease(pool, outcome=True) as lease:
            order.append(lease.token)

    async def main() -> None:
        there = asyncio.Event()
        task = asyncio.create_task(second(there))
        async with aclient.lease(pool, hold="20m") as lease:
            order.append(lease.token)
            lease.check()
            assert (lease.lost, lease.over, lease.slots) == (None, False, {})
            there.set()
            await waiting(aclient, pool)
        await task

    asyncio.run(main())
    assert [one.token for one in leases(aclient.client, pool)] == order
    assert [one.cause for one in leases(aclient.client, pool)] == ["released", "released"]
    assert leases(aclient.client, pool)[1].outcome == "ok"


def test_cancelling_a_wait(aclient: AsyncClient) -> None:
    """A task that is cancelled while it waits leaves no ticket behind."""
    pool = pool_made(aclient.client, "cancelled")

    async def wanting() -> None:
        async with aclient.lease(pool):
            raise AssertionError("granted")

    async def main() -> None:
        async with aclient.lease(pool):
            task = asyncio.create_task(wanting())
            await waiting(aclient, pool)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert leases(aclient.client, pool)[1].cause == "withdrawn"
            with pytest.raises(NotInTimeError):
                async with aclient.lease(pool, wait=0):
                    raise AssertionError("granted")

    asyncio.run(main())


def test_cancelling_at_any_moment(aclient: AsyncClient) -> None:
    """Whenever a task is cancelled on its way to a lease, neither ticket nor lease is left."""
    pool = pool_made(aclient.client, "moments", limit=100)

    async def holding(started: asyncio.Event) -> None:
        started.set()
        async with aclient.lease(pool):
            await asyncio.Event().wait()

    async def main() -> None:
        for turns in [*range(10), *range(10, 2000, 200)]:
            started = asyncio.Event()
            task = asyncio.create_task(holding(started))
            await started.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        while await asyncio.to_thread(leases, aclient.client, pool, "granted"):
            pass
        assert not leases(aclient.client, pool, "waiting")

    asyncio.run(main())
    assert {one.cause for one in leases(aclient.client, pool)} <= {"released", "withdrawn"}


def test_cancelling_a_holder(aclient: AsyncClient) -> None:
    """A holder that is cancelled releases its lease, and stays cancelled."""
    pool = pool_made(aclient.client, "holder")

    async def holding(there: asyncio.Event) -> None:
        async with aclient.lease(pool):
            there.set()
            await asyncio.Event().wait()

    async def main() -> None:
        there = asyncio.Event()
        task = asyncio.create_task(holding(there))
        await there.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert leases(aclient.client, pool)[0].cause == "released"


def test_a_loss_cancels_the_block(aclient: AsyncClient) -> None:
    """A block that waits for something else ends as soon as its lease is revoked."""
    pool = pool_made(aclient.client, "revoked")

    async def main() -> None:
        with pytest.raises(LeaseLostError, match="maintenance"):
            async with aclient.lease(pool) as lease:
                await asyncio.to_thread(aclient.client.admission.revoke, lease.id, "maintenance")
                await asyncio.Event().wait()
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    asyncio.run(main())


def test_a_loss_before_the_block(aclient: AsyncClient, served: tuple[str, str]) -> None:
    """A lease that is revoked while the event loop is blocked never gets into its block."""
    pool, told = pool_made(aclient.client, "blocked"), threading.Event()
    small = AsyncClient(*served, leases_max=1)

    holding = small.lease(pool, on_lost=lambda _: told.set())

    async def block() -> None:
        async with holding:
            raise AssertionError("the block began")

    def held() -> str | None:
        """Return the lease's id once its client has it: before, it is refused, not lost."""
        try:
            return holding.id
        except RuntimeError:
            return None

    async def main() -> None:
        task = asyncio.create_task(block())
        await asyncio.sleep(0)
        small.client.admission.revoke(eventually(held), "maintenance")
        assert told.wait(60)
        with pytest.raises(LeaseLostError, match="maintenance"):
            await task
        async with small.lease(pool):  # its place among the leases of this client is free again
            pass

    asyncio.run(main())


def test_the_limit_of_leases(aclient: AsyncClient, served: tuple[str, str]) -> None:
    """A client holds and waits for at most `leases_max` leases; the error names the option."""
    pool = pool_made(aclient.client, "limited", limit=5)
    small = AsyncClient(*served, leases_max=1)

    async def main() -> None:
        before = threading.active_count()
        for _ in range(2):
            async with small.lease(pool):
                with pytest.raises(TooManyLeasesError, match="leases_max"):
                    async with small.lease(pool):
                        raise AssertionError("granted")
                assert threading.active_count() <= before + 3

    asyncio.run(main())
