"""Pools, slots and leases of the last release are continued, with what this one knows of slots."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.core.admission.model import Need, PoolSpec
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.wishes import wanted_of
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.slots import SlotDrain, SlotLabel, SlotResume, SlotsAdd
from tests.service import older_rows
from tests.service.pools import MINUTE, ask, opened, pool_put, refusal
from tests.service.running import TESTER
from tests.support import cluster

EU = wanted_of({"region": "eu"})


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database of either engine."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ledger.sqlite"
    else:
        address = cluster.shared().create(f"test_{uuid4().hex}")
        yield address
        cluster.shared().drop(cluster.database_of(address))


def test_slots_of_the_last_release(url: str) -> None:
    """Its lease goes on, its ticket waits, its key is known; its slot gets labels and is drained.

    The check of the service finds nothing, before and after; what needs a new member was refused
    until there was one.
    """
    older_rows.write(url)

    async def scenario() -> None:
        async with opened(url) as service:
            admission, submit = service.admission, service.transactor.submit
            assert await service.operations.check() == []
            assert (await ask(admission, "k1", "p")).lease.id == older_rows.HELD
            assert (await ask(admission, "k2", "p")).lease.id == older_rows.WAITING
            (slot,), _ = await admission.slots.page("p", None, 9)
            assert (slot.state, slot.slot.labels, slot.slot.drain) == ("held", {}, None)
            assert slot.lease is not None and slot.lease.id == older_rows.HELD
            need = (Need("p", 1, wanted=EU),)
            wish = LeaseRequest(owner="me", key="eu", needs=need, patience=10 * MINUTE)
            assert await refusal(admission.acquire(wish, TESTER)) == Code.UNITS_ABOVE_LIMIT
            assert await refusal(submit(SlotsAdd("p", ["b"], {}, TESTER))) == Code.INVALID
            await submit(SlotLabel("p", "a", TESTER, {"region": "eu"}))
            ticket = (await admission.acquire(wish, TESTER)).lease
            assert ticket.state == "waiting"
            await submit(SlotDrain("p", "a", TESTER, True, "disk"))
            await admission.change(LeaseRelease(LeaseId(older_rows.HELD), Proof("me")))
            waiting = (await admission.queries.lease(LeaseId(older_rows.WAITING))).lease
            assert waiting.state == "waiting"
            await admission.change(LeaseRelease(LeaseId(older_rows.WAITING), Proof("me")))
            await submit(SlotResume("p", "a", TESTER))
            assert (await admission.queries.lease(ticket.id)).lease.slots == {"p": ("a",)}
            spec = PoolSpec(limit=None, ttl=MINUTE, ttl_max=MINUTE, native_slots=True)
            await pool_put(admission, "native", spec)
            await submit(SlotsAdd("native", ["b"], {}, TESTER))

    asyncio.run(scenario())
