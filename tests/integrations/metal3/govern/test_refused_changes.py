"""What one host, or one lease, has to itself: others start nevertheless."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.integrations import connections
from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metal3 import changes
from moorage.integrations.metal3.reconcile import Reconciler
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.wire.admission import LeaseWanted, NeedWanted
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, POOL, RULES, World, play
from tests.integrations.metal3.govern.test_reconcile import failing_name
from tests.support.bmo_double.hosts import PAUSED, annotations
from tests.support.kubernetes_client import host
from tests.support.kubernetes_double.faults import Fault


def refused(name: str, status: int = 500, says: str = "no") -> Fault:
    """Return that no change of a host is ever accepted, as if its annotations were full."""
    # The operator changes the status, or the whole object.
    return Fault("patch", "baremetalhosts", name, times=10_000, answer=status, says=says)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (403, "no"),
        (422, "no"),
        (500, "no"),
        (500, "etcdserver: request is too large"),
        (503, 'admission webhook "x" denied the request: no'),
    ],
)
def test_a_pause_that_cannot_be_removed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: int,
    says: str,
) -> None:
    """The API server refuses to remove the pause of an idle host: others start, the log and a
    remark say it once, and later it is tried again.
    """

    async def scene(world: World) -> None:
        unmanaged = host("odd", annotations=OWN)
        del unmanaged["spec"]["bmc"]
        await world.api.create(ALL, unmanaged)
        world.double.faults.pending = [refused("odd", status, says)]
        await world.api.create(ALL, host("good", image=IMAGE, annotations=OWN))
        async with world.governor() as governor:
            for _ in range(3):
                assert await governor.tick()
            await world.until(lambda: world.reached(["good"], "provisioned"), governor)
            uid = world.host("odd")["metadata"]["uid"]
            assert "its pause cannot be changed" in governor.remarks[uid]
            assert caplog.text.count("metal3/odd cannot be changed") == 1
            world.double.faults.pending = []
            monkeypatch.setattr(changes, "monotonic", lambda: 1e12)
            await world.until(lambda: PAUSED not in annotations(world.host("odd")), governor)
            assert await governor.tick()
            assert uid not in governor.remarks

    play(tmp_path, scene)


def test_a_pause_that_cannot_be_stored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A host that cannot start keeps its units if the API server refuses to pause it; another one
    starts afterwards, and all passes succeed.
    """

    async def scene(world: World) -> None:
        bad, good = (failing_name(world, fails=fails) for fails in (True, False))
        async with world.governor(now=world.bmo.now, stuck_seconds=0.0) as governor:
            await world.api.create(ALL, host(bad, image=IMAGE, annotations=OWN))
            await world.until(lambda: world.reached([bad], "provisioning"), governor)
            world.double.faults.pending = [refused(bad)]

            async def passes(holds: Callable[[], bool]) -> None:
                while not holds():
                    assert await governor.tick()
                    await world.double.storage.changed(0.1)

            await passes(lambda: f"metal3/{bad} cannot be changed" in caplog.text)
            await world.api.create(ALL, host(good, image=IMAGE, annotations=OWN))
            await passes(lambda: world.reached([good], "provisioned"))

    play(tmp_path, scene, retries=1)


ODD_NAMES = (f"x/{'../' * 6}api/v1/namespaces", f"x/{'../' * 6}healthz")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_label_is_no_path(tmp_path: Path, name: str) -> None:
    """Of a lease of another program, with a label that is no name of a host, the host is found by
    its UID; nothing else than hosts is asked for.
    """

    async def scene(world: World) -> None:
        made = await world.api.create(ALL, host("a"))
        wanted = LeaseWanted(
            needs=[NeedWanted(pool=POOL, units=1)],
            key=f"metal3/{made['metadata']['uid']}/inspect",
            labels={"holder": name},
        )
        lease = await asyncio.to_thread(world.operator.ask, wanted)
        async with (
            LeaseApi(world.url, world.token) as leases,
            KubernetesApi(Connection(world.double.url), name="reader") as api,
        ):
            reconciler = Reconciler(HostLeases(leases), HostRequests(api), RULES)
            found = await reconciler.read(lease, None)
        assert found is not None and found["metadata"]["name"] == "a"
        assert world.double.counts["get", "namespaces"] == 0
        assert world.double.counts["list", "namespaces"] == 0

    play(tmp_path, scene)


def test_a_host_whose_change_is_never_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A webhook hangs for some idle hosts: no pass fails or waits for it, others start and lose
    their pauses, and a remark says it.
    """
    monkeypatch.setattr(changes, "PASS_SECONDS", 0.2)
    monkeypatch.setattr(connections, "SECONDS_MAX", 3.0)
    odd = [f"odd-{number}" for number in range(2 * changes.CHANGES_MAX)]

    async def scene(world: World) -> None:
        for name in [*odd, "idle"]:
            unmanaged = host(name, annotations=OWN)
            del unmanaged["spec"]["bmc"]
            await world.api.create(ALL, unmanaged)
        world.double.faults.pending = [
            Fault("patch", "baremetalhosts", name, times=10_000, wait=60.0) for name in odd
        ]
        await world.api.create(ALL, host("good", image=IMAGE, annotations=OWN))
        async with world.governor() as governor:

            async def passes(holds: Callable[[], bool]) -> None:
                while not holds():
                    began = asyncio.get_running_loop().time()
                    assert await governor.tick()
                    assert asyncio.get_running_loop().time() - began < 2.5
                    await world.double.storage.changed(0.1)

            await passes(lambda: world.reached(["good"], "provisioned"))
            await passes(lambda: PAUSED not in annotations(world.host("idle")))
            uids = {world.host(name)["metadata"]["uid"] for name in odd}
            await passes(lambda: uids <= governor.remarks.keys())
            assert {PAUSED} <= {*annotations(world.host("odd-0"))}
            assert "no answer from" in governor.remarks[min(uids)]
            assert "nothing is started" not in caplog.text
            assert caplog.text.count("metal3/odd-0 cannot be changed") == 1

    play(tmp_path, scene, failing=0.0)


def test_a_server_that_answers_nobody_ends_the_pass(tmp_path: Path) -> None:
    """It does not depend on the host, so no host is blamed, and nothing waits for a unit."""

    async def scene(world: World) -> None:
        unmanaged = host("idle", annotations=OWN)
        del unmanaged["spec"]["bmc"]
        await world.api.create(ALL, unmanaged)
        world.double.faults.pending = [Fault("patch", "baremetalhosts", times=3, answer="drop")]
        async with world.governor() as governor:
            assert not await governor.tick()
            assert not governor.remarks
            await world.until(lambda: PAUSED not in annotations(world.host("idle")), governor)

    play(tmp_path, scene, failing=0.0)
