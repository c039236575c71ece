"""The double of metal3's operator does with hosts what the original does, races included."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.support.bmo_double.hosts import PAUSED
from tests.support.bmo_double.ironic_nodes import IronicNodes
from tests.support.bmo_double.memory_nodes import MemoryNodes
from tests.support.bmo_double.operator import Operator, Settings
from tests.support.bmo_double.story import NAME, SPACE, Story, untrue
from tests.support.ironic_double.agenda import Agenda
from tests.support.ironic_double.faults import Fault
from tests.support.ironic_double.server import IronicDouble
from tests.support.kubernetes_client import Answered, Kubernetes, host, hosts_in
from tests.support.kubernetes_double.server import KubernetesDouble

ALL = hosts_in("metal3")
SCALE = 100.0
PATIENCE = 60.0
IMAGE = "http://image"
LIMIT = 5
WORK = {"deploying", "cleaning", "deleting"}
BORN = ["registering", "inspecting", "preparing", "available"]


@dataclass
class World:
    """An API server, an operator that is not started yet, and its nodes in memory."""

    double: KubernetesDouble
    api: Kubernetes
    nodes: MemoryNodes
    operator: Operator

    def states(self, name: str) -> list[str]:
        """Return the provisioning states that the API has shown of a host, each once in a row."""
        found: list[str] = []
        for change in self.double.storage.after(0):
            state = change.object.get("status", {}).get("provisioning", {}).get("state")
            if change.key[1:] == ("baremetalhosts", "metal3", name) and [state] != found[-1:]:
                found += [state] if state else []
        return found

    def forget(self, name: str) -> None:
        """Cut all watches and forget what is written meanwhile: each then gets 410."""
        self.double.drop_watches()
        self.double.storage.write(("metal3.io", "baremetalhosts", "metal3", name), self.host(name))
        self.double.forget()

    def busiest(self, since: int) -> int:
        """Return how many nodes were cleaned or deployed at once, from a line of the book on."""
        busy: set[str] = set()
        busiest = 0
        for line in self.nodes.book.lines[since:]:
            (busy.add if line.state in WORK else busy.discard)(line.node)
            busiest = max(busiest, len(busy))
        return busiest

    def host(self, name: str) -> dict[str, Any]:
        """Return a host as it is stored."""
        found = self.double.storage.get(("metal3.io", "baremetalhosts", "metal3", name))
        assert found is not None, name
        return found

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when something holds; it is looked at after each write, and now and then."""

        async def wait() -> None:
            while not holds():
                await self.double.storage.changed(0.1)

        await asyncio.wait_for(wait(), PATIENCE)

    async def reached(self, names: list[str], state: str) -> None:
        """Return when all these hosts are in a state."""
        await self.until(lambda: all(self.states(name)[-1:] == [state] for name in names))


def play(
    scene: Callable[[World], Awaitable[None]],
    failing: float = 0.0,
    scale: float = SCALE,
    **settings: Any,
) -> None:
    """Run a scene with an operator; time runs a hundred times faster, or by `scale`."""

    async def run() -> None:
        agenda = Agenda(scale)
        nodes = MemoryNodes(agenda, failing=failing)
        async with KubernetesDouble() as double, Kubernetes(double.url, name="bmo") as api:
            operator = Operator(api, agenda, nodes, Settings(**settings))
            async with operator:
                await asyncio.wait_for(scene(World(double, api, nodes, operator)), PATIENCE)

    asyncio.run(run())


def test_thirty_hosts_are_provisioned() -> None:
    """Thirty hosts are provisioned; those of which the first deployment fails start again by
    themselves, without a write of anybody else.
    """
    names = [f"host-{number}" for number in range(30)]

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name, image=IMAGE))
        await world.reached(names, "provisioned")
        failed = {name for name in names if world.nodes.fails(f"metal3~{name}")}
        assert 3 <= len(failed) <= 10
        for name in names:
            again = ["provisioning", "deprovisioning", "available"] if name in failed else []
            assert world.states(name) == [*BORN, *again, "provisioning", "provisioned"]
            assert world.nodes.book.times(f"metal3~{name}", "deploying") == (2 if again else 1)
            status = world.host(name)["status"]
            assert (status["operationalStatus"], status.get("errorType")) == ("OK", None)
        assert world.operator.conflicts > 0, "its cache is never behind"

    play(scene, failing=0.2)


def test_paused_hosts_do_nothing() -> None:
    """A host that was created paused is not touched at all, until its annotation is removed."""

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a", image=IMAGE, annotations={PAUSED: "moorage"}))
        await world.api.create(ALL, host("b"))
        await world.reached(["b"], "available")
        assert world.operator.paused["metal3/a"] == 1
        assert world.operator.looks["metal3/a"] == 0
        assert "status" not in world.host("a")
        assert "finalizers" not in world.host("a")["metadata"]
        await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": {PAUSED: None}}})
        await world.reached(["a"], "provisioned")

    play(scene)


def test_from_the_image_to_the_end() -> None:
    """Without its image a host is available again; an annotation inspects it again; a deleted one
    is deprovisioned and switched off first.
    """

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a", image=IMAGE))
        await world.reached(["a"], "provisioned")
        await world.api.merge(f"{ALL}/a", {"spec": {"image": None}})
        await world.reached(["a"], "available")
        await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": {"inspect.metal3.io": ""}}})
        await world.until(lambda: world.states("a").count("available") == 3)
        again = ["deprovisioning", "available", "inspecting", "preparing", "available"]
        assert world.states("a") == [*BORN, "provisioning", "provisioned", *again]
        await world.api.merge(f"{ALL}/a", {"spec": {"image": {"url": IMAGE}}})
        await world.reached(["a"], "provisioned")
        await world.api.delete(f"{ALL}/a")
        key = ("metal3.io", "baremetalhosts", "metal3", "a")
        await world.until(lambda: world.double.storage.get(key) is None)
        end = ["deprovisioning", "powering off before delete", "deleting"]
        assert world.states("a")[-3:] == end
        assert await world.nodes.all() == []

    play(scene)


async def pause(world: World, name: str, value: str | None) -> None:
    """Add or remove the pause of a host."""
    await world.api.merge(f"{ALL}/{name}", {"metadata": {"annotations": {PAUSED: value}}})


def test_pausing_afterwards_is_too_late() -> None:
    """A governor that pauses hosts after it has seen their image lets more than its limit start."""
    names = [f"host-{number}" for number in range(30)]

    async def annotate(world: World) -> None:
        started: set[str] = set()
        async for event in world.api.watch(ALL):
            found = event["object"]
            name = found["metadata"]["name"]
            if not found["spec"].get("image") or name in started:
                continue
            if len(started) < LIMIT:
                started.add(name)
            elif PAUSED not in found["metadata"].get("annotations", {}):
                await pause(world, name, "moorage")

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name))
        await world.reached(names, "available")
        since = len(world.nodes.book.lines)
        naive = asyncio.create_task(annotate(world))
        image = {"spec": {"image": {"url": IMAGE}}}
        await asyncio.gather(*(world.api.merge(f"{ALL}/{name}", image) for name in names))
        await world.until(
            lambda: (
                all("image" in world.host(name)["spec"] for name in names)
                and len(world.nodes.book.among({"active"})) > 0
            )
        )
        naive.cancel()
        assert world.busiest(since) > LIMIT

    play(scene, lag=(0.005, 0.05))


def test_the_pause_in_the_very_write_holds() -> None:
    """Hosts that are paused in the write that sets their image, and released one after another when
    another is provisioned, are never more than the limit, failures and retries included.
    """
    names = [f"host-{number}" for number in range(15)]

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name))
        await world.reached(names, "available")
        since = len(world.nodes.book.lines)
        for name in names:
            both = {"spec": {"image": {"url": IMAGE}}, "metadata": {"annotations": {PAUSED: "m"}}}
            await world.api.merge(f"{ALL}/{name}", both)
        for place, name in enumerate(names):
            released = names[:place]
            await world.until(
                lambda released=released: (  # type: ignore[misc]  # the loop's own
                    sum(world.states(one)[-1] != "provisioned" for one in released) < LIMIT
                )
            )
            await pause(world, name, None)
        await world.reached(names, "provisioned")
        assert 2 <= world.busiest(since) <= LIMIT

    play(scene, failing=0.2)


def test_its_own_limit_delays() -> None:
    """Above its own limit hosts are delayed, and have their turn later without anybody's help."""
    names = [f"host-{number}" for number in range(12)]

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name))
        await world.reached(names, "available")
        shown = [
            change.object["metadata"]["name"]
            for change in world.double.storage.after(0)
            if change.object.get("status", {}).get("operationalStatus") == "delayed"
        ]
        assert shown

    play(scene, limit=2)


def test_a_restarted_operator_goes_on() -> None:
    """An operator that ends in the middle of deployments goes on where it was."""
    names = ["a", "b", "c"]

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name, image=IMAGE))
        await world.until(lambda: world.nodes.book.most_deploying > 0)
        await world.operator.__aexit__()
        second = Operator(world.api, world.nodes.agenda, world.nodes)
        async with second:
            await world.reached(names, "provisioned")
        for name in names:
            assert world.nodes.book.times(f"metal3~{name}", "deploying") == 1

    play(scene)


def test_cut_watches_lose_nothing() -> None:
    """Its cache survives cut watches, forgotten history and a restart of the API server."""
    names = [f"host-{number}" for number in range(6)]

    async def scene(world: World) -> None:
        for place, name in enumerate(names):
            await world.api.create(ALL, host(name, image=IMAGE))
            await world.until(lambda name=name: bool(world.states(name)))  # type: ignore[misc]  # as above
            if place == 3:
                await world.double.stop()
                await world.double.start()
            else:
                world.forget(name)
        await world.reached(names, "provisioned")
        assert world.operator.informer.lists > 1

    play(scene)


def test_a_409_of_ironic_is_tried_again() -> None:
    """With nodes of an Ironic: a deployment that is answered 409 is tried again for ever, and the
    host shows no error.
    """

    async def run() -> None:
        async with IronicDouble(scale=SCALE) as ironic, KubernetesDouble() as double:
            agenda = Agenda(SCALE)
            ironic.faults.pending.append(Fault("provision", times=12, work="never", answer=409))
            async with (
                Kubernetes(double.url) as api,
                IronicNodes(ironic.url, agenda) as nodes,
                Operator(api, agenda, nodes) as operator,
            ):
                wanted = host("a", image=IMAGE)
                wanted["spec"]["inspectionMode"] = "disabled"
                await api.create(ALL, wanted)
                nodes_world = World(double, api, MemoryNodes(agenda), operator)
                await nodes_world.reached(["a"], "provisioned")
                assert nodes.refused == 12
                kinds = [
                    change.object.get("status", {}).get("errorType")
                    for change in double.storage.after(0)
                ]
                assert not any(kinds)

    asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_a_conflict_is_seen() -> None:
    """An operator that saves what it read before a newer write is refused, and reads again."""

    async def scene(world: World) -> None:
        first = await world.api.create(ALL, host("a"))
        await world.reached(["a"], "available")
        try:
            await world.api.update(f"{ALL}/a", first)
        except Answered as answered:
            assert answered.code == 409
        else:
            raise AssertionError("an old version was stored")

    play(scene)


@dataclass
class Machine:
    """The machine of the story, a node in memory."""

    nodes: MemoryNodes

    def fail(self, work: str) -> None:
        """Break one state of the node."""
        states = {"inspect": "inspecting", "provision": "deploying", "deprovision": "deleting"}
        self.nodes.broken[f"{SPACE}~{NAME}"] = {states[work]} if work else set()


def test_it_tells_the_story_of_the_original() -> None:
    """Of a host it shows the same, chapter by chapter, as the real operator has shown."""

    async def scene(world: World) -> None:
        assert untrue(await Story(world.api, Machine(world.nodes)).tell()) == []

    play(scene, scale=5 * SCALE)


def test_the_operator_raises_the_generation() -> None:
    """After an inspection it notes the architecture in the specification."""

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a"))
        await world.until(lambda: "architecture" in world.host("a")["spec"])
        assert world.host("a")["metadata"]["generation"] == 2

    play(scene)
