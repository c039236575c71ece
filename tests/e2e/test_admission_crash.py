"""Servers killed among clients that ask, hold, give back, and go away without a word.

Whatever happens, what the change rows tell must never be more than the limit, tokens only rise,
nothing that was acknowledged is lost, a repeated request has one lease, and at the end every unit
comes back. `MOORAGE_SEED` repeats a run's choices; what a kill interrupts is up to the machine.
"""

import asyncio
import os
import random
import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import cluster
from tests.e2e.peer import NoAnswer, Peer, differences
from tests.e2e.server import Server, serve

KILLS = 4
CLIENTS = 24
LIMIT = 5
GRANTS_PER_ROUND = 50
TTL = 1.0
POOL = "ci/install"
NOAUTH = ("--auth", "noauth2")
Token = tuple[int, ...]


@dataclass
class Book:
    """What clients know: who was granted what, and what they have asked without an answer."""

    granted: dict[str, tuple[str, str]] = field(default_factory=dict)
    """(lease, token) by key."""
    open_keys: dict[int, str] = field(default_factory=dict)
    """The key of each client whose request was not answered."""
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    target: int = 0


def token_of(text: str) -> Token:
    """Return a token as numbers, which can be compared."""
    return tuple(map(int, text.split(".")))


def wish(key: str, units: int = 1) -> dict[str, Any]:
    """Ask for units with a short TTL."""
    return {"needs": [{"pool": POOL, "units": units}], "key": key, "ttl": TTL}


class Client:
    """Asks, waits, holds and gives back, one after the other, until its server is gone."""

    def __init__(self, number: int, url: str, book: Book, choice: random.Random) -> None:
        self.number = number
        self.peer = Peer(url)
        self.book = book
        self.choice = choice

    async def work(self) -> None:
        """Go on until the server is gone; first repeat what was not answered."""
        try:
            while not self.book.enough.is_set():
                await self._one()
        except (NoAnswer, ConnectionError):
            pass  # killed
        finally:
            await self.peer.close()

    async def _one(self) -> None:
        book = self.book
        key = book.open_keys.setdefault(self.number, f"{self.number}-{self.choice.random()}")
        units = 2 if key.endswith(("1", "2")) else 1
        answer = await self.peer.call("POST", "/v1/leases?wait=3", wish(key, units))
        assert answer.status in (200, 201, 202), answer
        lease = answer.json()
        if lease["state"] == "granted":
            known = book.granted.setdefault(key, (lease["id"], lease["token"]))
            assert known == (lease["id"], lease["token"]), "a repeated request has another lease"
            if len(book.granted) >= book.target:
                book.enough.set()
        if lease["state"] == "waiting":
            return  # with the same key, so that the place in line is kept
        if self.choice.random() < 0.9:
            address = f"/v1/leases/{lease['id']}?token={lease['token']}"
            if lease["state"] == "granted":
                released = await self.peer.call("DELETE", address)
                assert released.status == 200, released
        del book.open_keys[self.number]


async def history(url: str) -> list[list[dict[str, Any]]]:
    """Return what every revision has told of leases, from the first."""
    told: dict[int, list[dict[str, Any]]] = {}
    async with Peer(url) as peer:
        after = "1.0"
        while True:
            answer = await peer.call(
                "GET", f"/v1/watch?after={after}&kinds=lease&wait=0&limit=1000"
            )
            assert answer.status == 200, answer
            page = answer.json()
            for change in page["changes"]:
                told.setdefault(change["revision"], []).append(change["value"])
            if page["next"] == after:
                return [told[revision] for revision in sorted(told)]
            after = page["next"]


def audit(revisions: list[list[dict[str, Any]]], book: Book) -> int:
    """Check the whole history; return the most units that were ever held at once."""
    held: dict[str, int] = {}
    states: dict[str, set[str]] = {}
    order: list[str] = []
    most = 0
    for leases in revisions:
        for lease in leases:
            states.setdefault(lease["id"], set()).add(lease["state"])
            units = sum(need["units"] for need in lease["needs"])
            if lease["state"] == "granted":
                if lease["id"] not in held:
                    order.append(lease["id"])
                held[lease["id"]] = units
            else:
                held.pop(lease["id"], None)
        most = max(most, sum(held.values()))
    assert most <= LIMIT, f"{most} units were held at once"
    lost = [
        key for key, (lease, _) in book.granted.items() if "granted" not in states.get(lease, ())
    ]
    assert not lost, f"acknowledged and lost: {lost}"
    tokens = sorted(token_of(token) for _, token in book.granted.values())
    assert len(set(tokens)) == len(tokens), "a token was given out twice"
    return most


async def everything_comes_back(url: str, book: Book) -> None:
    """Whoever wants all units at once gets them: no slot has leaked, whoever died with one."""
    async with Peer(url) as peer:
        answer = await peer.call("POST", "/v1/leases?wait=50", wish("all of it", LIMIT))
        assert answer.status == 201, answer
        last = answer.json()
        assert all(token_of(last["token"]) > token_of(token) for _, token in book.granted.values())
        for lease, token in list(book.granted.values())[-10:]:
            renewed = await peer.call("POST", f"/v1/leases/{lease}/renew", {"token": token})
            assert renewed.status == 409, renewed
        pool = (await peer.call("GET", f"/v1/pools/{POOL}")).json()
        assert (pool["occupied"], pool["waiting"]) == (LIMIT, 0)


async def one_round(
    servers: list[Server], book: Book, choice: random.Random, victim: Server
) -> None:
    """Let clients work; then kill a server in the middle of it."""
    book.target = len(book.granted) + GRANTS_PER_ROUND
    book.enough.clear()
    urls = [server.url for server in servers]
    clients = [
        asyncio.create_task(Client(n, urls[n % len(urls)], book, choice).work())
        for n in range(CLIENTS)
    ]
    await book.enough.wait()
    victim.stop(signal.SIGKILL)
    # The clients of the others finish what they are at.
    await asyncio.gather(*clients)


async def play(database: str, count: int, choice: random.Random) -> None:
    """Kill one server after the other; then look at everything that was told."""
    book = Book()
    with ExitStack() as stack:
        running = [stack.enter_context(serve(database, *NOAUTH)) for _ in range(count)]
        async with Peer(running[0].url) as peer:
            made = await peer.call("PUT", f"/v1/pools/{POOL}", {"limit": LIMIT, "pacing": None})
            assert made.status in (200, 201), made
        for n in range(KILLS):
            victim = n % count
            await one_round(running, book, choice, running[victim])
            running[victim] = stack.enter_context(serve(database, *NOAUTH))
        url = running[0].url
        await everything_comes_back(url, book)
        most = audit(await history(url), book)
        async with Peer(url) as peer:
            assert await differences(peer) == []
    assert most >= LIMIT - 1, "the pool was never full: nothing was tested"


@pytest.mark.parametrize("servers", [1, 2])
def test_killed_servers_keep_the_limit(servers: int, tmp_path: Path) -> None:
    """One server on SQLite, or two on PostgreSQL, killed again and again among their clients."""
    database = cluster.fresh() if servers > 1 else f"sqlite:///{tmp_path}/m.sqlite"
    seed = int(os.environ.get("MOORAGE_SEED", random.SystemRandom().getrandbits(32)))
    try:
        asyncio.run(play(database, servers, random.Random(seed)))
    except AssertionError as error:
        error.add_note(f"MOORAGE_SEED={seed}")
        raise
