"""Servers that share a PostgreSQL: what one acknowledged the other knows, and a database that goes
away and comes back takes nothing along.
"""

import asyncio
import signal
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.support.load import Book, Client, compare, stock, wish
from tests.e2e.support.peer import NoAnswer, Peer, differences
from tests.e2e.support.server import serve
from tests.support.cluster import Cluster
from tests.support.seeds import SOAK

pytestmark = pytest.mark.thorough

PAIRS = 10_000 if SOAK else 2_000
RESTARTS = 10
CLIENTS = 32
PROVIDERS = 8


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a cluster that may be stopped without disturbing anybody else."""
    with Cluster() as started:
        yield started


@dataclass
class Site:
    """Two servers on one database of a cluster."""

    cluster: Cluster
    urls: list[str]

    async def ready(self) -> None:
        """Wait until both servers are ready."""
        for url in self.urls:
            async with Peer(url) as peer:
                async with asyncio.timeout(30):
                    while (await peer.call("GET", "/readyz")).status != 200:
                        pass

    async def sound(self) -> None:
        """Both servers' own checks find nothing."""
        for url in self.urls:
            async with Peer(url) as peer:
                assert await differences(peer) == []


@pytest.fixture
def site(cluster: Cluster) -> Iterator[Site]:
    """Return two servers on an empty ledger."""
    database = cluster.create(f"site_{uuid.uuid4().hex}")
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serve(database, "--auth", "noauth2", "--no-access-log"))
            for _ in range(2)
        ]
        yield Site(cluster, [server.url for server in servers])


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Run a scene to its end."""

    async def whole() -> None:
        await scene()

    asyncio.run(whole())


async def offered(peer: Peer, provider: str) -> bool:
    """Return whether this provider is a candidate."""
    answer = await peer.call(
        "GET", f"/allocation_candidates?resources=VCPU:1&in_tree={provider}&limit=10"
    )
    assert answer.status == 200, answer
    return bool(answer.json()["allocation_requests"])


def test_the_other_server_knows_at_once(site: Site) -> None:
    """What one acknowledged, a claim or its end, is in the very next candidates of the other."""

    async def pairs(one: Peer, other: Peer, provider: str, count: int) -> None:
        for _ in range(count // 2):
            path = f"/allocations/{uuid.uuid4()}"
            assert (await one.call("PUT", path, wish({provider: 1}))).status == 204
            assert not await offered(other, provider)
            assert (await other.call("DELETE", path)).status == 204
            assert await offered(one, provider)
            one, other = other, one

    async def scene() -> None:
        async with Peer(site.urls[0]) as peer:
            providers = await stock(peer, 4, 1)
        peers = [(Peer(site.urls[n % 2]), Peer(site.urls[1 - n % 2])) for n in range(4)]
        async with asyncio.TaskGroup() as group:
            for provider, (one, other) in zip(providers, peers, strict=True):
                group.create_task(pairs(one, other, provider, PAIRS // 4))
        for two in peers:
            for peer in two:
                await peer.close()
        await site.sound()

    play(scene)


def test_restarted_under_load_ten_times(site: Site) -> None:
    """PostgreSQL crashes and recovers under load: clients see success or 503, and it was so."""

    async def scene() -> None:
        async with Peer(site.urls[0]) as peer:
            providers = await stock(peer, PROVIDERS, 10_000_000)
        book, enough = Book(), asyncio.Event()
        clients = [Client(site.urls[n % 2], book, providers, n) for n in range(CLIENTS)]
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.work(enough))
            for _ in range(RESTARTS):
                target = book.statuses[204] + 300
                async with Peer(site.urls[0]) as peer:
                    while book.statuses[204] < target:
                        await peer.call("GET", "/healthz")
                await asyncio.to_thread(site.cluster.restart, "immediate")
            await site.ready()
            enough.set()
        assert book.statuses[204] >= 300 * RESTARTS
        assert book.statuses[503] > 0
        await compare(site.urls, book, providers)
        await site.sound()

    play(scene)


def test_database_away_and_back(site: Site) -> None:
    """Without the database no server is ready and all answer 503; with it, all recover."""

    async def scene() -> None:
        async with Peer(site.urls[0]) as peer, Peer(site.urls[1]) as other:
            (provider,) = await stock(peer, 1, 8)
            consumer = f"/allocations/{uuid.uuid4()}"
            asks: list[tuple[str, str, Any]] = [
                ("GET", "/readyz", None),
                ("PUT", consumer, wish({provider: 1})),
                ("GET", consumer, None),
                ("GET", "/allocation_candidates?resources=VCPU:1", None),
                ("GET", f"/resource_providers/{provider}", None),
            ]
            site.cluster.stop("immediate")
            try:
                for one in (peer, other):
                    for ask in asks:
                        assert (await one.call(*ask)).status == 503, ask
                    assert (await one.call("GET", "/healthz")).status == 200
            finally:
                site.cluster.start()
            await site.ready()
            assert (await other.call(*asks[1])).status == 204
            for ask in asks[2:]:
                assert (await peer.call(*ask)).status == 200, ask
        await site.sound()

    play(scene)


def test_one_of_two_is_killed(cluster: Cluster) -> None:
    """A server killed in the middle of a batch blocks no other, and nothing is half done."""
    database = cluster.create(f"site_{uuid.uuid4().hex}")
    options = ("--auth", "noauth2", "--no-access-log")

    async def until_gone(client: Client) -> None:
        with suppress(NoAnswer, ConnectionError):
            await client.work(asyncio.Event())
        await client.peer.close()

    async def scene(urls: list[str], kill: Callable[[], Any]) -> None:
        async with Peer(urls[0]) as peer:
            providers = await stock(peer, 2, 10_000_000)
        book, lost, enough = Book(), Book(), asyncio.Event()
        staying = [Client(urls[0], book, providers, n) for n in range(CLIENTS)]
        going = [Client(urls[1], lost, providers, CLIENTS + n) for n in range(CLIENTS)]
        async with asyncio.TaskGroup() as group, Peer(urls[0]) as peer:
            for client in staying:
                group.create_task(client.work(enough))
            for client in going:
                group.create_task(until_gone(client))
            while lost.statuses[204] < 500:
                await peer.call("GET", "/healthz")
            kill()
            target = book.statuses[204] + 500
            async with asyncio.timeout(10):
                while book.statuses[204] < target:
                    await peer.call("GET", "/healthz")
            enough.set()
            await asyncio.gather(*(client.peer.close() for client in going))
        assert set(book.statuses) <= {200, 204}
        async with Peer(urls[0]) as peer:
            assert await differences(peer) == []
            for consumer, held in book.held.items():
                seen = (await peer.call("GET", f"/allocations/{consumer}")).json()
                found = seen["allocations"].items()
                assert {at: on["resources"]["VCPU"] for at, on in found} == held

    with serve(database, *options) as one, serve(database, *options) as other:
        urls = [one.url, other.url]
        play(lambda: scene(urls, lambda: other.stop(signal.SIGKILL)))
