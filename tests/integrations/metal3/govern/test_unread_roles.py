"""An API server that has not read its roles yet: for a moment it denies what it permits later."""

import asyncio
import logging
from pathlib import Path

import pytest

from moorage.integrations.kubernetes import denials
from moorage.integrations.metal3 import changes
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.holds import CLUSTER, HOLD, namespace_path
from tests.integrations.kubernetes.test_denials import LIST, PATCH, UNREAD, USER
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, SOON, World, play
from tests.support.bmo_double.hosts import PAUSED, annotations
from tests.support.kubernetes_client import host, hosts_in
from tests.support.kubernetes_double.faults import Fault

READ = f'namespaces "metal3" is forbidden: {USER} cannot get resource "namespaces" in API group ""'


@pytest.mark.parametrize("said", [PATCH, f"{PATCH}: {UNREAD}"])
def test_hosts_are_not_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    """Hosts whose pauses could not be removed start soon, not after a minute, and the log blames no
    host.
    """

    async def scene(world: World) -> None:
        for name in "ab":
            await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
        idle = host("idle", annotations=OWN)
        del idle["spec"]["bmc"]
        await world.api.create(ALL, idle)
        world.double.faults.pending = [
            Fault("patch", "baremetalhosts", times=4, answer=403, says=said)
        ]
        async with world.governor() as governor, asyncio.timeout(SOON):
            await world.until(lambda: world.reached(["a", "b"], "provisioned"), governor)
            await world.until(lambda: PAUSED not in annotations(world.host("idle")), governor)
        assert not world.double.faults.pending
        assert "cannot be changed" not in caplog.text

    with caplog.at_level(logging.WARNING):
        play(tmp_path, scene, failing=0.0)


def test_held_hosts_stay_held(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While the namespace of a host cannot be read, the host is not started: it may be held."""

    async def scene(world: World) -> None:
        held = {"metadata": {"annotations": {HOLD: "it moves"}}}
        await world.api.merge(namespace_path("metal3"), held)
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
        world.double.faults.pending = [
            Fault("get", "namespaces", "metal3", times=2, answer=403, says=READ)
        ]
        async with world.governor() as governor:
            await world.until(lambda: not world.double.faults.pending, governor)
            for _ in range(3):
                await governor.tick()
            uid = world.host("a")["metadata"]["uid"]
            await world.until(lambda: "it moves" in governor.remarks.get(uid, ""), governor)
        assert annotations(world.host("a"))[PAUSED] == "moorage"
        assert "are started" not in caplog.text

    with caplog.at_level(logging.WARNING):
        play(tmp_path, scene)


async def with_and_without_cluster(world: World) -> None:
    """Create a host of a Cluster, a, and another one, b."""
    labels = {CLUSTER: "edge-1"}
    await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN, labels=labels))
    await world.api.create(ALL, host("b", image=IMAGE, annotations=OWN))


async def passes(world: World, governor: Governor, name: str) -> None:
    """Make passes, which all succeed, until a host is provisioned."""
    while not world.reached([name], "provisioned"):
        assert await governor.tick()
        await world.double.storage.changed(0.1)


UNCONVERTED = (
    "conversion webhook for cluster.x-k8s.io/v1beta1, Kind=Cluster failed: Post"
    ' "https://capi-webhook-service.capi-system.svc:443/convert": no endpoints available'
)


def test_clusters_that_cannot_be_converted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While the webhook of Cluster API is away, hosts of Clusters wait, and say why."""

    async def scene(world: World) -> None:
        await with_and_without_cluster(world)
        world.double.faults.pending = [
            Fault("list", "clusters", times=10_000, answer=500, says=UNCONVERTED)
        ]
        async with world.governor() as governor:
            await passes(world, governor, "b")
            uid = world.host("a")["metadata"]["uid"]
            assert "its cluster edge-1 cannot be read yet" in governor.remarks[uid]
            assert "conversion webhook" in governor.remarks[uid]
            assert annotations(world.host("a"))[PAUSED] == "moorage"
            world.double.faults.pending = []
            await passes(world, governor, "a")
        assert "are started" not in caplog.text

    with caplog.at_level(logging.WARNING):
        play(tmp_path, scene, failing=0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let no time pass between denials; the test adds to its one number."""
    seconds = [1_000.0]
    monkeypatch.setattr(denials, "monotonic", lambda: seconds[0])
    return seconds


@pytest.mark.parametrize("settled", [True, False], ids=["missing", "granted"])
def test_only_hosts_of_clusters_wait_for_clusters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, clock: list[float], settled: bool
) -> None:
    """While Clusters cannot be read, a host of one waits: it may be paused. Others start, in passes
    that all succeed. Once the right is found to be missing, or is granted, all start.
    """

    async def scene(world: World) -> None:
        await with_and_without_cluster(world)
        world.double.faults.pending = [
            Fault("list", "clusters", times=10_000, answer=403, says=LIST)
        ]
        async with world.governor() as governor:
            await passes(world, governor, "b")
            uid = world.host("a")["metadata"]["uid"]
            assert "its cluster edge-1 cannot be read yet" in governor.remarks[uid]
            assert annotations(world.host("a"))[PAUSED] == "moorage"
            assert "are started" not in caplog.text
            if settled:
                clock[0] += denials.SETTLE_SECONDS
            else:
                world.double.faults.pending = []
            await passes(world, governor, "a")
            assert ("hosts of paused Clusters are started" in caplog.text) is settled

    with caplog.at_level(logging.WARNING):
        play(tmp_path, scene, failing=0.0)


def test_a_namespace_without_rights(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    clock: list[float],
) -> None:
    """Hosts that may not be changed are left alone from the first pass on, and blamed only once the
    right is missing; those of other namespaces start, in passes that all succeed.
    """

    async def scene(world: World) -> None:
        other = hosts_in("moorage")
        for name in ("odd", "odd-2"):
            idle = host(name, annotations=OWN)
            del idle["spec"]["bmc"]
            idle["metadata"]["namespace"] = "moorage"
            await world.api.create(other, idle)
            world.double.faults.pending.append(
                Fault("patch", "baremetalhosts", name, times=10_000, answer=403, says=PATCH)
            )
        async with world.governor() as governor:
            assert await governor.tick()
            await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
            while not world.reached(["a"], "provisioned"):
                assert await governor.tick()
                await world.double.storage.changed(0.1)
            said = [why for why in governor.remarks.values() if "cannot be changed" in why]
            assert len(said) == 2
            assert "cannot be changed" not in caplog.text
            clock[0] += denials.SETTLE_SECONDS
            for _ in range(2):
                assert await governor.tick()
            assert caplog.text.count("cannot be changed") == 2
            world.double.faults.pending = []
            monkeypatch.setattr(changes, "monotonic", lambda: 1e12)
            assert await governor.tick()
            assert "cannot be changed" not in str(governor.remarks)

    with caplog.at_level(logging.WARNING):
        play(tmp_path, scene, failing=0.0)


def test_a_held_namespace_that_cannot_be_read_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    """It stays held, and hosts of other namespaces start, in passes that all succeed."""
    monkeypatch.setattr("moorage.integrations.metal3.holds.NAMESPACE_SECONDS", 0.0)

    async def scene(world: World) -> None:
        held = {"metadata": {"annotations": {HOLD: "it moves"}}}
        await world.api.merge(namespace_path("moorage"), held)
        await world.api.create(hosts_in("moorage"), host("h", image=IMAGE, annotations=OWN))
        async with world.governor() as governor:
            await world.until(lambda: "it moves" in str(governor.remarks), governor)
            said = READ.replace("metal3", "moorage")
            world.double.faults.pending = [
                Fault("get", "namespaces", "moorage", times=10_000, answer=403, says=said)
            ]
            await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
            while not world.reached(["a"], "provisioned"):
                assert await governor.tick()
                await world.double.storage.changed(0.1)
            assert world.double.faults.pending[0].times < 10_000
            assert "it moves" in str(governor.remarks)

    play(tmp_path, scene, failing=0.0)
