"""An API server that has not read its roles yet: for a moment it denies what it permits later."""

import asyncio
import logging
from pathlib import Path

import pytest

from moorage.integrations.metal3.holds import HOLD, namespace_path
from tests.integrations.kubernetes.test_denials import PATCH, UNREAD, USER
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, SOON, World, play
from tests.support.bmo_double.hosts import PAUSED, annotations
from tests.support.kubernetes_client import host
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
