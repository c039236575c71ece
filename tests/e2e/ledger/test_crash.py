"""Kills a server with 64 concurrent clients: everything acknowledged is stored, completely.

The same database is used throughout. `MOORAGE_SEED` repeats a run's choices; what the kill
interrupts depends on the machine. `MOORAGE_SOAK` kills five times as often.
"""

import asyncio
import os
import random
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.peer import NoAnswer, Peer, differences
from tests.e2e.support.server import Server, serve
from tests.support import cluster

pytestmark = pytest.mark.thorough

KILLS = 10 * (5 if os.environ.get("MOORAGE_SOAK") else 1)
CLIENTS = 64
PROVIDERS = [f"{n:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for n in range(6)]
CLASSES = ["VCPU", "MEMORY_MB"]

Held = dict[str, dict[str, int]]
"""Amounts by provider and resource class; empty: the consumer holds nothing."""


@dataclass
class Book:
    """What the clients know: every acknowledged state, and what was asked and not answered."""

    held: dict[str, Held] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    asked: dict[str, Held] = field(default_factory=dict)
    acknowledged: int = 0

    def settle(self, found: dict[str, Held]) -> None:
        """Compare with the stored state after a restart, then take that as known.

        Unanswered writes may be stored or not, but never in part; all else must be as acknowledged.
        """
        for consumer in self.held.keys() | self.asked.keys() | found.keys():
            is_there = found.get(consumer, {})
            allowed = [self.held.get(consumer, {})]
            if consumer in self.asked:
                allowed.append(self.asked[consumer])
            assert is_there in allowed, f"consumer {consumer}: {is_there}, not one of {allowed}"
        self.held = found
        self.asked.clear()


class Client:
    """Claims, changes and gives back, one after the other, until the connection breaks."""

    def __init__(self, url: str, book: Book, choice: random.Random, mine: list[str]) -> None:
        self.peer = Peer(url)
        self.book = book
        self.choice = choice
        self.mine = mine

    async def work(self, enough: asyncio.Event, target: int) -> None:
        """Continue until the server is gone; signal when `target` writes are acknowledged."""
        try:
            while True:
                await self._one()
                self.book.acknowledged += 1
                if self.book.acknowledged >= target:
                    enough.set()
        except (NoAnswer, ConnectionError):
            pass  # killed
        finally:
            await self.peer.close()

    async def _one(self) -> None:
        book = self.book
        there = [consumer for consumer in self.mine if consumer in book.held]
        action = self.choice.choice("nnnrrd") if there else "n"
        if action == "d":
            consumer = self.choice.choice(there)
            book.asked[consumer] = {}
            answer = await self.peer.call("DELETE", f"/allocations/{consumer}")
        else:
            consumer = self.choice.choice(there) if action == "r" else self._new()
            wanted = {
                provider: {name: self.choice.randint(1, 9) for name in CLASSES}
                for provider in self.choice.sample(PROVIDERS, self.choice.randint(1, 3))
            }
            book.asked[consumer] = wanted
            answer = await self.peer.call("PUT", f"/allocations/{consumer}", self._body(consumer))
        assert answer.status == 204, answer
        now = book.asked.pop(consumer)
        if now:
            book.held[consumer] = now
            book.generations[consumer] = book.generations.get(consumer, 0) + 1
        else:
            del book.held[consumer], book.generations[consumer]

    def _new(self) -> str:
        number = self.choice.getrandbits(128)
        text = f"{number:032x}"
        consumer = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        self.mine.append(consumer)
        return consumer

    def _body(self, consumer: str) -> dict[str, Any]:
        wanted = self.book.asked[consumer]
        return {
            "allocations": {provider: {"resources": of} for provider, of in wanted.items()},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": self.book.generations.get(consumer),
            "consumer_type": "INSTANCE",
        }


async def stock(url: str) -> None:
    """Make the providers, with room for everything that will ever be asked."""
    peer = Peer(url)
    for uuid in PROVIDERS:
        made = {"name": uuid, "uuid": uuid}
        assert (await peer.call("POST", "/resource_providers", made)).status == 200
        body = {
            "resource_provider_generation": 0,
            "inventories": {name: {"total": 10_000_000} for name in CLASSES},
        }
        path = f"/resource_providers/{uuid}/inventories"
        assert (await peer.call("PUT", path, body)).status == 200
    await peer.close()


async def look(url: str, book: Book) -> None:
    """Compare a restarted server with the book: every consumer, every sum, its own check."""
    peer = Peer(url)
    assert await differences(peer) == []
    found: dict[str, Held] = {}
    generations: dict[str, int] = {}
    for uuid in PROVIDERS:
        path = f"/resource_providers/{uuid}"
        seen = (await peer.call("GET", f"{path}/allocations")).json()["allocations"]
        sums = dict.fromkeys(CLASSES, 0)
        for consumer, held in seen.items():
            found.setdefault(consumer, {})[uuid] = held["resources"]
            generations[consumer] = held["consumer_generation"]
            for name, amount in held["resources"].items():
                sums[name] += amount
        assert (await peer.call("GET", f"{path}/usages")).json()["usages"] == sums
    for consumer, generation in book.generations.items():
        if consumer not in book.asked:
            assert generations[consumer] == generation
    book.settle(found)
    book.generations = generations
    await peer.close()


async def crowd(server: Server, book: Book, choice: random.Random, mine: list[list[str]]) -> None:
    """Let 64 clients work until some hundred writes are acknowledged, then kill the server."""
    enough = asyncio.Event()
    target = book.acknowledged + choice.randint(100, 600)
    clients = [Client(server.url, book, choice, mine[n]) for n in range(CLIENTS)]
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.work(enough, target))
        await enough.wait()
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_killed_again_and_again(tmp_path: Path, engine: str) -> None:
    """After each kill the next start finds every acknowledged write and nothing half done."""
    database = cluster.fresh() if engine == "postgresql" else tmp_path / "ledger"
    seed = int(os.environ.get("MOORAGE_SEED", random.randrange(10**9)))
    choice, book = random.Random(seed), Book()
    mine: list[list[str]] = [[] for _ in range(CLIENTS)]
    try:
        for kill in range(KILLS + 1):
            with serve(database, "--auth", "noauth2", "--no-access-log") as server:
                if kill == 0:
                    asyncio.run(stock(server.url))
                asyncio.run(look(server.url, book))
                if kill < KILLS:
                    asyncio.run(crowd(server, book, choice, mine))
    except BaseException as error:
        error.add_note(f"MOORAGE_SEED={seed}, in life {kill}")
        raise
    assert book.acknowledged >= 100 * KILLS
