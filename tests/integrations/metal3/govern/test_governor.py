"""The governor of BareMetalHosts against a real Moorage, an API server and an operator's double."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.wire.admission import PoolWanted
from tests.integrations.metal3.govern.process import governing
from tests.support.bmo_double.hosts import PAUSED, annotations, state
from tests.support.bmo_double.memory_nodes import MemoryNodes
from tests.support.bmo_double.operator import Operator, Settings
from tests.support.ironic_double.agenda import Agenda
from tests.support.kubernetes_client import Kubernetes, Object, host, hosts_in
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.warm import serve

ALL = hosts_in("metal3")
POOL = "deploy"
LIMIT = 4
SCALE = 100.0
PATIENCE = 90.0
SOON = 30.0
IMAGE = "http://image"
OWN = {PAUSED: "moorage"}
RULES = Rules.of_pool(POOL)


@dataclass
class World:
    """Moorage, an API server, and an operator with eight workers that works on its hosts."""

    url: str
    token: str
    double: KubernetesDouble
    api: Kubernetes
    nodes: MemoryNodes
    bmo: Operator
    operator: Admission

    @asynccontextmanager
    async def governor(self, rules: Rules = RULES, **words: Any) -> AsyncIterator[Governor]:
        """Yield one more governor, which ends as after SIGTERM."""
        async with (
            LeaseApi(self.url, self.token) as leases,
            KubernetesApi(Connection(self.double.url)) as api,
        ):
            requests = HostRequests(api)
            governor = Governor(HostLeases(leases), requests, rules, **words)
            try:
                yield governor
            finally:
                await governor.close()

    def host(self, name: str) -> Object:
        """Return a host as it is stored."""
        found = self.double.storage.get(("metal3.io", "baremetalhosts", "metal3", name))
        assert found is not None, name
        return found

    def reached(self, names: list[str], wanted: str) -> bool:
        """Return whether all these hosts are in a state."""
        return all(state(self.host(name)) == wanted for name in names)

    async def until(self, holds: Callable[[], bool], *governors: Governor) -> None:
        """Let governors make passes until something holds."""
        while not holds():
            await asyncio.gather(*(one.tick() for one in governors))
            await self.double.storage.changed(0.1)

    def held(self) -> int:
        """Return how many leases there are."""
        return len(list(self.operator.leases(POOL, "granted")))


def play(
    folder: Path,
    scene: Callable[[World], Awaitable[None]],
    *,
    limit: int = LIMIT,
    ttl: float = 60.0,
    failing: float = 0.2,
    retries: int = 5,
) -> None:
    """Run a scene; one in five first deployments fails, and time runs a hundred times faster.

    `retries`: this often may one image fail, then the operator gives up.
    """

    async def run(url: str, token: str, operator: Admission) -> None:
        agenda = Agenda(SCALE)
        nodes = MemoryNodes(agenda, failing=failing)
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url, name="bmo") as api,
            Operator(api, agenda, nodes, Settings(workers=8, retries=retries)) as bmo,
        ):
            it = World(url, token, double, api, nodes, bmo, operator)
            await asyncio.wait_for(scene(it), PATIENCE)

    database = folder / "moorage.sqlite"
    with serve(database) as server:
        secret = Path(f"{database}.token").read_text().strip()
        transport = Transport(server.url, secret)
        operator = Admission(transport)
        operator.pool_put(POOL, PoolWanted(limit=limit, expire="keep", ttl=ttl))
        wanted = {"name": "govern", "role": "governor", "scope": {"pool": [POOL, f"{POOL}/*"]}}
        made = transport.request("POST", "/v1/tokens", wanted)
        asyncio.run(run(server.url, made["token"], operator))


def test_hosts_are_provisioned_within_the_limit(tmp_path: Path) -> None:
    """Two governors, one of which ends on the way, and an API server that is away for a while:
    all hosts are provisioned, also those of which the first deployment fails and that start again
    by themselves; never more than the limit work at once, and no lease is left.
    """
    names = [f"host-{number}" for number in range(16)]

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))

        def done() -> int:
            return sum(state(world.host(name)) == "provisioned" for name in names)

        async with world.governor() as first:
            async with world.governor() as second:
                await world.until(lambda: done() >= 3, first, second)
            await world.double.stop()
            assert not await first.tick()
            await world.double.start()
            await world.until(lambda: done() >= 6, first)
        async with world.governor() as third:
            await world.until(lambda: world.reached(names, "provisioned"), third)
            await world.until(lambda: world.held() == 0, third)
        assert world.nodes.book.most_busy == LIMIT
        failed = [name for name in names if world.nodes.fails(f"metal3~{name}")]
        assert failed
        for name in names:
            assert PAUSED not in annotations(world.host(name))
            times = world.nodes.book.times(f"metal3~{name}", "deploying")
            assert times == (2 if name in failed else 1)

    play(tmp_path, scene)


def test_hosts_without_our_pause_exceed_the_limit(tmp_path: Path) -> None:
    """Nothing holds a host back that has no pause, and the governor counts those that work."""
    names = [f"host-{number}" for number in range(16)]

    async def scene(world: World) -> None:
        async with world.governor() as governor:
            for name in names:
                await world.api.create(ALL, host(name, image=IMAGE))
            await world.until(lambda: world.nodes.book.most_busy > LIMIT, governor)
            await world.until(lambda: world.held() > LIMIT, governor)

    play(tmp_path, scene)


def test_only_own_pauses_are_removed(tmp_path: Path) -> None:
    """An idle host loses our pause without a lease; the pauses of others stay as they are."""

    async def scene(world: World) -> None:
        async with world.governor() as governor:
            await world.api.create(ALL, host("other", image=IMAGE, annotations={PAUSED: "capm3"}))
            await world.api.create(ALL, host("mine", annotations=OWN))
            await world.until(lambda: world.reached(["mine"], "available"), governor)
            await world.api.merge(f"{ALL}/mine", {"metadata": {"annotations": OWN}})
            await world.until(
                lambda: PAUSED not in annotations(world.host("mine")) and not world.held(), governor
            )
            assert annotations(world.host("other"))[PAUSED] == "capm3"
            assert "status" not in world.host("other")

    play(tmp_path, scene)


def test_the_command_removes_our_pause(tmp_path: Path) -> None:
    """`moorage metal3 govern` says what it sees, and starts hosts as soon as they are there, long
    before its interval is over; SIGTERM ends it with 0.
    """

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
        options = "--pool", POOL, "--url", world.url, "--interval", "60"
        async with governing(tmp_path, world.double.url, *options, token=world.token) as process:
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode()
            assert line == f"moorage: governing {world.double.url} (1 hosts, 0 busy)\n"
            await world.until(lambda: world.reached(["a"], "provisioned"))
            await world.api.create(ALL, host("b", image=IMAGE, annotations=OWN))
            async with asyncio.timeout(SOON):
                await world.until(lambda: world.reached(["b"], "provisioned"))
            process.terminate()
            assert await process.wait() == 0

    play(tmp_path, scene)
