"""A connection is cut during COMMIT: each step of a lease takes effect exactly once.

Either PostgreSQL has committed and its answer is lost, or it never received the COMMIT; the client
cannot distinguish them. Two real servers: one with such a connection, and one that is not affected.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.e2e.support.leasing import (
    NOAUTH,
    Book,
    asked,
    audit,
    called,
    everything_comes_back,
    history,
    pool_made,
    token_of,
    wish,
)
from tests.e2e.support.peer import Answer, Peer, differences
from tests.e2e.support.server import serve
from tests.store.postgres.cutting_relay import Relay
from tests.support import cluster


def lasting(key: str) -> dict[str, Any]:
    """Ask for a unit; nothing ends by itself."""
    return wish(key, ttl=60.0, patience=60.0)


class Site:
    """Two servers on one database, and the relay before one of them.

    `heard`: has PostgreSQL heard of the commits that are lost?
    """

    def __init__(self, relay: Relay, unlucky: str, lucky: str) -> None:
        self.relay = relay
        self.heard = True
        self.unlucky, self.lucky = unlucky, lucky
        self.book = Book()

    async def lost(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call of which the server commits something, and cut the line in that."""
        self.relay.heal()
        if self.heard:
            self.relay.commit_answers_to_drop = 1
        else:
            self.relay.commits_to_drop = 1
        answer = await call()
        assert self.relay.cut.is_set(), "no commit was lost: nothing was tested"
        return answer

    async def waiter(self, url: str, key: str) -> asyncio.Task[Any]:
        """Begin to wait in line, and be in it."""
        before = (await self.pool())["waiting"]
        task = asyncio.create_task(asked(url, lasting(key), 50))
        while (await self.pool())["waiting"] == before:
            assert not task.done()
        return task

    async def pool(self) -> Any:
        """Return the pool as the other server shows it."""
        return (await called(self.lucky, "GET", "/v1/pools/ci/install")).json()

    async def freed(self, lease: dict[str, Any]) -> Answer:
        """Give a lease back at the server with the bad line."""
        path = f"/v1/leases/{lease['id']}?token={lease['token']}"
        return await called(self.unlucky, "DELETE", path)


def play(scene: Callable[[Site], Awaitable[None]], *, first: bool = True) -> None:
    """Run a scene with commits that are heard of, and again with others, at the same servers.

    `first`: whether the first one is heard of.

    Then everything must be consistent, and every unit come back.
    """

    async def whole(folder: Path, stack: ExitStack) -> None:
        shared = cluster.shared()
        url = cluster.fresh()
        async with Relay(folder, shared.folder) as relay:
            cut = f"postgresql://moorage@/{cluster.database_of(url)}?host={folder}"
            start = asyncio.to_thread(serve, cut, *NOAUTH)
            unlucky = stack.enter_context(await start)
            lucky = stack.enter_context(serve(url, *NOAUTH))
            await pool_made(lucky.url, limit=1)
            site = Site(relay, unlucky.url, lucky.url)
            for site.heard in (first, not first):
                await scene(site)
            await everything_comes_back(site.lucky, site.book, limit=1)
            assert audit(await history(site.lucky), site.book, limit=1) == 1
            for one in (site.lucky, site.unlucky):
                async with Peer(one) as peer:
                    assert await differences(peer) == []
            await asyncio.to_thread(unlucky.stop)
        said = "".join(unlucky.said)
        assert "was committed" in said and "was not committed" in said, "nothing was tested"
        assert "Traceback" not in said

    with TemporaryDirectory(prefix="moorage-pg-") as folder, ExitStack() as stack:
        asyncio.run(whole(Path(folder), stack))


def test_a_grant_whose_commit_breaks() -> None:
    """The caller has its lease; a repeated request, at either server, returns the same lease."""

    async def scene(site: Site) -> None:
        key = f"a, {site.heard}"
        body = lasting(key)
        lease = await site.lost(lambda: asked(site.unlucky, body))
        assert lease["state"] == "granted"
        site.book.granted[key] = (lease["id"], lease["token"])
        for url in (site.lucky, site.unlucky):
            again = await asked(url, body)
            assert (again["id"], again["token"]) == (lease["id"], lease["token"])
        assert (await site.pool())["occupied"] == 1
        assert (await site.freed(lease)).status == 200

    play(scene)


@pytest.mark.parametrize("beside", [False, True])
def test_a_release_whose_commit_breaks(beside: bool) -> None:
    """The lease has ended, and that commit grants the next ticket, whichever server it waits at."""

    async def scene(site: Site) -> None:
        for n in range(3):
            key, following = f"a{n}, {site.heard}", f"b{n}, {site.heard}"
            first = await asked(site.unlucky, lasting(key))
            site.book.granted[key] = (first["id"], first["token"])
            waiting = await site.waiter(site.lucky if beside else site.unlucky, following)
            released = await site.lost(partial(site.freed, first))
            assert (released.status, released.json()["cause"]) == (200, "released")
            site.book.released.add(key)
            second = await waiting
            assert second["state"] == "granted"
            site.book.granted[following] = (second["id"], second["token"])
            assert (await site.freed(first)).json()["cause"] == "released"
            assert (await site.pool())["occupied"] == 1
            assert (await site.freed(second)).status == 200

    play(scene, first=False)


def test_a_retry_whose_commit_breaks() -> None:
    """There is one new lease, which repeated requests return; the old one has ended."""

    async def scene(site: Site) -> None:
        key, retried = f"a1, {site.heard}", f"a2, {site.heard}"
        old = await asked(site.unlucky, lasting(key))
        site.book.granted[key] = (old["id"], old["token"])
        path, body = f"/v1/leases/{old['id']}/retry", {"token": old["token"], "key": retried}
        answer = await site.lost(lambda: called(site.unlucky, "POST", path, body))
        assert answer.status == 201, answer
        new = answer.json()
        assert token_of(new["token"]) > token_of(old["token"])
        site.book.granted[retried] = (new["id"], new["token"])
        for url in (site.lucky, site.unlucky):
            again = (await called(url, "POST", path, body)).json()
            assert (again["id"], again["token"]) == (new["id"], new["token"])
            ended = (await called(url, "GET", f"/v1/leases/{old['id']}")).json()
            assert (ended["state"], ended["cause"]) == ("ended", "retried")
        assert (await site.pool())["occupied"] == 1
        assert (await site.freed(new)).status == 200

    play(scene)
