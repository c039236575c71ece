"""Hosts keep their places in line while something else prevents their start."""

from pathlib import Path

import pytest

from moorage.client.transport import RefusedError
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.wire.admission import LeaseWanted, NeedWanted
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, POOL, World, play
from tests.integrations.metal3.govern.test_mirrored_governor import mirrored
from tests.support.bmo_double.hosts import PAUSED
from tests.support.kubernetes_client import host
from tests.support.kubernetes_double.server import KubernetesDouble


def places(world: World) -> dict[str, str]:
    """Return the tickets that wait: their IDs by host."""
    return {one.labels["holder"]: one.id for one in world.operator.leases(POOL, "waiting")}


def fill(world: World) -> None:
    """Take the only unit of the pool for something else."""
    needs = [NeedWanted(pool=POOL, units=1)]
    assert world.operator.ask(LeaseWanted(needs=needs, key="other")).state == "granted"


async def ticks(governor: Governor, times: int = 5) -> None:
    """Make passes, all of which must succeed."""
    for _ in range(times):
        assert await governor.tick()


def test_a_process_that_is_behind_withdraws_no_ticket(tmp_path: Path) -> None:
    """A governor whose copy does not show hosts, or their pauses, leaves the tickets that another
    one has drawn for them; that of a host which another controller pauses it withdraws.
    """

    async def scene(world: World) -> None:
        fill(world)
        await world.api.create(ALL, host("old", image=IMAGE))
        others = {"annotations": {PAUSED: "capm3"}}
        await world.api.create(ALL, host("b", image=IMAGE, **others))
        await world.until(lambda: world.reached(["old"], "provisioned"))
        async with (
            KubernetesDouble(world.double.storage) as other,
            mirrored(world, other) as (behind, mirror),
        ):
            await other.received("watch", "baremetalhosts")
            other.reads.mute()
            await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
            await world.api.merge(f"{ALL}/b", {"metadata": {"annotations": OWN}})
            second = {"spec": {"image": None}, "metadata": {"annotations": OWN}}
            await world.api.merge(f"{ALL}/old", second)
            async with world.governor() as governor:
                await world.until(lambda: len(places(world)) == 3, governor)
            before = places(world)
            await ticks(behind)
            assert len(mirror.hosts()) == 2
            assert places(world) == before
            await world.api.merge(f"{ALL}/b", {"metadata": others})
            await ticks(behind)
            del before["metal3/b"]
            assert places(world) == before

    play(tmp_path, scene, limit=1, failing=0.0)


def test_hosts_that_cannot_be_counted_move_nobody_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Moorage refuses to count a host that works, nothing starts in its pool, and a host that
    waits there keeps its place.
    """

    async def refuse(*_: object, **__: object) -> None:
        raise RefusedError(503, "busy", "Moorage is busy.", "")

    async def scene(world: World) -> None:
        fill(world)
        world.nodes.seconds["deploying"] = 1e6
        async with world.governor() as governor:
            first = await world.api.create(ALL, host("first", image=IMAGE, annotations=OWN))
            await world.until(lambda: len(places(world)) == 1, governor)
            before = places(world)
            monkeypatch.setattr(HostLeases, "adopt", refuse)
            await world.api.create(ALL, host("stray", image=IMAGE))
            await world.until(lambda: governor.picture.failed == 1, governor)
            await ticks(governor)
            why = governor.remarks[first["metadata"]["uid"]]
            assert why == f"some busy hosts cannot be counted in {POOL}"
            assert places(world) == before

    play(tmp_path, scene, limit=1, failing=0.0)
