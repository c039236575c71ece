"""The copy of a list: what it has after watches break off, lists get old and servers are away."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic

import pytest

from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.kubernetes.mirror import (
    LIST_SECONDS,
    STALE_SECONDS,
    STEADY_SECONDS,
    Mirror,
    StaleError,
)
from tests.support.kubernetes_client import Kubernetes, host, hosts_in
from tests.support.kubernetes_double.faults import Fault
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.kubernetes_double.status import INITIALIZING
from tests.support.virtual_loop import VirtualLoop, run, turns

HOSTS = hosts_in("metal3")
PATIENCE = 20.0
"""Seconds of real time that a test waits for anything."""

LIST, WATCH = ("list", "baremetalhosts"), ("watch", "baremetalhosts")


@dataclass
class World:
    """An API server, a client that changes hosts, and a copy of the hosts."""

    loop: VirtualLoop
    double: KubernetesDouble
    client: Kubernetes
    mirror: Mirror

    @property
    def lists(self) -> int:
        """How often all hosts were listed."""
        return sum(
            one.verb == "list" and one.query.get("limit") != "1" for one in self.double.requests
        )

    def names(self) -> str:
        """Return the names of the hosts in the copy."""
        return " ".join(one["metadata"]["name"] for one in self.mirror.objects())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when something holds."""
        last = monotonic() + PATIENCE
        while not holds():
            assert monotonic() < last, "it never holds"
            await asyncio.sleep(0)

    async def until_changed(self, names: str) -> None:
        """Return when the copy has these hosts; it must say each time that it has changed."""
        while self.names() != names:
            await self.until(self.mirror.changed.is_set)
            self.mirror.changed.clear()

    async def settle(self) -> None:
        """Return when the copy is read and watched."""
        await self.mirror.tried.wait()
        await self.until(lambda: self.double.counts[WATCH] >= 1)
        await self.until(lambda: self.mirror.is_watching)


def play(scene: Callable[[World], Awaitable[None]], *names: str) -> None:
    """Run a scene with hosts of these names."""

    async def act(loop: VirtualLoop) -> None:
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as client,
            KubernetesApi(Connection(double.url)) as api,
        ):
            for name in names:
                await client.create(HOSTS, host(name))
            double.requests.clear()
            async with Mirror(api, HOSTS) as mirror:
                world = World(loop, double, client, mirror)
                await world.settle()
                await scene(world)

    run(act)


async def pause(client: Kubernetes, name: str, value: str) -> None:
    """Change a host."""
    await client.merge(f"{HOSTS}/{name}", {"metadata": {"annotations": {"mine": value}}})


def value(mirror: Mirror, name: str) -> str | None:
    """Return the annotation of a host in the copy; `gone`: it is not there."""
    found = {one["metadata"]["name"]: one["metadata"] for one in mirror.objects()}
    if name not in found:
        return "gone"
    annotations: dict[str, str] = found[name].get("annotations") or {}
    return annotations.get("mine")


def has_value(mirror: Mirror, name: str, wanted: str) -> bool:
    """Return whether the annotation of a host has a value in the copy."""
    return value(mirror, name) == wanted


def test_it_follows() -> None:
    """Hosts that come, change and go are seen without another list; one that has the name of an
    earlier one replaces it; who has written which field is not kept.
    """

    async def scene(world: World) -> None:
        assert world.names() == "a"
        await world.client.create(HOSTS, host("b"))
        await world.until_changed("a b")
        await pause(world.client, "b", "1")
        await world.until(lambda: value(world.mirror, "b") == "1")
        await world.client.delete(f"{HOSTS}/a")
        await world.until_changed("b")
        await world.client.delete(f"{HOSTS}/b")
        await world.client.create(HOSTS, host("b"))
        await world.until(lambda: value(world.mirror, "b") is None)
        assert world.lists == 1
        assert all("managedFields" not in one["metadata"] for one in world.mirror.objects())

    play(scene, "a")


def test_only_what_matters_is_a_change() -> None:
    """`changed` is set for what matters of an object, and for no other change of it."""

    async def act(_: VirtualLoop) -> None:
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as client,
            KubernetesApi(Connection(double.url)) as api,
        ):
            await client.create(HOSTS, host("a"))
            async with Mirror(api, HOSTS, lambda one: one["spec"].get("online")) as mirror:
                await mirror.tried.wait()
                mirror.changed.clear()
                await pause(client, "a", "1")
                while value(mirror, "a") != "1":
                    await asyncio.sleep(0)
                assert not mirror.changed.is_set()
                await client.merge(f"{HOSTS}/a", {"spec": {"online": False}})
                await mirror.changed.wait()

    run(act)


def test_a_cut_watch_goes_on_where_it_was() -> None:
    """What happens while a watch is cut is seen by the next one, without another list."""

    async def scene(world: World) -> None:
        for number in range(3):
            world.double.drop_watches()
            await pause(world.client, "a", f"{number}")
            await world.until(partial(has_value, world.mirror, "a", f"{number}"))
            world.loop.advance(STEADY_SECONDS)
        assert world.lists == 1
        assert world.double.counts[WATCH] >= 3

    play(scene, "a")


def test_a_forgotten_version_is_listed_again() -> None:
    """If the server has forgotten what the next watch would begin with, all hosts are listed; a
    deletion that no watch has seen is found so.
    """

    async def scene(world: World) -> None:
        world.double.faults.pending.append(Fault(*WATCH, answer=503, times=1))
        world.double.drop_watches()
        await world.client.delete(f"{HOSTS}/a")
        await pause(world.client, "b", "1")
        world.double.forget()
        await world.until(lambda: world.names() == "b" and value(world.mirror, "b") == "1")
        assert world.lists == 2

    play(scene, "a", "b")


def test_a_cluster_that_was_restored() -> None:
    """A watch from before would be silent until the versions are reached again. So the older state
    is noticed when the watch breaks off, and all hosts are listed, long before the next list.
    """

    async def scene(world: World) -> None:
        backup = world.double.storage.version
        await world.client.create(HOSTS, host("b"))
        await pause(world.client, "a", "1")
        await world.until(partial(has_value, world.mirror, "a", "1"))
        began = world.loop.time()
        await world.double.stop()
        world.double.storage.restore(backup)
        await world.double.start()
        while world.names() != "a" or has_value(world.mirror, "a", "1"):
            world.loop.advance(1)
            assert world.loop.time() - began < LIST_SECONDS / 2, "it is deaf"
            await turns()
        await world.client.create(HOSTS, host("c"))
        await world.until_changed("a c")

    play(scene, "a")


def test_a_server_that_has_just_started() -> None:
    """It refuses lists and watches until it has read the objects (429): the copy goes on then."""

    async def scene(world: World) -> None:
        await world.double.stop()
        for verb, times in (LIST, 2), (WATCH, 1), (LIST, 1):
            busy = Fault(*verb, answer=429, says=INITIALIZING, retry_after=1, times=times)
            world.double.faults.pending.append(busy)
        await world.double.start()
        began = world.loop.time()
        await world.client.create(HOSTS, host("b"))
        while world.names() != "a b" or not world.mirror.is_watching:
            world.loop.advance(1)
            assert world.loop.time() - began < LIST_SECONDS / 2, "it is deaf"
            await turns()
        assert not world.double.faults.pending

    play(scene, "a")


def test_lists_replace_what_a_silent_watch_has_missed() -> None:
    """A watch that reports nothing more, without breaking off, is corrected by the next list."""

    async def scene(world: World) -> None:
        world.double.reads.mute()
        await world.client.delete(f"{HOSTS}/a")
        await world.client.create(HOSTS, host("c"))
        world.mirror.changed.clear()
        world.loop.advance(LIST_SECONDS / 2)
        assert world.names() == "a b"
        world.loop.advance(LIST_SECONDS)
        await world.mirror.changed.wait()
        assert world.names() == "b c"
        assert world.lists == 2

    play(scene, "a", "b")


def test_a_server_that_is_away_for_a_minute() -> None:
    """After some seconds the copy cannot be used; it can as soon as the server is back, with what
    has happened meanwhile; few requests are sent until then.
    """

    async def scene(world: World) -> None:
        world.loop.advance(STEADY_SECONDS)
        await world.double.stop()
        await world.until(lambda: not world.mirror.is_watching)
        assert world.names() == "a"
        world.loop.advance(STALE_SECONDS + 1)
        with pytest.raises(StaleError, match=r"has not been heard of for 1. s: .*refused"):
            world.mirror.objects()
        for _ in range(45):
            world.loop.advance(1)
            await turns()
        world.double.put(
            {**host("b"), "metadata": {"name": "b", "namespace": "metal3", "uid": "b"}}
        )
        before = world.lists + world.double.counts[WATCH]
        await world.double.start()
        world.loop.advance(20)
        await world.until(lambda: world.mirror.is_watching)
        await world.until(lambda: world.names() == "a b")
        assert world.lists + world.double.counts[WATCH] - before <= 3

    play(scene, "a")


def test_an_idle_minute() -> None:
    """In ten minutes without changes there are about ten lists and ten watches."""

    async def scene(world: World) -> None:
        for _ in range(10):
            lists = world.lists
            world.loop.advance(LIST_SECONDS * 1.1)
            await world.until(lambda lists=lists: world.lists > lists)  # type: ignore[misc]  # its own
            await world.until(lambda: world.mirror.is_watching)
            assert world.names() == "a"
        assert world.lists == 11
        assert world.double.counts[WATCH] <= 12

    play(scene, "a")


def test_not_read_yet() -> None:
    """Until the first list is read, the copy says why it cannot be used."""

    async def act(loop: VirtualLoop) -> None:
        async with KubernetesDouble() as double, KubernetesApi(Connection(double.url)) as api:
            double.faults.pending.append(Fault(*LIST, answer=500, times=1))
            async with Mirror(api, HOSTS) as mirror:
                with pytest.raises(StaleError, match="not been read yet"):
                    mirror.objects()
                await mirror.tried.wait()
                with pytest.raises(StaleError, match="500"):
                    mirror.objects()
                loop.advance(1)
                while not mirror.is_watching:
                    await asyncio.sleep(0)
                assert mirror.objects() == []

    run(act)


def test_a_fault_is_not_hidden() -> None:
    """If the copy cannot go on because of an error of ours, its users get that error."""

    def odd(_: object) -> object:
        raise ZeroDivisionError

    async def act(_: VirtualLoop) -> None:
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as client,
            KubernetesApi(Connection(double.url)) as api,
            Mirror(api, HOSTS, odd) as mirror,
        ):
            await mirror.tried.wait()
            await client.create(HOSTS, host("a"))
            await pause(client, "a", "1")
            with pytest.raises(ZeroDivisionError):
                while mirror.objects() is not None:
                    await asyncio.sleep(0)

    run(act)
