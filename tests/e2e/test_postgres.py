"""Servers that share a PostgreSQL: what one acknowledged the other knows, and a database that goes
away and comes back takes nothing along.
"""

import asyncio
import os
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.peer import Answer, Peer, differences
from tests.e2e.server import serve

SOAK = bool(os.environ.get("MOORAGE_SOAK"))
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
        """Wait until both servers say that they are."""
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


async def stock(peer: Peer, count: int, total: int) -> list[str]:
    """Make providers with one inventory each."""
    made = [str(uuid.uuid4()) for _ in range(count)]
    for one in made:
        answer = await peer.call("POST", "/resource_providers", {"name": one, "uuid": one})
        assert answer.status == 200, answer
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
        answer = await peer.call("PUT", f"/resource_providers/{one}/inventories", body)
        assert answer.status == 200, answer
    return made


def wish(amounts: dict[str, int], generation: int | None = None) -> dict[str, Any]:
    """Return the body that claims VCPUs by provider."""
    return {
        "allocations": {one: {"resources": {"VCPU": amount}} for one, amount in amounts.items()},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


async def offered(peer: Peer, provider: str) -> bool:
    """Is there a candidate on this provider?"""
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


@dataclass
class Book:
    """What the clients were told: who holds what, and the generation of each consumer."""

    held: dict[str, dict[str, int]] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)

    def sums(self, providers: list[str]) -> dict[str, int]:
        """Add up what is held, by provider."""
        found = dict.fromkeys(providers, 0)
        for amounts in self.held.values():
            for provider, amount in amounts.items():
                found[provider] += amount
        return found


class Client:
    """Claims, changes and gives back; a refusal for want of the database must have kept nothing."""

    def __init__(self, url: str, book: Book, providers: list[str], seed: int) -> None:
        self.peer = Peer(url)
        self.book = book
        self.providers = providers
        self.choice = random.Random(seed)
        self.mine: list[str] = []

    async def work(self, enough: asyncio.Event) -> None:
        """Go on until told to stop."""
        while not enough.is_set():
            answer = await self._one()
            self.book.statuses[answer.status] += 1
            assert answer.status in (204, 200, 503), answer
        await self.peer.close()

    async def _one(self) -> Answer:
        book = self.book
        action = self.choice.choice("nnrdc" if self.mine else "nc")
        if action == "c":
            query = "resources=VCPU:1&limit=1"
            return await self.peer.call("GET", f"/allocation_candidates?{query}")
        if action == "d":
            consumer = self.choice.choice(self.mine)
            answer = await self.peer.call("DELETE", f"/allocations/{consumer}")
            if answer.status == 204:
                self.mine.remove(consumer)
                del book.held[consumer], book.generations[consumer]
            return answer
        consumer = self.choice.choice(self.mine) if action == "r" else str(uuid.uuid4())
        picked = self.choice.sample(self.providers, 2)
        wanted = {provider: self.choice.randint(1, 5) for provider in picked}
        body = wish(wanted, book.generations.get(consumer))
        answer = await self.peer.call("PUT", f"/allocations/{consumer}", body)
        if answer.status == 204:
            if action == "n":
                self.mine.append(consumer)
            book.held[consumer] = wanted
            book.generations[consumer] = book.generations.get(consumer, 0) + 1
        return answer


async def compare(site: Site, book: Book, providers: list[str]) -> None:
    """Everything that was acknowledged is there, and nothing else, whichever server is asked."""
    expected = book.sums(providers)
    for url in site.urls:
        async with Peer(url) as peer:
            found: dict[str, dict[str, int]] = {}
            for provider in providers:
                path = f"/resource_providers/{provider}"
                used = (await peer.call("GET", f"{path}/usages")).json()["usages"]
                assert used == {"VCPU": expected[provider]}
                seen = (await peer.call("GET", f"{path}/allocations")).json()["allocations"]
                for consumer, held in seen.items():
                    found.setdefault(consumer, {})[provider] = held["resources"]["VCPU"]
                    assert held["consumer_generation"] == book.generations[consumer]
            assert found == book.held


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
        await compare(site, book, providers)
        await site.sound()

    play(scene)


def test_database_away_and_back(site: Site) -> None:
    """Without the database nothing is ready, all is 503; with it all goes on by itself."""

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
