"""The governor with a copy of the hosts that a watch follows, instead of a list for each pass."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from moorage.integrations.kubernetes.api import PAGE, Connection, KubernetesApi
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.hosts import WORK, pause_of
from moorage.integrations.metal3.install import Installation, documents
from moorage.integrations.metal3.mirror import HostMirror
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.host_leases import HostLeases
from tests.integrations.metal3.govern.test_governor import (
    ALL,
    IMAGE,
    LIMIT,
    OWN,
    PATIENCE,
    POOL,
    World,
    play,
)
from tests.support.bmo_double.hosts import PAUSED, state
from tests.support.kubernetes_client import Kubernetes, host, hosts_in
from tests.support.kubernetes_double.access import ADMIN, service_account
from tests.support.kubernetes_double.server import KubernetesDouble

pytestmark = pytest.mark.thorough

LIST = ("list", "baremetalhosts")


@asynccontextmanager
async def mirrored(
    world: World, watched: KubernetesDouble | None = None
) -> AsyncIterator[tuple[Governor, HostMirror]]:
    """Yield a governor with the copy that it uses, which may be of another API server."""
    async with (
        LeaseApi(world.url, world.token) as leases,
        KubernetesApi(Connection(world.double.url)) as api,
        KubernetesApi(Connection((watched or world.double).url)) as reading,
        HostMirror(reading) as mirror,
    ):
        await mirror.tried.wait()
        requests = HostRequests(api, mirror=mirror)
        governor = Governor(HostLeases(leases), requests, Rules.of_pool(POOL))
        try:
            yield governor, mirror
        finally:
            await governor.close()


def test_hosts_are_provisioned_by_a_copy_of_them(tmp_path: Path) -> None:
    """Within the limit, without a list for each pass; hosts that fail are released and start again;
    watches are cut on the way. A host that is deleted while it works gives its unit back.
    """
    names = [f"host-{number}" for number in range(12)]

    async def scene(world: World) -> None:
        async with mirrored(world) as (governor, _):
            for name in names:
                await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
            await world.until(lambda: world.held() == LIMIT, governor)
            world.double.drop_watches()
            await world.until(lambda: world.reached(names, "provisioned"), governor)
            await world.until(lambda: world.held() == 0, governor)
            lists = world.double.counts[LIST]
            await world.api.create(ALL, host("late", image=IMAGE, annotations=OWN))
            await world.until(lambda: world.held() == 1, governor)
            key = ("metal3.io", "baremetalhosts", "metal3", "late")
            world.double.storage.write(key, None)
            await world.until(lambda: world.held() == 0, governor)
            assert world.double.counts[LIST] - lists <= 2  # it is missing: that is confirmed
        assert world.nodes.book.most_busy == LIMIT

    play(tmp_path, scene)


def test_a_copy_that_is_behind_releases_nothing(tmp_path: Path) -> None:
    """While the copy shows hosts as they were before they were started, they keep their units,
    because they are read again; so the limit holds.
    """
    names = [f"host-{number}" for number in range(LIMIT + 4)]

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
        async with (
            KubernetesDouble(world.double.storage) as other,
            mirrored(world, other) as (governor, mirror),
        ):
            await other.received("watch", "baremetalhosts")
            other.reads.mute()
            await world.until(lambda: world.held() == LIMIT, governor)
            await world.until(lambda: world.nodes.book.most_busy == LIMIT, governor)
            for _ in range(20):
                assert await governor.tick()
            assert all(pause_of(one) == "moorage" for one in mirror.hosts())
            working = [name for name in names if state(world.host(name)) in WORK]
            assert len(working) <= world.held() <= LIMIT
        assert world.nodes.book.most_busy <= LIMIT

    play(tmp_path, scene)


def test_a_thousand_idle_hosts(tmp_path: Path) -> None:
    """Passes send nothing to Kubernetes, where each would list all hosts without the copy."""

    async def scene(world: World) -> None:
        for number in range(1_000):
            await world.api.create(ALL, host(f"h{number}", annotations={PAUSED: "other"}))
        before = world.double.counts.total()
        async with mirrored(world) as (governor, _):
            for _ in range(30):
                assert await governor.tick()
            assert world.double.counts.total() - before <= 1_000 / PAGE + 1  # a list, a watch
        async with world.governor() as governor:
            sent = world.double.counts[LIST]
            for _ in range(30):
                assert await governor.tick()
            assert world.double.counts[LIST] - sent == 30 * 1_000 / PAGE

    play(tmp_path, scene)


def test_the_copy_says_what_a_pass_waits_for(tmp_path: Path) -> None:
    """A host that is to start is a change; what others write of it is none."""

    async def scene(world: World) -> None:
        async with mirrored(world) as (_, mirror):
            mirror.changed.clear()
            await world.api.create(ALL, host("a", annotations={PAUSED: "other"}))
            await mirror.changed.wait()
            mirror.changed.clear()
            await world.api.merge(f"{ALL}/a", {"metadata": {"labels": {"rack": "1"}}})
            while not mirror.hosts()[0]["metadata"].get("labels"):
                await asyncio.sleep(0)
            assert not mirror.changed.is_set()
            await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": OWN}})
            await mirror.changed.wait()

    play(tmp_path, scene)


@pytest.mark.parametrize("namespace", [None, "metal3"])
def test_the_rights_of_the_manifests_suffice(namespace: str | None) -> None:
    """The service account that is installed may list and watch, in all namespaces or in one."""

    async def scene() -> None:
        text = documents(Installation(image="i", pool=POOL, url="https://m"))
        account = service_account(yaml.safe_load_all(text), "moorage", "moorage")
        async with (
            KubernetesDouble(accounts={"admin": ADMIN, "own": account}) as double,
            Kubernetes(double.url, token="admin") as admin,
            KubernetesApi(Connection(double.url, lambda: {"Authorization": "Bearer own"})) as api,
            HostMirror(api, namespace) as mirror,
        ):
            await mirror.tried.wait()
            await admin.create(hosts_in("default"), host("elsewhere"))
            await admin.create(ALL, host("a"))
            await double.received("watch", "baremetalhosts")
            wanted = {"a"} if namespace else {"a", "elsewhere"}
            while {one["metadata"]["name"] for one in mirror.hosts()} != wanted:
                await mirror.changed.wait()
                mirror.changed.clear()
            assert double.access.denied == []

    asyncio.run(asyncio.wait_for(scene(), PATIENCE))
