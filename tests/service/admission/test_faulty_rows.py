"""One row that nobody can read keeps nobody else from ending, or from being next."""

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
from moorage.service.admission.sweeps import FaultyError
from moorage.service.batch.ledger_share import LeaseAllocations
from moorage.service.ledger import allocation_cases, provider_cases
from tests.service.pools import MINUTE, ask, by_hand, later, spec
from tests.service.running import TESTER, Running, consumer_id, provider_id


@contextmanager
def broken(path: Path, lease: LeaseId) -> Iterator[None]:
    """Let nobody be able to read a lease."""
    with closing(apsw.Connection(str(path / "m.sqlite"))) as rows:
        good = rows.execute("SELECT body FROM lease WHERE id = ?", (lease,)).get
        rows.execute("UPDATE lease SET body = '{}' WHERE id = ?", (lease,))
        yield
        rows.execute("UPDATE lease SET body = ? WHERE id = ?", (good, lease))


def test_a_ticket_that_is_broken_keeps_nobody_from_capacity(tmp_path: Path) -> None:
    """Who waits for capacity in another pool is tried all the same, also after a new look."""

    async def scene(one: Running) -> None:
        admission, host, taker = one.service.admission, provider_id(1), consumer_id(9)
        await one.submit(provider_cases.ProviderCreate(host, host))
        await one.submit(provider_cases.InventoryCreate(host, "VCPU", InventorySpec(4)))
        taken = ConsumerRequest(taker, {host: {"VCPU": 4}}, "project", "user", "INSTANCE", None)
        await one.submit(allocation_cases.AllocationsReplace([taken]))
        for name in ("healthy", "sick"):
            await admission.pool_put(name, spec(5), None, TESTER)
        tickets = []
        for n, name in enumerate(("healthy", "sick")):
            held = LeaseAllocations(
                consumer_id(n), {host: {"VCPU": 1}}, "project", "user", "INSTANCE"
            )
            tickets.append((await ask(admission, name, name, allocations=held)).lease.id)
        with broken(tmp_path, tickets[1]):
            admission._capacity_retry.reload()  # as at every start
            await one.submit(allocation_cases.AllocationsDelete(taker))
            async with asyncio.timeout(10):
                while (await admission.queries.lease(tickets[0])).lease.state != "granted":
                    pass
        await admission.pool_put("sick", spec(6), None, TESTER)
        assert (await admission.queries.lease(tickets[1])).lease.state == "granted"

    by_hand(tmp_path, scene)


def test_what_is_due_for_ever_is_told(tmp_path: Path) -> None:
    """A due time without its lease is no reason to sweep without a pause."""

    async def scene(one: Running) -> None:
        await one.service.admission.pool_put("p", spec(), None, TESTER)
        await ask(one.service.admission, "a", "p")
        with closing(apsw.Connection(str(tmp_path / "m.sqlite"))) as rows:
            rows.execute("INSERT INTO lease_due (lease, heard_until, due) VALUES ('gone', 1, 1)")
            with pytest.raises(FaultyError, match="something due at 1 cannot be swept"):
                await one.service.admission.sweeper.sweep()
            rows.execute("DELETE FROM lease_due WHERE lease = 'gone'")

    by_hand(tmp_path, scene)


def test_a_sweep_passes_over_what_is_broken(tmp_path: Path) -> None:
    """What is due beside it ends all the same, pools are woken, and the broken one is named."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(3), None, TESTER)
        paced = Pacing(interval=60 * SECOND, burst=1, jitter=0)
        await admission.pool_put("paced", spec(2, pacing=paced), None, TESTER)
        sick, *others = [(await ask(admission, str(n), "p")).lease.id for n in range(3)]
        await ask(admission, "first", "paced")
        second = (await ask(admission, "second", "paced", patience=5 * MINUTE)).lease.id
        with broken(tmp_path, sick):
            await later(one, 58 * SECOND)
            assert (await admission.queries.lease(second)).lease.state == "waiting"
            one.clock.at += 3 * SECOND
            with pytest.raises(FaultyError, match=f"{sick} cannot be swept"):
                await admission.sweeper.sweep()
            for lease in others:
                assert (await admission.queries.lease(lease)).lease.cause == "ttl_over"
            assert (await admission.queries.lease(second)).lease.state == "granted"
        await admission.sweeper.sweep()
        assert (await admission.queries.lease(sick)).lease.cause == "ttl_over"

    by_hand(tmp_path, scene)
