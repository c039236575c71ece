"""Many leases with allocations begin and end in the same batch."""

import asyncio
from pathlib import Path

from moorage.core.clock import SECOND
from moorage.service.batch.ledger_share import LeaseAllocations
from tests.service.pools import ask, pass_time, pool_put, spec, with_manual_clock
from tests.service.running import Running, consumer_id, provider_id

MANY = 150


def claimed_by(n: int) -> LeaseAllocations:
    """The allocations of the n-th lease: one VCPU of the only host."""
    return LeaseAllocations(
        consumer_id(n), {provider_id(1): {"VCPU": 1}}, "project", "user", "INSTANCE"
    )


def test_many_wait_for_capacity(tmp_path: Path) -> None:
    """However many tickets wait with allocations, all are granted once the limit permits it."""

    async def scenario(one: Running) -> None:
        host = await one.provider(1, VCPU=MANY)
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        blocker = await ask(admission, "blocker", "p")
        for n in range(MANY):
            await ask(admission, str(n), "p", allocations=claimed_by(n))
        await pool_put(admission, "p", spec(1_000))
        assert (await admission.queries.pool("p")).pool.occupied == 1 + MANY
        assert one.used(host) == MANY
        assert blocker.lease.state == "granted"

    with_manual_clock(tmp_path, scenario)


def test_many_end_at_once(tmp_path: Path) -> None:
    """However many leases expire at the same time, all end, and their allocations are freed."""

    async def scenario(one: Running) -> None:
        host = await one.provider(1, VCPU=MANY)
        admission = one.service.admission
        await pool_put(admission, "p", spec(1_000))
        asking = [ask(admission, str(n), "p", allocations=claimed_by(n)) for n in range(MANY)]
        await asyncio.gather(*asking)
        assert one.used(host) == MANY
        await pass_time(one, 61 * SECOND)
        assert (await admission.queries.pool("p")).pool.occupied == 0
        assert one.used(host) == 0

    with_manual_clock(tmp_path, scenario)


def test_a_preempted_lease_returns_its_allocations(tmp_path: Path) -> None:
    """Its consumer is known by the time at which it was made, not at which it was asked to stop."""

    async def scenario(one: Running) -> None:
        host = await one.provider(1, VCPU=2)
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        mine = claimed_by(1)
        low = await ask(
            admission, "low", "p", preemptible=10 * SECOND, ttl=600 * SECOND, allocations=mine
        )
        await pass_time(one, 5 * SECOND)
        high = await ask(admission, "high", "p", priority=1)
        assert (await admission.queries.lease(low.lease.id)).lease.preempted_by == high.lease.id
        assert one.used(host) == 1
        await pass_time(one, 11 * SECOND)
        assert (await admission.queries.lease(low.lease.id)).lease.cause == "preempted"
        assert (await admission.queries.lease(high.lease.id)).lease.state == "granted"
        assert one.used(host) == 0

    with_manual_clock(tmp_path, scenario)
