"""A single unreadable row does not keep other leases from ending or being granted."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from moorage.core.admission.model import Pacing
from moorage.core.clock import SECOND
from moorage.core.ids import LeaseId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.limits import DUE_MAX
from moorage.service.admission.sweeps import FaultyError
from moorage.service.batch.ledger_share import LeaseAllocations
from moorage.service.ledger import allocation_cases, provider_cases
from tests.service.pools import (
    MINUTE,
    ask,
    pass_time,
    pool_pause,
    pool_put,
    spec,
    with_manual_clock,
)
from tests.service.running import Running, consumer_id, provider_id


@contextmanager
def unreadable(path: Path, lease: LeaseId) -> Iterator[None]:
    """Make the row of a lease unreadable."""
    with closing(apsw.Connection(str(path / "m.sqlite"))) as rows:
        good = rows.execute("SELECT body FROM lease WHERE id = ?", (lease,)).get
        rows.execute("UPDATE lease SET body = '{}' WHERE id = ?", (lease,))
        yield
        rows.execute("UPDATE lease SET body = ? WHERE id = ?", (good, lease))


def test_a_broken_ticket_keeps_no_other_from_capacity(tmp_path: Path) -> None:
    """Tickets that wait for capacity in another pool are tried anyway, also after a reload."""

    async def scenario(one: Running) -> None:
        admission, host, taker = one.service.admission, provider_id(1), consumer_id(9)
        await one.submit(provider_cases.ProviderCreate(host, host))
        await one.submit(provider_cases.InventoryCreate(host, "VCPU", InventorySpec(4)))
        taken = ConsumerRequest(taker, {host: {"VCPU": 4}}, "project", "user", "INSTANCE", None)
        await one.submit(allocation_cases.AllocationsReplace([taken]))
        for name in ("healthy", "sick"):
            await pool_put(admission, name, spec(5))
        tickets = []
        for n, name in enumerate(("healthy", "sick")):
            held = LeaseAllocations(
                consumer_id(n), {host: {"VCPU": 1}}, "project", "user", "INSTANCE"
            )
            tickets.append((await ask(admission, name, name, allocations=held)).lease.id)
        with unreadable(tmp_path, tickets[1]):
            admission._capacity_retry.reload()  # as at every start
            await one.submit(allocation_cases.AllocationsDelete(taker))
            async with asyncio.timeout(10):
                while (await admission.queries.lease(tickets[0])).lease.state != "granted":
                    pass
        await pool_put(admission, "sick", spec(6))
        assert (await admission.queries.lease(tickets[1])).lease.state == "granted"

    with_manual_clock(tmp_path, scenario)


def test_a_due_time_without_its_lease_is_reported(tmp_path: Path) -> None:
    """The sweep fails, instead of repeating without a pause."""

    async def scenario(one: Running) -> None:
        await pool_put(one.service.admission, "p", spec())
        await ask(one.service.admission, "a", "p")
        with closing(apsw.Connection(str(tmp_path / "m.sqlite"))) as rows:
            rows.execute("INSERT INTO lease_due (lease, heard_until, due) VALUES ('gone', 1, 1)")
            with pytest.raises(FaultyError, match="something due at 1 cannot be swept"):
                await one.service.admission.sweeper.sweep()
            rows.execute("DELETE FROM lease_due WHERE lease = 'gone'")

    with_manual_clock(tmp_path, scenario)


def test_a_sweep_skips_a_broken_lease(tmp_path: Path) -> None:
    """Other due leases end all the same, pools are woken, and the error names the broken one."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(3))
        paced = Pacing(interval=60 * SECOND, burst=1, jitter=0)
        await pool_put(admission, "paced", spec(2, pacing=paced))
        sick, *others = [(await ask(admission, str(n), "p")).lease.id for n in range(3)]
        await ask(admission, "first", "paced")
        second = (await ask(admission, "second", "paced", patience=5 * MINUTE)).lease.id
        with unreadable(tmp_path, sick):
            await pass_time(one, 58 * SECOND)
            assert (await admission.queries.lease(second)).lease.state == "waiting"
            one.clock.at += 3 * SECOND
            with pytest.raises(FaultyError, match=f"{sick} cannot be swept"):
                await admission.sweeper.sweep()
            for lease in others:
                assert (await admission.queries.lease(lease)).lease.cause == "ttl_over"
            assert (await admission.queries.lease(second)).lease.state == "granted"
        await admission.sweeper.sweep()
        assert (await admission.queries.lease(sick)).lease.cause == "ttl_over"

    with_manual_clock(tmp_path, scenario)


def test_many_that_end_at_once_are_no_fault(tmp_path: Path) -> None:
    """One sweep ends only the first of them, and those that are left are due at the same time."""

    async def scenario(one: Running) -> None:
        admission, many = one.service.admission, DUE_MAX + 1
        await pool_put(admission, "p", spec(many, hold=30 * SECOND))
        await pool_pause(admission, "p", True)
        await asyncio.gather(*(ask(admission, str(n), "p", patience=MINUTE) for n in range(many)))
        await pool_pause(admission, "p", False)
        assert (await admission.queries.pool("p")).pool.occupied == many
        one.clock.at += 31 * SECOND
        assert await admission.sweeper.sweep(), "one is left"
        assert not await admission.sweeper.sweep()
        assert (await admission.queries.pool("p")).pool.occupied == 0

    with_manual_clock(tmp_path, scenario)
