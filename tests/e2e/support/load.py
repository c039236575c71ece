"""Clients that claim, change and release without a pause, and remember the answers."""

import asyncio
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.support.peer import Answer, Peer


async def stock(peer: Peer, count: int, total: int) -> list[str]:
    """Create providers with one inventory each."""
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


@dataclass
class Book:
    """What was acknowledged: the allocations, and the generation of each consumer."""

    held: dict[str, dict[str, int]] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)

    def sums(self, providers: list[str]) -> dict[str, int]:
        """Add up the allocations by provider."""
        found = dict.fromkeys(providers, 0)
        for amounts in self.held.values():
            for provider, amount in amounts.items():
                found[provider] += amount
        return found


class Client:
    """Claims, changes and releases; a request that got 503 must have changed nothing."""

    def __init__(self, url: str, book: Book, providers: list[str], seed: int) -> None:
        self.peer = Peer(url)
        self.book = book
        self.providers = providers
        self.choice = random.Random(seed)
        self.mine: list[str] = []

    async def work(self, enough: asyncio.Event) -> None:
        """Continue until stopped."""
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


async def compare(urls: list[str], book: Book, providers: list[str]) -> None:
    """Everything that was acknowledged is stored, and nothing else, at each server."""
    expected = book.sums(providers)
    for url in urls:
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
