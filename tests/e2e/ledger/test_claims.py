"""Concurrent claims against real servers: every claim gets a place while there are any."""

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.peer import Answer, Peer, differences
from tests.e2e.support.server import serve
from tests.support import cluster

CLAIMERS = 64


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "postgresql, two servers"])
def urls(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """Return the servers of an empty ledger: one, or two that share a database."""
    database: Path | str = tmp_path_factory.mktemp("claims") / "ledger"
    if request.param != "sqlite":
        database = cluster.fresh()
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serve(database, "--auth", "noauth2", "--no-access-log"))
            for _ in range(2 if "two" in request.param else 1)
        ]
        yield [server.url for server in servers]


class Crowd:
    """64 connections, shared out among the servers."""

    def __init__(self, urls: list[str]) -> None:
        self.peers = [Peer(urls[n % len(urls)]) for n in range(CLAIMERS)]

    async def bulk(self, providers: list[dict[str, Any]]) -> list[str]:
        """Describe providers; return the outcomes."""
        body = {"providers": providers, "create_vocabulary": True}
        answer = await self.peers[0].call("POST", "/v1/providers:bulk", body)
        assert answer.status == 200, answer
        return [each["outcome"] for each in answer.json()["results"]]

    async def rack(self, count: int, **totals: int) -> str:
        """Make providers of these totals, with a trait of their own; return it."""
        trait = f"CUSTOM_{uuid.uuid4().hex.upper()}"
        inventories = {name: {"total": total} for name, total in totals.items()}
        uuids = [str(uuid.uuid4()) for _ in range(count)]
        outcomes = await self.bulk(
            [
                {"uuid": each, "name": each, "inventories": inventories, "traits": [trait]}
                for each in uuids
            ]
        )
        assert outcomes == ["created"] * count
        return trait

    async def claims(self, *wishes: dict[str, Any]) -> list[Answer]:
        """Claim all of these, each on its connection, at the same time."""
        calls = (
            peer.call("POST", "/v1/claims", wish)
            for peer, wish in zip(self.peers, wishes, strict=False)
        )
        return await asyncio.gather(*calls)


def wish(trait: str, choose: str, **amounts: int) -> dict[str, Any]:
    """Return a claim on one of the providers with a trait."""
    group = {"resources": amounts, "required": [trait]}
    return {"groups": [group], "project_id": "p", "user_id": "u", "choose": choose}


def play(urls: list[str], scene: Callable[[Crowd], Awaitable[None]]) -> None:
    """Run concurrent work; afterwards the ledger must be sound."""

    async def main() -> None:
        crowd = Crowd(urls)
        try:
            await scene(crowd)
            assert await differences(crowd.peers[0]) == []
        finally:
            for peer in crowd.peers:
                await peer.close()

    asyncio.run(main())


def taken(answers: list[Answer]) -> list[str]:
    """Return the providers of all claims, each of which must have succeeded."""
    assert Counter(answer.status for answer in answers) == {201: len(answers)}, answers
    return [provider for answer in answers for provider in answer.json()["allocations"]]


@pytest.mark.parametrize("choose", ["pack", "spread", "random"])
def test_64_claims_at_once_on_64_one_unit_nodes(urls: list[str], choose: str) -> None:
    """Ten times: all succeed at the first try, each on its own node; the 65th is refused."""

    async def scene(crowd: Crowd) -> None:
        for _ in range(10):
            trait = await crowd.rack(64, VCPU=1)
            wishes = [wish(trait, choose, VCPU=1)] * 64
            assert len(set(taken(await crowd.claims(*wishes)))) == 64
            (late,) = await crowd.claims(wishes[0])
            assert (late.status, late.json()["code"]) == (409, "no_capacity")

    play(urls, scene)


def test_different_wishes_for_the_same_nodes(urls: list[str]) -> None:
    """64 questions that all differ prefer the same nodes: all are served at the first try."""

    async def scene(crowd: Crowd) -> None:
        trait = await crowd.rack(64, VCPU=1, DISK_GB=100)
        wishes = [wish(trait, "pack", VCPU=1, DISK_GB=n + 1) for n in range(64)]
        assert len(set(taken(await crowd.claims(*wishes)))) == 64

    play(urls, scene)


def test_exactly_as_many_as_there_is_room_for(urls: list[str]) -> None:
    """Of 64 claims for 40 places, exactly 40 succeed, while other consumers come and go."""

    async def scene(crowd: Crowd) -> None:
        rng = random.Random(5)
        for _ in range(10):
            trait = await crowd.rack(10, VCPU=4)
            chosen = [rng.choice(("pack", "spread", "random")) for _ in range(64)]
            answers = await crowd.claims(*(wish(trait, each, VCPU=1) for each in chosen))
            statuses = Counter(answer.status for answer in answers)
            assert statuses == {201: 40, 409: 24}, answers
            held = [answer.json() for answer in answers if answer.status == 201]
            nodes = Counter(node for each in held for node in each["allocations"])
            assert set(nodes.values()) == {4}
            gone = await asyncio.gather(
                *(
                    peer.call("DELETE", f"/allocations/{each['consumer']}")
                    for peer, each in zip(crowd.peers, held, strict=False)
                )
            )
            assert {answer.status for answer in gone} == {204}
            assert len(taken(await crowd.claims(*[wish(trait, "pack", VCPU=1)] * 40))) == 40

    play(urls, scene)
