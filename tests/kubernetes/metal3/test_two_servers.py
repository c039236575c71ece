"""Two API servers with one store behind one address: one is killed, one is behind.

Nothing that a governor decides may rest on what the one that is behind still believes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.kubernetes.connection import by_kubeconfig
from moorage.integrations.metal3.mirror import HostMirror
from tests.kubernetes.cluster import Another, KubernetesCluster
from tests.kubernetes.metal3.balancer import Pipes
from tests.kubernetes.metal3.installed import policy
from tests.kubernetes.metal3.watched import Watched
from tests.kubernetes.metal3.world import World
from tests.support.kubernetes_client import Answered, host, hosts_in
from tests.support.seeds import SOAK

pytestmark = pytest.mark.skipif(not SOAK, reason="a second API server takes long to start")

ALL = hosts_in("metal3")
LIMIT = 4
SECONDS = 300.0
DELAY_SECONDS = 1.5
"""By which the second server's store answers late, and tells it late of changes."""

WAIT_SECONDS_MAX = 45.0
"""From a freed unit to the next start, whatever happens to the servers meanwhile."""

GATEWAY_TIMEOUT = 504


@pytest.fixture(scope="module", autouse=True)
def paused(cluster: KubernetesCluster) -> Iterator[None]:
    """Install the policy and the rights of the manifests."""
    with policy(cluster):
        yield


class Two:
    """`balancer` is before both servers, `network` between the second one and the store."""

    def __init__(
        self, first: KubernetesCluster, other: Another, balancer: Pipes, network: Pipes
    ) -> None:
        self.first, self.other = first, other
        self.balancer, self.network = balancer, network

    def names(self, url: str, **query: str) -> set[str]:
        """Return the names of the hosts that a server lists. Raises Answered."""
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        found = json.loads(self.first.raw("GET", f"{ALL}?{asked}", url=url))
        return {one["metadata"]["name"] for one in found["items"]}


@asynccontextmanager
async def two(cluster: KubernetesCluster) -> AsyncIterator[Two]:
    """Yield both, with no delay; all clients reach the first one first."""
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(Pipes(cluster.store_url))
        other = await asyncio.to_thread(cluster.start_another, network.url)
        stack.callback(other.process.end)
        balancer = await stack.enter_async_context(Pipes(cluster.url, other.url))
        yield Two(cluster, other, balancer, network)


def play(cluster: KubernetesCluster, scene: Callable[[Two], Awaitable[None]]) -> None:
    """Run a scene."""

    async def run() -> None:
        async with two(cluster) as servers:
            await asyncio.wait_for(scene(servers), SECONDS)

    asyncio.run(run())


def test_a_copy_never_goes_back(cluster: KubernetesCluster) -> None:
    """Clients are moved to a server that does not know the newest hosts yet. It says so, or it says
    nothing; the copy never lacks a host that it has had, and follows when the server does.
    """

    async def scene(servers: Two) -> None:
        config = cluster.kubeconfig_of("moorage", "moorage", servers.balancer.url)
        async with KubernetesApi(by_kubeconfig(str(config))) as api, HostMirror(api) as mirror:
            await mirror.tried.wait()
            servers.network.flows.clear()
            newest = await asyncio.to_thread(cluster.call, "POST", ALL, host("newest"))
            version = newest["metadata"]["resourceVersion"]
            await shows(mirror, {"newest"})
            # The second server is behind: the control of this test.
            behind = servers.other.url
            assert "newest" not in await asyncio.to_thread(
                servers.names, behind, resourceVersion="0"
            )
            with pytest.raises(Answered) as refused:
                await asyncio.to_thread(servers.names, behind, resourceVersion=version)
            assert refused.value.code == GATEWAY_TIMEOUT, refused.value
            assert "Too large resource version" in str(refused.value)
            servers.balancer.prefer(behind)
            until = monotonic() + 2 * DELAY_SECONDS
            while monotonic() < until:
                assert "newest" in shown(mirror, {"newest"})
                await asyncio.wait([asyncio.create_task(mirror.changed.wait())], timeout=0.1)
            assert servers.balancer.carried[-1] == behind
            servers.network.flows.set()
            await asyncio.to_thread(cluster.call, "POST", ALL, host("newer"))
            await shows(mirror, {"newest", "newer"})

    play(cluster, scene)
    for name in ("newest", "newer"):
        cluster.call("DELETE", f"{ALL}/{name}")


def shown(mirror: HostMirror, otherwise: set[str]) -> set[str]:
    """Return the names that a copy shows; if it says that it is out of date, something else."""
    try:
        return {one["metadata"]["name"] for one in mirror.hosts()}
    except KubernetesError:
        return otherwise


async def shows(mirror: HostMirror, names: set[str]) -> None:
    """Return when a copy shows hosts."""
    while not names <= shown(mirror, set()):
        mirror.changed.clear()
        await asyncio.wait([asyncio.create_task(mirror.changed.wait())], timeout=0.2)


def test_one_is_killed_and_one_is_behind(cluster: KubernetesCluster, tmp_path: Path) -> None:
    """Two governors, an operator and people reach both servers by one address. Connections move
    back and forth, the first server is killed, and the second one is always behind: the limit
    holds, no start waits long, and no unit is left.
    """
    names = [f"two-{number}" for number in range(28)]
    watched = Watched()

    async def scene(servers: Two) -> None:
        balancer = servers.balancer
        async with World(cluster, tmp_path, limit=LIMIT, failing=0.2, url=balancer.url) as world:
            world.shown = watched.look
            servers.network.delay = DELAY_SECONDS

            async def more(number: int = 3) -> None:
                wanted = world.number(names) + number
                await world.until(lambda: world.number(names) >= min(wanted, len(names)))

            try:
                async with world.governor(), world.governor():
                    await world.create(names)
                    for _ in range(2):
                        await more()
                        balancer.prefer(servers.other.url)
                        await more()
                        balancer.prefer(cluster.url)
                    await more()
                    cluster.server.end()
                    balancer.cut()
                    await more()
                    assert balancer.carried[-1] == servers.other.url
                    await asyncio.to_thread(restart, cluster)
                    balancer.prefer(cluster.url)
                    await world.until(lambda: world.provisioned(names) and world.unpaused(names))
                    await world.until(lambda: not world.leases())
            except asyncio.CancelledError:
                print(world.report())  # noqa: T201 what there was
                raise
            assert world.nodes.book.most_busy == LIMIT
            for name in names:
                times = world.nodes.book.times(f"metal3~{name}", "deploying")
                assert times == 1 + world.nodes.fails(f"metal3~{name}")
            world.check_log()

    play(cluster, scene)
    waits = watched.waits(LIMIT)
    told = f"median {waits[len(waits) // 2]:.2f} s, longest {waits[-1]:.2f} s"
    print(f"two servers: {told}")  # noqa: T201 a measurement
    assert waits[-1] < WAIT_SECONDS_MAX


def restart(cluster: KubernetesCluster) -> None:
    """Start the first server again."""
    cluster.server.start()
    cluster.wait_ready()
