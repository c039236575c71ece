"""Concurrent requests over HTTP to a real server: exactly one winner, and no losers while there is
room.
"""

import asyncio
import random
import subprocess
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.peer import Answer, Peer, differences
from tests.e2e.support.server import MOORAGE, serve
from tests.support import cluster

pytestmark = pytest.mark.thorough

ROUNDS = 100
CLAIMERS = 8


Urls = list[str]
"""The servers of one ledger."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "postgresql, two servers"])
def urls(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Urls]:
    """Return the servers of an empty ledger: one, or two that share a database."""
    database: Path | str = tmp_path_factory.mktemp("races") / "ledger"
    if request.param != "sqlite":
        database = cluster.fresh()
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serve(database, "--auth", "noauth2", "--no-access-log"))
            for _ in range(2 if "two" in request.param else 1)
        ]
        yield [server.url for server in servers]


class Crowd:
    """Some connections that are used at the same time, and one for everything else."""

    def __init__(self, urls: Urls) -> None:
        self.peer = Peer(urls[0])
        self.claimers = [Peer(urls[n % len(urls)]) for n in range(CLAIMERS)]

    async def close(self) -> None:
        for peer in (self.peer, *self.claimers):
            await peer.close()

    async def provider(self, **totals: int) -> str:
        """Make a provider with these inventories."""
        made = str(uuid.uuid4())
        answer = await self.peer.call("POST", "/resource_providers", {"name": made, "uuid": made})
        assert answer.status == 200, answer
        await self.offer(made, 0, **totals)
        return made

    async def offer(self, provider: str, generation: int, **totals: int) -> Answer:
        """Set a provider's totals to exactly these."""
        body = {
            "resource_provider_generation": generation,
            "inventories": {name: {"total": total} for name, total in totals.items()},
        }
        return await self.peer.call("PUT", f"/resource_providers/{provider}/inventories", body)

    async def used(self, provider: str) -> dict[str, int]:
        """Return the usages of a provider."""
        answer = await self.peer.call("GET", f"/resource_providers/{provider}/usages")
        found: dict[str, int] = answer.json()["usages"]
        return found


def wish(*providers: str, generation: int | None = None) -> dict[str, Any]:
    """Return the body that claims one VCPU on each provider, in this order of keys."""
    return {
        "allocations": {provider: {"resources": {"VCPU": 1}} for provider in providers},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def play(urls: Urls, scene: Callable[[Crowd], Awaitable[None]]) -> None:
    """Run a scene with a crowd; at the end every server's check must find nothing."""

    async def whole() -> None:
        crowd = Crowd(urls)
        try:
            await scene(crowd)
            for peer in crowd.claimers[: len(urls)]:
                assert await differences(peer) == []
        finally:
            await crowd.close()

    asyncio.run(whole())


def test_one_winner(urls: Urls) -> None:
    """Eight clients claim the only unit of a provider: one gets it, seven get a 409, 100 times."""

    async def scene(crowd: Crowd) -> None:
        for _ in range(ROUNDS):
            target = await crowd.provider(VCPU=1)
            answers = await asyncio.gather(
                *(
                    peer.call("PUT", f"/allocations/{uuid.uuid4()}", wish(target))
                    for peer in crowd.claimers
                )
            )
            assert Counter(a.status for a in answers) == {204: 1, 409: CLAIMERS - 1}
            assert all(b"would exceed the capacity" in a.body for a in answers if a.status == 409)
            assert await crowd.used(target) == {"VCPU": 1}
            assert await differences(crowd.peer) == []

    play(urls, scene)


def test_one_winner_by_post(urls: Urls) -> None:
    """The same for POST with two consumers each, of which both or none get their unit."""

    async def scene(crowd: Crowd) -> None:
        for _ in range(ROUNDS // 4):
            target = await crowd.provider(VCPU=3)
            bodies = [
                {str(uuid.uuid4()): wish(target), str(uuid.uuid4()): wish(target)}
                for _ in crowd.claimers
            ]
            answers = await asyncio.gather(
                *(
                    peer.call("POST", "/allocations", body)
                    for peer, body in zip(crowd.claimers, bodies, strict=True)
                )
            )
            assert Counter(a.status for a in answers) == {204: 1, 409: CLAIMERS - 1}
            assert await crowd.used(target) == {"VCPU": 2}
            assert await differences(crowd.peer) == []

    play(urls, scene)


def test_one_winner_of_a_generation(urls: Urls) -> None:
    """Eight write with the same generation, of a consumer or of a provider: one is first."""

    async def scene(crowd: Crowd) -> None:
        for n in range(ROUNDS // 4):
            target, consumer = await crowd.provider(VCPU=100), uuid.uuid4()
            expected = n % 2 or None
            if expected:
                answer = await crowd.peer.call("PUT", f"/allocations/{consumer}", wish(target))
                assert answer.status == 204
            body = wish(target, generation=expected)
            answers = await asyncio.gather(
                *(p.call("PUT", f"/allocations/{consumer}", body) for p in crowd.claimers)
            )
            assert Counter(a.status for a in answers) == {204: 1, 409: CLAIMERS - 1}
            path = f"/resource_providers/{target}/traits"
            body = {"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 2 + (n % 2)}
            answers = await asyncio.gather(*(p.call("PUT", path, body) for p in crowd.claimers))
            assert Counter(a.status for a in answers) == {200: 1, 409: CLAIMERS - 1}
            assert all(
                a.json()["errors"][0]["code"] == "placement.concurrent_update"
                for a in answers
                if a.status == 409
            )
            assert await differences(crowd.peer) == []

    play(urls, scene)


def test_no_conflict_while_there_is_room(urls: Urls) -> None:
    """Eight clients claim one unit of a shared and one of their own provider, in both key orders,
    while others release and rewrite inventories: there is room for all, so none is refused.
    """

    async def scene(crowd: Crowd) -> None:
        shared = await crowd.provider(VCPU=2 * CLAIMERS)
        privates = [await crowd.provider(VCPU=2) for _ in crowd.claimers]
        held: list[str] = []

        async def claim(n: int, consumer: str, private_first: bool) -> None:
            order = [privates[n], shared] if private_first else [shared, privates[n]]
            answer = await crowd.claimers[n].call("PUT", f"/allocations/{consumer}", wish(*order))
            assert answer.status == 204, answer

        async def give_back(peer: Peer, consumers: list[str]) -> None:
            for consumer in consumers:
                answer = await peer.call("DELETE", f"/allocations/{consumer}")
                assert answer.status == 204, answer

        async def rewrite(peer: Peer, provider: str, total: int) -> int:
            """Write an inventory, again after each conflict; return the number of tries."""
            path = f"/resource_providers/{provider}/inventories/VCPU"
            for tries in range(1, 200):
                generation = (await peer.call("GET", path)).json()["resource_provider_generation"]
                body = {"resource_provider_generation": generation, "total": total}
                answer = await peer.call("PUT", path, body)
                if answer.status == 200:
                    return tries
                assert answer.status == 409, answer
            raise AssertionError("never got through")

        releaser, writer = Peer(urls[0]), Peer(urls[-1])
        for turn in range(ROUNDS):
            consumers = [str(uuid.uuid4()) for _ in crowd.claimers]
            orders = [random.random() < 0.5 if turn % 3 else bool(turn % 2) for _ in consumers]
            rewritten = random.choice([shared, *privates])
            await asyncio.gather(
                *(claim(n, consumer, orders[n]) for n, consumer in enumerate(consumers)),
                give_back(releaser, held),
                rewrite(writer, rewritten, 2 if rewritten in privates else 2 * CLAIMERS),
            )
            held = consumers
            assert await crowd.used(shared) == {"VCPU": CLAIMERS}
            assert await differences(crowd.peer) == []
        await give_back(releaser, held)
        await releaser.close()
        await writer.close()

    play(urls, scene)


@pytest.mark.parametrize("way", ["PUT", "POST", "reshaper"])
def test_an_unknown_provider_leaves_no_consumer(urls: Urls, way: str) -> None:
    """A claim on an unknown provider is 400; corrected, with generation null again, it is fine."""

    async def scene(crowd: Crowd) -> None:
        known, consumer = await crowd.provider(VCPU=4), str(uuid.uuid4())
        inventories = {
            known: {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 4}}}
        }

        async def send(*providers: str) -> Answer:
            if way == "PUT":
                return await crowd.peer.call("PUT", f"/allocations/{consumer}", wish(*providers))
            body: dict[str, Any] = {consumer: wish(*providers)}
            if way == "POST":
                return await crowd.peer.call("POST", "/allocations", body)
            reshape = {"inventories": inventories, "allocations": body}
            return await crowd.peer.call("POST", "/reshaper", reshape, roles="service")

        answer = await send(known, str(uuid.uuid4()))
        assert answer.status == 400, answer
        assert b"does not exist" in answer.body
        seen = await crowd.peer.call("GET", f"/allocations/{consumer}")
        assert seen.json() == {"allocations": {}}
        assert await crowd.used(known) == {"VCPU": 0}
        assert (await send(known)).status == 204
        assert await crowd.used(known) == {"VCPU": 1}

    play(urls, scene)


def test_the_command_finds_nothing_either(urls: Urls, tmp_path: Path) -> None:
    """`moorage db check` asks the running server and reports no differences."""
    done = subprocess.run(
        [*MOORAGE, "db", "check", "--url", urls[-1], "--token", "admin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "0 differences\n")
