"""Tickets that are passed over for long: nobody pays for them, and nobody forgets them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moorage.core.admission.leases import Proof
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.admission.views import LeaseView
from moorage.service.app import Service
from moorage.service.batch.ledger_share import CLAIMS_MAX, LeaseAllocations
from moorage.service.ledger import allocation_cases, provider_cases
from tests.service.pools import MINUTE, ask, opened, spec
from tests.service.running import TESTER, consumer_id, provider_id
from tests.support import cluster

HOST, SIBLING = provider_id(1), provider_id(2)
OTHER = consumer_id(999)
WAITING = 40
GOING = ("waiting", "granted")
PATIENCE = 60 * MINUTE


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgres" else f"sqlite:///{tmp_path}/m.sqlite"


def play(url: str, scene: Callable[[Service], Awaitable[None]]) -> None:
    """Run a scene on a fresh service with two hosts, of which the first has no room left."""

    async def whole() -> None:
        async with opened(url) as service:
            for host in (HOST, SIBLING):
                await service.transactor.submit(provider_cases.ProviderCreate(host, host))
                offer = provider_cases.InventoryCreate(host, "VCPU", InventorySpec(4))
                await service.transactor.submit(offer)
            await take(service, OTHER, HOST, 4)
            await service.admission.pool_put("p", spec(1_000, queue_max=1_000), None, TESTER)
            await scene(service)

    asyncio.run(whole())


async def take(service: Service, consumer: ConsumerId, host: ProviderId, amount: int) -> None:
    """Let somebody without a lease hold something."""
    amounts = {host: {"VCPU": amount}}
    request = ConsumerRequest(consumer, amounts, "other", "other", "INSTANCE", None)
    await service.transactor.submit(allocation_cases.AllocationsReplace([request]))


async def wanting(service: Service, n: int, host: ProviderId, amount: int = 1) -> LeaseView:
    """Ask for a unit of the pool together with something of a host."""
    held = LeaseAllocations(consumer_id(n), {host: {"VCPU": amount}}, "project", "user", "INSTANCE")
    return await ask(service.admission, str(n), "p", allocations=held, patience=PATIENCE)


async def crowded(service: Service, host: ProviderId) -> None:
    """Let many want what there is no room for, and see that others are granted meanwhile."""
    for n in range(WAITING):
        assert (await wanting(service, n, host)).lease.state == "waiting"
    assert (await ask(service.admission, "plain", "p")).lease.state == "granted"


def test_more_wait_than_one_batch_can_try(url: str) -> None:
    """After a restart nobody knows why they wait: they are tried in turn, and nobody fails."""

    async def fill(service: Service) -> None:
        names = [f"{n}" for n in range(2 * CLAIMS_MAX + 9)]
        held = [
            LeaseAllocations(consumer_id(n), {HOST: {"VCPU": 1}}, "project", "user", "INSTANCE")
            for n in range(len(names))
        ]
        tickets = await asyncio.gather(
            *(
                ask(service.admission, name, "p", allocations=one, patience=PATIENCE)
                for name, one in zip(names, held, strict=True)
            )
        )
        assert {ticket.lease.state for ticket in tickets} == {"waiting"}

    async def after() -> None:
        async with opened(url) as service:
            assert (await ask(service.admission, "plain", "p")).lease.state in GOING
            await granted_at_last(service, "plain")
            await service.transactor.submit(allocation_cases.AllocationsDelete(OTHER))
            await granted_at_last(service, "0", "1", "2", "3", "plain")

    play(url, fill)
    asyncio.run(after())


def test_what_was_never_there_is_in_the_way_of_nobody(url: str) -> None:
    """Many want a host that nobody has made yet, or a consumer that is there already."""

    async def scene(service: Service) -> None:
        unknown = provider_id(3)
        for n in range(WAITING):
            assert (await wanting(service, n, unknown)).lease.state == "waiting"
        await take(service, consumer_id(998), SIBLING, 1)
        assert (await wanting(service, 998, SIBLING)).lease.state == "waiting"
        assert (await ask(service.admission, "plain", "p")).lease.state == "granted"
        await service.transactor.submit(provider_cases.ProviderCreate(unknown, unknown))
        await service.transactor.submit(
            provider_cases.InventoryCreate(unknown, "VCPU", InventorySpec(2))
        )
        await granted_at_last(service, "0", "1", "plain")
        await service.transactor.submit(allocation_cases.AllocationsDelete(consumer_id(998)))
        await granted_at_last(service, "0", "1", "998", "plain")

    play(url, scene)


def test_what_others_end_is_forgotten() -> None:
    """A process remembers no ticket that is gone, whoever has ended it."""

    async def scene() -> None:
        url = cluster.fresh()
        async with opened(url) as one, opened(url) as other:
            await one.transactor.submit(provider_cases.ProviderCreate(HOST, HOST))
            await one.admission.pool_put("p", spec(9), None, TESTER)
            ticket = (await wanting(one, 1, HOST)).lease.id
            known = one.transactor.misfits
            assert len(known) == 1
            await other.admission.release(ticket, Proof("me"))
            async with asyncio.timeout(20):
                while len(known):
                    await one.admission.queries.pool("p")

    asyncio.run(scene())


async def granted(service: Service) -> list[str]:
    """Return the keys of all that is granted, by arrival."""
    views, _ = await service.admission.queries.leases(None, 1_000, "p", "granted")
    return [view.lease.key for view in views]


async def granted_at_last(service: Service, *keys: str) -> None:
    """Return once just these are granted; the trial after a change of the ledger takes a moment."""
    async with asyncio.timeout(20):
        while await granted(service) != list(keys):
            pass


def held_by(service: Service, host: ProviderId) -> int:
    """Return what the index says is used of a host."""
    record = service.index.catalog.record(host)
    assert record is not None
    return record.inventories["VCPU"].used


def test_room_that_somebody_gives_back_goes_to_the_first(url: str) -> None:
    """Whoever did not fit is granted in the order of the line once the ledger has room."""

    async def scene(service: Service) -> None:
        await crowded(service, HOST)
        await service.transactor.submit(allocation_cases.AllocationsDelete(OTHER))
        await granted_at_last(service, "0", "1", "2", "3", "plain")

    play(url, scene)


def test_room_that_is_added_goes_to_the_first(url: str) -> None:
    """A host that offers more lets those start that did not fit."""

    async def scene(service: Service) -> None:
        await crowded(service, HOST)
        record = service.index.catalog.record(HOST)
        assert record is not None
        more = provider_cases.InventoryUpdate(
            HOST, "VCPU", record.provider.generation, InventorySpec(6)
        )
        await service.transactor.submit(more)
        await granted_at_last(service, "0", "1", "plain")

    play(url, scene)


def test_room_that_a_lease_gives_back_is_seen_in_the_same_batch(url: str) -> None:
    """No moment passes between the end of a lease and the grant of those that did not fit."""

    async def scene(service: Service) -> None:
        holder = await wanting(service, 500, SIBLING, 4)
        assert holder.lease.state == "granted"
        await crowded(service, SIBLING)
        await service.admission.release(holder.lease.id, Proof("me"))
        assert await granted(service) == ["0", "1", "2", "3", "plain"]
        assert held_by(service, SIBLING) == 4

    play(url, scene)


def test_what_others_hold_by_now_is_theirs(url: str) -> None:
    """The end of a lease leaves a consumer alone that somebody has made anew."""

    async def scene(service: Service) -> None:
        holder = await wanting(service, 1, SIBLING, 3)
        await service.transactor.submit(allocation_cases.AllocationsDelete(consumer_id(1)))
        await take(service, consumer_id(1), SIBLING, 2)
        ended = await service.admission.release(holder.lease.id, Proof("me"))
        assert ended.lease.state == "ended"
        assert held_by(service, SIBLING) == 2

    play(url, scene)


def test_what_somebody_has_changed_goes_with_its_lease(url: str) -> None:
    """A consumer that was only resized goes when its lease ends."""

    async def scene(service: Service) -> None:
        holder = await wanting(service, 1, SIBLING, 3)
        smaller = {SIBLING: {"VCPU": 1}}
        request = ConsumerRequest(consumer_id(1), smaller, "project", "user", "INSTANCE", 1)
        await service.transactor.submit(allocation_cases.AllocationsReplace([request]))
        assert held_by(service, SIBLING) == 1
        await service.admission.release(holder.lease.id, Proof("me"))
        assert held_by(service, SIBLING) == 0

    play(url, scene)


def test_whoever_has_used_up_its_quota_is_next_once_it_has_not(url: str) -> None:
    """Many tickets of one owner keep nobody up, and the first of them goes on when it may."""

    async def scene(service: Service) -> None:
        admission = service.admission
        await admission.pool_put("q", spec(100, quota=2, queue_max=1_000), None, TESTER)
        views = [await ask(admission, str(n), "q", patience=PATIENCE) for n in range(WAITING)]
        assert [view.lease.state for view in views[:3]] == ["granted", "granted", "waiting"]
        other = await ask(admission, "other", "q", owner="other")
        assert other.lease.state == "granted"
        await admission.release(views[0].lease.id, Proof("me"))
        keys = [
            view.lease.key for view in (await admission.queries.leases(None, 9, "q", "granted"))[0]
        ]
        assert keys == ["1", "2", "other"]

    play(url, scene)
