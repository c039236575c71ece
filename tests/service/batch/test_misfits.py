"""Tickets whose allocations do not fit: they delay no other ticket, and are not forgotten."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from moorage.core.admission.facts import Changes
from moorage.core.admission.requests import Proof
from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.service_time import Moment, When
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.views import LeaseView
from moorage.service.app import Service
from moorage.service.batch.extra_loads import CLAIMS_MAX
from moorage.service.batch.ledger_share import LeaseAllocations
from moorage.service.batch.misfits import Misfits, Obstacle
from moorage.service.ledger import allocation_cases, provider_cases
from tests.service.pools import MINUTE, ask, opened, pool_put, spec
from tests.service.running import consumer_id, provider_id
from tests.store.admission.grants import ticket
from tests.support import cluster

HOST, SIBLING = provider_id(1), provider_id(2)
OTHER = consumer_id(999)
WAITING = 40
GOING = ("waiting", "granted")
PATIENCE = 60 * MINUTE
WHEN = When(Moment(Instant(0), Instant(0)), Instant(0))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgres" else f"sqlite:///{tmp_path}/m.sqlite"


def play(url: str, scenario: Callable[[Service], Awaitable[None]]) -> None:
    """Run a scenario on a new service with two hosts, of which the first is full."""

    async def run() -> None:
        async with opened(url) as service:
            for host in (HOST, SIBLING):
                await service.transactor.submit(provider_cases.ProviderCreate(host, host))
                offer = provider_cases.InventoryCreate(host, "VCPU", InventorySpec(4))
                await service.transactor.submit(offer)
            await take(service, OTHER, HOST, 4)
            await pool_put(service.admission, "p", spec(1_000, queue_max=1_000))
            await scenario(service)

    asyncio.run(run())


async def take(service: Service, consumer: ConsumerId, host: ProviderId, amount: int) -> None:
    """Claim an amount of a host without a lease."""
    amounts = {host: {"VCPU": amount}}
    request = ConsumerRequest(consumer, amounts, "other", "other", "INSTANCE", None)
    await service.transactor.submit(allocation_cases.AllocationsReplace([request]))


async def wanting(service: Service, n: int, host: ProviderId, amount: int = 1) -> LeaseView:
    """Ask for a unit of the pool together with an amount of a host."""
    held = LeaseAllocations(consumer_id(n), {host: {"VCPU": amount}}, "project", "user", "INSTANCE")
    return await ask(service.admission, str(n), "p", allocations=held, patience=PATIENCE)


async def crowded(service: Service, host: ProviderId) -> None:
    """Let many tickets wait for a full host, and check that others are granted meanwhile."""
    for n in range(WAITING):
        assert (await wanting(service, n, host)).lease.state == "waiting"
    assert (await ask(service.admission, "plain", "p")).lease.state == "granted"


def test_more_wait_than_one_batch_can_try(url: str) -> None:
    """After a restart all tickets are untried: they are tried in turn, without a failure."""

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


def test_tickets_for_unknown_hosts_delay_no_others(url: str) -> None:
    """Many tickets need a host that does not exist yet, or a consumer that exists already."""

    async def scenario(service: Service) -> None:
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

    play(url, scenario)


def test_tickets_that_a_peer_ends_are_forgotten() -> None:
    """A process remembers no ended ticket, even if a peer has ended it."""

    async def scenario() -> None:
        url = cluster.fresh()
        async with opened(url) as one, opened(url) as other:
            await one.transactor.submit(provider_cases.ProviderCreate(HOST, HOST))
            await pool_put(one.admission, "p", spec(9))
            ticket = (await wanting(one, 1, HOST)).lease.id
            known = one.transactor.misfits
            assert len(known) == 1
            await other.admission.change(LeaseRelease(ticket, Proof("me")))
            async with asyncio.timeout(20):
                while len(known):
                    await one.admission.queries.pool("p")

    asyncio.run(scenario())


async def granted(service: Service) -> list[str]:
    """Return the keys of all granted leases, by arrival."""
    views, _, _ = await service.admission.queries.leases(None, 1_000, "p", "granted")
    return [view.lease.key for view in views]


async def granted_at_last(service: Service, *keys: str) -> None:
    """Return once exactly these are granted; the trial after a change takes a moment."""
    async with asyncio.timeout(20):
        while await granted(service) != list(keys):
            pass


def held_by(service: Service, host: ProviderId) -> int:
    """Return how much of a host is used according to the index."""
    record = service.index.catalog.record(host)
    assert record is not None
    return record.inventories["VCPU"].used


def test_freed_capacity_goes_to_the_first(url: str) -> None:
    """Tickets that did not fit are granted in the order of the line once the ledger has room."""

    async def scenario(service: Service) -> None:
        await crowded(service, HOST)
        await service.transactor.submit(allocation_cases.AllocationsDelete(OTHER))
        await granted_at_last(service, "0", "1", "2", "3", "plain")

    play(url, scenario)


def test_added_capacity_goes_to_the_first(url: str) -> None:
    """When a host offers more, tickets that did not fit are granted."""

    async def scenario(service: Service) -> None:
        await crowded(service, HOST)
        record = service.index.catalog.record(HOST)
        assert record is not None
        more = provider_cases.InventoryUpdate(
            HOST, "VCPU", record.provider.generation, InventorySpec(6)
        )
        await service.transactor.submit(more)
        await granted_at_last(service, "0", "1", "plain")

    play(url, scenario)


def test_capacity_that_a_lease_frees_is_granted_in_the_same_batch(url: str) -> None:
    """The end of a lease and the grants to tickets that did not fit are one batch."""

    async def scenario(service: Service) -> None:
        holder = await wanting(service, 500, SIBLING, 4)
        assert holder.lease.state == "granted"
        await crowded(service, SIBLING)
        await service.admission.change(LeaseRelease(holder.lease.id, Proof("me")))
        assert await granted(service) == ["0", "1", "2", "3", "plain"]
        assert held_by(service, SIBLING) == 4

    play(url, scenario)


def test_the_end_of_a_lease_keeps_a_recreated_consumer(url: str) -> None:
    """A consumer that was deleted and created again no longer belongs to the lease."""

    async def scenario(service: Service) -> None:
        holder = await wanting(service, 1, SIBLING, 3)
        await service.transactor.submit(allocation_cases.AllocationsDelete(consumer_id(1)))
        await take(service, consumer_id(1), SIBLING, 2)
        ended = await service.admission.change(LeaseRelease(holder.lease.id, Proof("me")))
        assert ended.lease.state == "ended"
        assert held_by(service, SIBLING) == 2

    play(url, scenario)


def test_the_end_of_a_lease_deletes_a_resized_consumer(url: str) -> None:
    """A consumer that was only resized still belongs to its lease."""

    async def scenario(service: Service) -> None:
        holder = await wanting(service, 1, SIBLING, 3)
        smaller = {SIBLING: {"VCPU": 1}}
        request = ConsumerRequest(consumer_id(1), smaller, "project", "user", "INSTANCE", 1)
        await service.transactor.submit(allocation_cases.AllocationsReplace([request]))
        assert held_by(service, SIBLING) == 1
        await service.admission.change(LeaseRelease(holder.lease.id, Proof("me")))
        assert held_by(service, SIBLING) == 0

    play(url, scenario)


def test_an_owner_at_its_quota_is_passed_over_until_it_releases(url: str) -> None:
    """The tickets of an owner at its quota delay no other; the first is granted after a release."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "q", spec(100, quota=2, queue_max=1_000))
        views = [await ask(admission, str(n), "q", patience=PATIENCE) for n in range(WAITING)]
        assert [view.lease.state for view in views[:3]] == ["granted", "granted", "waiting"]
        other = await ask(admission, "other", "q", owner="other")
        assert other.lease.state == "granted"
        await admission.change(LeaseRelease(views[0].lease.id, Proof("me")))
        keys = [
            view.lease.key for view in (await admission.queries.leases(None, 9, "q", "granted"))[0]
        ]
        assert keys == ["1", "2", "other"]

    play(url, scenario)


def test_a_peer_may_end_tickets_while_a_thread_reads_them() -> None:
    """A large batch lists and notes misfits in a thread; the event loop follows the peers."""
    misfits, facts = Misfits(), Facts(frozenset(), frozenset())
    tickets = [ticket(n, "p") for n in range(200)]
    endings = [Changes(leases={one.id: None}) for one in tickets]
    done = Event()

    def follow() -> None:
        while not done.is_set():
            for ending in endings:
                misfits.follow(ending, WHEN)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as loop:
            following = loop.submit(follow)
            try:
                for _ in range(20):
                    for n, one in enumerate(tickets):
                        misfits.note(one, Obstacle(provider_id(n), "VCPU", None, 0))
                    misfits.stuck(facts, "p")
            finally:
                done.set()
            following.result()
    finally:
        sys.setswitchinterval(interval)
    for ending in endings:
        misfits.follow(ending, WHEN)
    assert misfits.stuck(facts, "p") == "[]"
