"""Leases of hosts whose requests change, or stay without an answer."""

from dataclasses import replace

import pytest

from moorage.client.transport import RefusedError
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.hosts import Host
from moorage.integrations.provisioning.unit_release import WIRE_GRACE_SECONDS
from moorage.integrations.provisioning.work_steps import (
    SENT_MAX,
    CrowdedError,
    EndedError,
    work_state_of,
)
from moorage.wire.admission import Lease, PoolWanted
from tests.integrations.ironic.world import POOL, World, played


async def asked(host_leases: HostLeases, name: str, *, force: bool = False) -> Lease:
    """Ask for one unit for a host."""
    host = Host("ironic", name)
    return await host_leases.ask(host, "active", {POOL: 1}, wait=0.0, patience=60.0, force=force)


@played(1, 1)
async def test_a_node_that_waits_becomes_exempt(it: World) -> None:
    """Its old ticket does not hold it back."""
    async with it.host_leases() as (host_leases, _):
        host = Host("ironic", "one")
        await host_leases.ask(host, "active", {POOL: 1}, wait=1.0, patience=60.0)
        assert (await asked(host_leases, "two")).state == "waiting"
        assert (await asked(host_leases, "two", force=True)).state == "granted"
        assert it.leases("waiting") == []


@played(1, 1)
async def test_many_requests_without_an_answer(it: World) -> None:
    """A node that is stuck can be asked again, once the earlier requests start nothing more."""
    async with it.host_leases() as (host_leases, _):
        host = Host("ironic", "one")
        lease = await host_leases.ask(host, "active", {POOL: 1}, wait=1.0, patience=60.0)
        for number in range(SENT_MAX):
            lease = await host_leases.steps.sent(lease, f"req-{number}")
        with pytest.raises(CrowdedError):
            await host_leases.steps.sent(lease, "more")
        later = replace(lease, record_age=WIRE_GRACE_SECONDS)
        found = work_state_of(await host_leases.steps.sent(later, "more"))
        assert (found.sent, found.begun) == (frozenset({"more"}), True)


@played(1, 1)
async def test_a_pool_whose_leases_end_by_themselves(it: World) -> None:
    """Nothing is started from it: the pools of a rule with fields are not known before."""
    it.operator.pool_put(POOL, PoolWanted(limit=1, expire="keep", hold=600.0))
    async with it.host_leases() as (host_leases, _):
        host = Host("ironic", "one")
        with pytest.raises(RefusedError, match="--hold none"):
            await host_leases.ask(host, "active", {POOL: 1}, wait=1.0, patience=60.0)
        assert it.leases() == it.leases("waiting") == []
        await host_leases.adopt(host, {POOL: 1})
        assert len(it.leases()) == 1


@played(1, 1)
async def test_a_unit_that_was_taken_back_before_its_request(it: World) -> None:
    """Its ticket waits again: nothing is sent by it, and its node asks again."""
    async with it.host_leases() as (host_leases, _):
        host = Host("ironic", "one")
        lease = await host_leases.ask(host, "active", {POOL: 1}, wait=1.0, patience=60.0)
        await host_leases.give_back(lease, requeue=True)
        assert (await asked(host_leases, "two")).state == "granted"
        (again,) = it.leases("waiting")
        for one in (lease, again):
            with pytest.raises(EndedError):
                await host_leases.steps.sent(one, "req")
