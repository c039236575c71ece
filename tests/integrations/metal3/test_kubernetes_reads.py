"""The double of Kubernetes keeps the rules of lists and watches, and fails on demand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from tests.support.kubernetes_client import Answered, Kubernetes, host, hosts_in
from tests.support.kubernetes_double.faults import DROP, Fault
from tests.support.kubernetes_double.server import KubernetesDouble

ALL = hosts_in("metal3")
Play = Callable[[KubernetesDouble, Kubernetes], Awaitable[None]]


def play(scene: Play) -> None:
    """Run a scene with a double and a client."""

    async def run() -> None:
        async with KubernetesDouble() as double, Kubernetes(double.url) as api:
            await asyncio.wait_for(scene(double, api), 20)

    asyncio.run(run())


async def take(events: AsyncIterator[dict[str, Any]], number: int) -> list[tuple[str, str]]:
    """Return type and name of the next events."""
    found: list[tuple[str, str]] = []
    while len(found) < number:
        event = await anext(events)
        found.append((event["type"], event["object"]["metadata"].get("name", "")))
    return found


async def version_now(api: Kubernetes) -> str:
    """Return the version of a list."""
    version: str = (await api.get(ALL))["metadata"]["resourceVersion"]
    return version


def test_pages() -> None:
    """A list in pages shows one state, whatever is written meanwhile; a forgotten one gets 410."""

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        for name in "abcde":
            await api.create(ALL, host(name))
        first = await api.get(ALL, limit="2")
        assert first["metadata"]["remainingItemCount"] == 3
        await api.delete(f"{ALL}/d")
        token = {"continue": first["metadata"]["continue"]}
        second = await api.get(ALL, limit="2", **token)
        third = await api.get(ALL, limit="2", **{"continue": second["metadata"]["continue"]})
        pages = [
            [one["metadata"]["name"] for one in page["items"]] for page in (first, second, third)
        ]
        assert pages == [["a", "b"], ["c", "d"], ["e"]]
        double.forget()
        with pytest.raises(Answered) as caught:
            await api.get(ALL, limit="2", **token)
        assert (caught.value.code, caught.value.body["reason"]) == (410, "Expired")

    play(scene)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("rack=1", "ac"),
        ("rack==1,zone!=x", "c"),
        ("rack in (1, 2)", "abc"),
        ("rack notin (1)", "bd"),
        ("zone", "a"),
        ("!rack", "d"),
    ],
)
def test_selectors(selector: str, names: str) -> None:
    """A label selector means what it means in Kubernetes."""

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        racks = {"a": {"rack": "1", "zone": "x"}, "b": {"rack": "2"}, "c": {"rack": "1"}, "d": {}}
        for name, labels in racks.items():
            await api.create(ALL, host(name, labels=labels))
        found = await api.get(ALL, labelSelector=selector)
        assert [one["metadata"]["name"] for one in found["items"]] == [*names]
        found = await api.get(ALL, fieldSelector="metadata.name=b")
        assert [one["metadata"]["name"] for one in found["items"]] == ["b"]

    play(scene)


def test_watch_continues_a_list() -> None:
    """A watch from the version of a list sends every later change once, in its order."""

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        await api.create(ALL, host("a"))
        version = await version_now(api)
        await api.create(ALL, host("b"))
        events = api.watch(ALL, resourceVersion=version)
        assert await take(events, 1) == [("ADDED", "b")]
        await api.merge(f"{ALL}/a", {"spec": {"online": False}})
        await api.delete(f"{ALL}/b")
        assert await take(events, 2) == [("MODIFIED", "a"), ("DELETED", "b")]
        assert await take(api.watch(ALL), 1) == [("ADDED", "a")]

    play(scene)


def test_watch_of_a_selection() -> None:
    """A watch sees an object that leaves its selection as deleted, one that enters as added."""

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        await api.create(ALL, host("a", labels={"rack": "1"}))
        events = api.watch(ALL, resourceVersion=await version_now(api), labelSelector="rack=1")
        for rack in ("2", "3", "1"):
            await api.merge(f"{ALL}/a", {"metadata": {"labels": {"rack": rack}}})
        assert await take(events, 2) == [("DELETED", "a"), ("ADDED", "a")]

    play(scene)


def test_a_watch_ends() -> None:
    """A watch ends after its time; two seconds before that it gets a bookmark, if it wants some and
    something has happened.
    """

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        query = {"timeoutSeconds": "3", "allowWatchBookmarks": "true"}
        now = await version_now(api)
        quiet = [one async for one in api.watch(ALL, resourceVersion=now, **query)]
        assert quiet == []
        await api.create(ALL, host("a"))
        found = [one async for one in api.watch(ALL, resourceVersion=now, **query)]
        assert [one["type"] for one in found] == ["ADDED", "BOOKMARK"]
        version = found[-1]["object"]["metadata"]["resourceVersion"]
        assert version == str(double.storage.version)

    play(scene)


def test_a_watch_from_the_future() -> None:
    """A watch from a version that is not reached is silent until then; a list is refused."""

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        future = str(double.storage.version + 2)
        events = api.watch(ALL, resourceVersion=future)
        waiting = asyncio.create_task(take(events, 1))
        await double.received("watch", "baremetalhosts")
        for name in "abc":
            await api.create(ALL, host(name))
        assert await waiting == [("ADDED", "c")]
        with pytest.raises(Answered) as caught:
            await api.get(ALL, resourceVersion=str(double.storage.version + 1))
        assert (caught.value.code, caught.value.retry_after) == (504, "1")

    play(scene)


def test_forgotten_history() -> None:
    """A watch from a forgotten version gets 410 as an event; one that runs already goes on."""

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        version = await version_now(api)
        running = api.watch(ALL, resourceVersion=version)
        waiting = asyncio.create_task(take(running, 1))
        await double.received("watch", "baremetalhosts")
        await api.create(ALL, host("a"))
        double.forget()
        assert await waiting == [("ADDED", "a")]
        found = [one async for one in api.watch(ALL, resourceVersion=version)]
        assert [(one["type"], one["object"]["code"]) for one in found] == [("ERROR", 410)]
        await api.create(ALL, host("b"))
        assert await take(running, 1) == [("ADDED", "b")]

    play(scene)


def test_cut_and_restarted() -> None:
    """Watches that are cut and a restart lose nothing: the client continues where it was."""

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        seen = await version_now(api)
        names = []
        for number, fall in enumerate((double.drop_watches, None, double.drop_watches)):
            await api.create(ALL, host(f"h{number}"))
            events = api.watch(ALL, resourceVersion=seen)
            event = await anext(events)
            names.append(event["object"]["metadata"]["name"])
            seen = event["object"]["metadata"]["resourceVersion"]
            if fall:
                fall()
            else:
                await double.stop()
                with pytest.raises(aiohttp.ClientError):
                    await api.get(ALL)
                await double.start()
            with pytest.raises((aiohttp.ClientError, StopAsyncIteration)):
                await anext(events)
        assert names == ["h0", "h1", "h2"]
        assert len((await api.get(ALL))["items"]) == 3

    play(scene)


def test_faults() -> None:
    """A request fails as a test wants it, also after its write was stored."""

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        double.faults.pending += [
            Fault("list", answer=429, retry_after=7),
            Fault("create", "baremetalhosts", answer=503),
            Fault("create", answer=DROP, carry_out=True, wait=0.01),
        ]
        with pytest.raises(Answered) as caught:
            await api.get(ALL)
        assert (caught.value.code, caught.value.retry_after) == (429, "7")
        with pytest.raises(Answered) as caught:
            await api.create(ALL, host("a"))
        assert caught.value.code == 503
        assert (await api.get(ALL))["items"] == []
        with pytest.raises(aiohttp.ClientError):
            await api.create(ALL, host("a"))
        assert len((await api.get(ALL))["items"]) == 1
        with pytest.raises(ValueError, match="no such answer"):
            Fault(answer=200)

    play(scene)
