"""Hosts that move between clusters: they arrive as they were, and do not start on the way."""

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner

from moorage.cli.main import cli
from moorage.integrations.metal3.holds import CLUSTER, HOLD
from moorage.integrations.metal3.hosts import WAITING
from moorage.integrations.metal3.status import STATUS
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, POOL, World, play
from tests.support.bmo_double.hosts import PAUSED, annotations, deployed, state
from tests.support.kubernetes_client import Object, host

CLUSTERS = "/apis/cluster.x-k8s.io/v1beta2/namespaces/metal3/clusters"
LABELS = {CLUSTER: "edge-1"}
PASSES = 20


def cluster(*, paused: bool) -> Object:
    """Return a Cluster of Cluster API."""
    names = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"}
    return {**names, "metadata": {"name": "edge-1"}, "spec": {"paused": paused}}


async def passed(world: World, governor: object) -> None:
    """Make some passes."""
    for _ in range(PASSES):
        await governor.tick()  # type: ignore[attr-defined] # a Governor
        await world.double.storage.changed(0.05)


def test_a_provisioned_host_that_arrives_is_managed_at_once(tmp_path: Path) -> None:
    """Its status is in an annotation, and the pool is full: it does not wait, it is adopted."""
    said = {"operationalStatus": "OK", "provisioning": {"state": "provisioned"}}
    said["provisioning"]["image"] = {"url": IMAGE}  # type: ignore[index] # the object above

    async def scene(world: World) -> None:
        marks = {**OWN, STATUS: json.dumps(said)}
        await world.api.create(ALL, host("a", image=IMAGE, annotations=marks))
        async with world.governor() as governor, asyncio.timeout(20.0):
            await world.until(lambda: STATUS not in annotations(world.host("a")), governor)
            node = "metal3~a"
            await world.until(lambda: world.nodes.book.states.get(node) == "active", governor)
        found = world.host("a")
        assert (state(found), deployed(found)[0]) == ("provisioned", IMAGE)
        assert PAUSED not in annotations(found)
        assert world.nodes.book.times("metal3~a", "inspecting") == 0

    play(tmp_path, scene, limit=0, failing=0.0)


def test_no_host_of_a_paused_cluster_starts(tmp_path: Path) -> None:
    """There is room for it: it waits, says why, and starts once its Cluster is not paused."""

    async def scene(world: World) -> None:
        await world.api.create(CLUSTERS, cluster(paused=True))
        for name, labels in (("a", LABELS), ("b", {})):
            await world.api.create(
                ALL, host(name, image=IMAGE, annotations=OWN, labels=dict(labels))
            )
        async with world.governor() as governor:
            await world.until(lambda: world.reached(["b"], "provisioned"), governor)
            found = annotations(world.host("a"))
            assert found[PAUSED] == OWN[PAUSED]
            assert "its cluster edge-1 is paused" in found[WAITING]
            assert "status" not in world.host("a")
            await world.api.merge(f"{CLUSTERS}/edge-1", {"spec": {"paused": False}})
            await world.until(lambda: world.reached(["a"], "provisioned"), governor)

    play(tmp_path, scene, failing=0.0)


def test_a_cluster_that_is_paused_after_the_grant(tmp_path: Path) -> None:
    """It is read again before our pause is removed: the host gives its unit back, and waits."""

    async def scene(world: World) -> None:
        await world.api.create(CLUSTERS, cluster(paused=False))
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN, labels=LABELS))
        async with world.governor() as governor:
            look, reads = governor._requests.holds.look, 0

            async def paused_meanwhile(hosts: object) -> None:
                nonlocal reads
                await look(hosts)  # type: ignore[arg-type] # what it is called with
                reads += 1
                if reads == 1:
                    await world.api.merge(f"{CLUSTERS}/edge-1", {"spec": {"paused": True}})

            governor._requests.holds.look = paused_meanwhile  # type: ignore[method-assign] # in its place
            await passed(world, governor)
            assert reads > 2
            assert annotations(world.host("a")).get(PAUSED) == OWN[PAUSED]
            assert world.held() == 0

    play(tmp_path, scene, failing=0.0)


def run(world: World, *words: str) -> str:
    """Run a command of `moorage metal3`."""
    done = CliRunner().invoke(cli, ["metal3", *words, "--kubernetes", world.double.url])
    assert done.exit_code == 0, done.output
    return done.output


def test_people_hold_the_hosts_of_a_cluster(tmp_path: Path) -> None:
    """Hosts with its label are not started until they are resumed, and carry their status."""

    async def scene(world: World) -> None:
        for name, labels in (("a", LABELS), ("b", {})):
            await world.api.create(ALL, host(name, labels=dict(labels)))
        await world.until(lambda: world.reached(["a", "b"], "available"))
        for name in ("a", "b"):
            both = {"spec": {"image": {"url": IMAGE}}, "metadata": {"annotations": OWN}}
            await world.api.merge(f"{ALL}/{name}", both)
        said = await asyncio.to_thread(
            run, world, "hold", "metal3", "--cluster", "edge-1", "--reason", "moves"
        )
        assert said == "held: 1 of 1 hosts\n"
        async with world.governor() as governor:
            await world.until(lambda: world.reached(["b"], "provisioned"), governor)
            found = annotations(world.host("a"))
            assert (found[PAUSED], found[HOLD]) == (OWN[PAUSED], "moves")
            assert "it is held: moves" in found[WAITING]
            assert json.loads(found[STATUS])["provisioning"]["state"] == "available"
            resumed = await asyncio.to_thread(run, world, "resume", "metal3")
            assert resumed == "resumed: 1 of 2 hosts\n"
            await world.until(lambda: world.reached(["a"], "provisioned"), governor)
            await world.until(lambda: not annotations(world.host("a")), governor)

    play(tmp_path, scene, failing=0.0)


def test_a_host_that_is_created_in_a_held_namespace(tmp_path: Path) -> None:
    """It waits with the others, also for a governor that was started later, until it is resumed."""

    async def scene(world: World) -> None:
        said = await asyncio.to_thread(run, world, "hold", "metal3", "--reason", "moves")
        assert said == "held: 0 of 0 hosts\n"
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
        for _ in range(2):
            async with world.governor() as governor:
                await passed(world, governor)
                assert [*governor.remarks.values()] == ["its namespace metal3 is held: moves"]
        assert annotations(world.host("a"))[PAUSED] == OWN[PAUSED]
        assert world.held() == 0
        resumed = await asyncio.to_thread(run, world, "resume", "metal3")
        assert resumed == "resumed: 0 of 1 hosts\n"
        async with world.governor() as governor:
            await world.until(lambda: world.reached(["a"], "provisioned"), governor)

    play(tmp_path, scene, failing=0.0)


def test_a_namespace_that_is_held_after_the_grant(tmp_path: Path) -> None:
    """It is read again before our pause is removed, whatever a pass has seen a moment before."""

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
        async with world.governor() as governor:
            await governor._requests.holds.look([world.host("a")])
            await asyncio.to_thread(run, world, "hold", "metal3", "--reason", "moves")
            # Only the namespace says it, as when the host had been created in between.
            await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": {HOLD: None}}})
            await passed(world, governor)
            assert annotations(world.host("a")).get(PAUSED) == OWN[PAUSED]
            assert "status" not in world.host("a")

    play(tmp_path, scene, failing=0.0)


def test_servicing_is_counted(tmp_path: Path) -> None:
    """A host in use whose firmware is changed has a unit, over the limit, until it is over."""

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a", image=IMAGE))
        await world.until(lambda: world.reached(["a"], "provisioned"))
        world.nodes.seconds["servicing"] = 500.0
        await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": {"double/service": ""}}})
        async with world.governor() as governor, asyncio.timeout(30.0):
            await world.until(lambda: world.held() == 1, governor)
            (lease,) = world.operator.leases(POOL, "granted")
            assert lease.forced
            assert world.nodes.book.states["metal3~a"] == "servicing"
            await world.until(lambda: world.held() == 0, governor)
        assert world.nodes.book.states["metal3~a"] == "active"

    play(tmp_path, scene, limit=0, failing=0.0)
