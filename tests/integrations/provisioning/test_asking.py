"""A host that asks for units gets a lease that has them, a ticket, or an error; never less."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.provisioning.host_leases import HostLeases, OtherUnitsError
from moorage.integrations.provisioning.hosts import Host
from moorage.wire.admission import Lease, PoolWanted
from tests.support.warm import serve

HOST = Host("ironic", "node-1")


def played(folder: Path, play: Callable[[HostLeases], Awaitable[None]]) -> None:
    """Run a test with two pools of one unit."""
    database = folder / "moorage.sqlite"
    with serve(database) as server:
        transport = Transport(server.url, Path(f"{database}.token").read_text().strip())
        for pool in ("deploy", "rack"):
            Admission(transport).pool_put(pool, PoolWanted(limit=1, expire="keep"))
        wanted = {"name": "g", "role": "governor", "scope": {"pool": ["deploy", "rack"]}}
        token = transport.request("POST", "/v1/tokens", wanted)["token"]

        async def run() -> None:
            async with LeaseApi(server.url, token) as api:
                await play(HostLeases(api))

        asyncio.run(run())


async def asked(host_leases: HostLeases, host: Host, **needs: int) -> Lease:
    """Ask for the units of a deployment."""
    return await host_leases.ask(host, "active", needs, wait=0.0, patience=60.0)


def test_a_lease_with_other_units(tmp_path: Path) -> None:
    """A host that works with other units gets an error; with the same ones it shares its lease."""

    async def play(host_leases: HostLeases) -> None:
        lease = await asked(host_leases, HOST, deploy=1)
        assert lease.state == "granted"
        with pytest.raises(OtherUnitsError) as refusal:
            await asked(host_leases, HOST, deploy=1, rack=1)
        assert refusal.value.lease.id == lease.id
        assert (await asked(host_leases, HOST, deploy=1)).id == lease.id
        assert await host_leases.current(HOST, {"deploy": 1, "rack": 1}, forced=False) is None
        assert await host_leases.current(HOST, {"deploy": 1}, forced=False) is not None

    played(tmp_path, play)


def test_a_ticket_with_other_units(tmp_path: Path) -> None:
    """A ticket with other needs is withdrawn, and the host waits for what it needs now."""

    async def play(host_leases: HostLeases) -> None:
        await asked(host_leases, HOST, deploy=1, rack=1)
        other = Host("ironic", "node-2")
        before = await asked(host_leases, other, deploy=1)
        after = await asked(host_leases, other, rack=1)
        assert (before.state, after.state) == ("waiting", "waiting")
        assert [need.pool for need in after.needs] == ["rack"]
        assert set((await host_leases.in_line("ironic")).keys()) == {"node-2"}

    played(tmp_path, play)


def test_a_host_with_other_units_is_adopted(tmp_path: Path) -> None:
    """A busy host that has any lease is counted by it."""

    async def play(host_leases: HostLeases) -> None:
        await host_leases.adopt(HOST, {"deploy": 1})
        await host_leases.adopt(HOST, {"deploy": 1, "rack": 1})
        leases = (await host_leases.working("ironic"))["node-1"]
        assert [[need.pool for need in lease.needs] for lease in leases] == [["deploy"]]

    played(tmp_path, play)
