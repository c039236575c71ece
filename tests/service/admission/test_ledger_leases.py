"""Many leases that hold something in the ledger, too, begin and end in the same batch."""

import asyncio
from pathlib import Path

from moorage.core.clock import SECOND
from moorage.service.batch.ledger_share import LeaseAllocations
from tests.service.pools import ask, by_hand, later, spec
from tests.service.running import TESTER, Running, consumer_id, provider_id

MANY = 150


def held(n: int) -> LeaseAllocations:
    """What the n-th lease holds: one unit of the only host."""
    return LeaseAllocations(
        consumer_id(n), {provider_id(1): {"VCPU": 1}}, "project", "user", "INSTANCE"
    )


def test_many_wait_for_capacity(tmp_path: Path) -> None:
    """However many tickets do not fit, the pool goes on, and all are granted once there is room."""

    async def scene(one: Running) -> None:
        host = await one.provider(1, VCPU=MANY)
        admission = one.service.admission
        await admission.pool_put("p", spec(1), None, TESTER)
        blocker = await ask(admission, "blocker", "p")
        for n in range(MANY):
            await ask(admission, str(n), "p", allocations=held(n))
        await admission.pool_put("p", spec(1_000), None, TESTER)
        assert (await admission.queries.pool("p")).pool.occupied == 1 + MANY
        assert one.used(host) == MANY
        assert blocker.lease.state == "granted"

    by_hand(tmp_path, scene)


def test_many_end_at_once(tmp_path: Path) -> None:
    """However many are over at the same time, all of them end, in the ledger, too."""

    async def scene(one: Running) -> None:
        host = await one.provider(1, VCPU=MANY)
        admission = one.service.admission
        await admission.pool_put("p", spec(1_000), None, TESTER)
        asking = [ask(admission, str(n), "p", allocations=held(n)) for n in range(MANY)]
        await asyncio.gather(*asking)
        assert one.used(host) == MANY
        await later(one, 61 * SECOND)
        assert (await admission.queries.pool("p")).pool.occupied == 0
        assert one.used(host) == 0

    by_hand(tmp_path, scene)
