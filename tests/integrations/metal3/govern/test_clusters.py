"""Governors of several clusters, or of several namespaces, with the same pool."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorage.integrations.kubernetes.api import Connection, KubernetesApi, KubernetesError
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metal3.cluster import PATH, installation_of_cluster
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.provisioning.host_leases import HostLeases
from tests.integrations.metal3.govern.process import governing
from tests.integrations.metal3.govern.test_governor import (
    ALL,
    IMAGE,
    OWN,
    POOL,
    RULES,
    World,
    play,
)
from tests.support.kubernetes_client import Kubernetes, host
from tests.support.kubernetes_double.server import KubernetesDouble

NAME = "prod"


@asynccontextmanager
async def governor_of(
    world: World, url: str, namespace: str | None = None, *, by_name: bool = False
) -> AsyncIterator[Governor]:
    """Yield a governor of a cluster with a name; `by_name`: that alone tells it from others."""
    async with (
        LeaseApi(world.url, world.token) as leases,
        KubernetesApi(Connection(url)) as api,
    ):
        whose = NAME if by_name else await installation_of_cluster(api, namespace, NAME)
        requests = HostRequests(api, namespace)
        governor = Governor(HostLeases(leases, whose), requests, RULES)
        try:
            yield governor
        finally:
            await governor.close()


async def provisioning(world: World, governor: Governor) -> None:
    """Return when the host `a` is provisioned by its only unit, which it keeps for a long time."""
    world.nodes.seconds["deploying"] = 1e6
    await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
    await world.until(lambda: world.reached(["a"], "provisioning"), governor)
    assert world.held() == 1


@pytest.mark.parametrize("by_name", [False, True])
def test_clusters_of_one_name(tmp_path: Path, by_name: bool) -> None:
    """Another cluster has the same name by mistake, and does not have the host: its governor leaves
    the unit alone. The control: if the name decides, it releases the unit of a host that works.
    """

    async def scene(world: World) -> None:
        async with (
            KubernetesDouble() as other,
            governor_of(world, world.double.url, by_name=by_name) as governor,
            governor_of(world, other.url, by_name=by_name) as stranger,
        ):
            await provisioning(world, governor)
            for _ in range(3):
                assert await stranger.tick()
            assert world.held() == (0 if by_name else 1)
            assert len(stranger.picture.foreign) == (0 if by_name else 1)

    play(tmp_path, scene, limit=1, failing=0.0)


def test_governors_of_two_namespaces(tmp_path: Path) -> None:
    """The governor of another namespace leaves the unit alone, and all its passes succeed."""

    async def scene(world: World) -> None:
        async with (
            governor_of(world, world.double.url, "metal3") as governor,
            governor_of(world, world.double.url, "moorage") as other,
        ):
            await provisioning(world, governor)
            for _ in range(3):
                assert await other.tick()
            assert world.held() == 1

    play(tmp_path, scene, limit=1, failing=0.0)


def test_another_name_is_the_same_cluster(tmp_path: Path) -> None:
    """A governor that starts again with another name releases the unit of a host that is gone."""

    async def scene(world: World) -> None:
        async with governor_of(world, world.double.url) as governor:
            await provisioning(world, governor)
        (lease,) = world.operator.leases(POOL, "granted")
        system = world.double.storage.get(("", "namespaces", "", "kube-system"))
        assert system is not None
        assert lease.labels["metal3"] == f"{NAME}:{system['metadata']['uid']}"
        world.double.storage.write(("metal3.io", "baremetalhosts", "metal3", "a"), None)
        async with (
            LeaseApi(world.url, world.token) as leases,
            KubernetesApi(Connection(world.double.url)) as api,
        ):
            whose = await installation_of_cluster(api, None, "renamed")
            later = Governor(HostLeases(leases, whose), HostRequests(api), RULES)
            await world.until(lambda: world.held() == 0, later)
            await later.close()

    play(tmp_path, scene, limit=1, failing=0.0)


def test_a_cluster_that_cannot_be_identified(tmp_path: Path) -> None:
    """The governor starts nothing while it may not read the namespace; one pass says why."""

    async def scene(world: World) -> None:
        async with Kubernetes(world.double.url) as client:
            await client.delete(PATH)
            async with KubernetesApi(Connection(world.double.url)) as api:
                with pytest.raises(KubernetesError, match="kube-system"):
                    await installation_of_cluster(api)
        options = ("--pool", POOL, "--url", world.url, "--once")
        async with governing(tmp_path, world.double.url, *options, token=world.token) as process:
            assert await asyncio.wait_for(process.wait(), 30) != 0

    play(tmp_path, scene)
