"""Lists whose objects are large, or whose pages never end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.integrations.kubernetes import api as kubernetes
from moorage.integrations.kubernetes.api import Connection, KubernetesApi, KubernetesError
from tests.support.kubernetes_client import host, hosts_in
from tests.support.kubernetes_double.server import KubernetesDouble

HOSTS = hosts_in("metal3")
PAGE_BYTES = 20_000


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([10, 1_000, 15_000]), max_size=12))
def test_large_objects(sizes: list[int]) -> None:
    """However large the objects are of which each fits into a page, a list has all of them: people
    who may write a few hosts cannot make the list of all hosts fail.
    """

    async def run() -> None:
        async with KubernetesDouble() as double, KubernetesApi(Connection(double.url)) as api:
            for number, size in enumerate(sizes):
                large = host(f"a{number:03}", namespace="metal3", annotations={"large": "x" * size})
                double.put(large)
            found = await api.all(HOSTS)
            assert [one["metadata"]["name"] for one in found] == [
                f"a{number:03}" for number in range(len(sizes))
            ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kubernetes, "PAGE_BYTES_MAX", PAGE_BYTES)
        asyncio.run(run())


def test_an_object_that_is_too_large() -> None:
    """If not even one object fits, the error says so."""

    async def run() -> None:
        async with KubernetesDouble() as double, KubernetesApi(Connection(double.url)) as api:
            double.put(host("a", namespace="metal3", annotations={"large": "x" * PAGE_BYTES}))
            with pytest.raises(KubernetesError, match="longer than"):
                await api.all(HOSTS)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kubernetes, "PAGE_BYTES_MAX", PAGE_BYTES)
        asyncio.run(run())


@asynccontextmanager
async def endless() -> AsyncIterator[KubernetesApi]:
    """Yield a client of a server that always has another page, without objects."""
    numbers = count(1)

    async def answer(_: web.Request) -> web.Response:
        metadata: dict[str, Any] = {"continue": f"page-{next(numbers)}", "resourceVersion": "1"}
        return web.json_response({"items": [], "metadata": metadata})

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with KubernetesApi(Connection(url)) as api:
            yield api
    finally:
        await runner.cleanup()


def test_a_list_that_never_ends() -> None:
    """A server that always names another page gets no request for ever."""

    async def run() -> None:
        async with endless() as api:
            with pytest.raises(KubernetesError, match="repeats itself"):
                await asyncio.wait_for(api.all(HOSTS), 20)

    asyncio.run(run())
