"""Following the ledger from outside: readers that are killed, and readers that do not read."""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import apsw
import pytest

from tests.e2e.support.peer import Peer
from tests.e2e.support.server import Server, serve
from tests.support import cluster

OPTIONS = ("--auth", "noauth2", "--no-access-log")

READERS = 3
KILLS = 12
CONSUMERS = 20

STALLED = 10
CLAIMS = 12
CONSUMERS_EACH = 1_000
GROWTH_MAX = 24 << 20
"""Bytes that ten readers that do not read may cost: their share of 4 MB each would be 40 MB."""


def free_port() -> int:
    """A port of 127.0.0.1 without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


async def provider(peer: Peer, total: int) -> str:
    """Make a provider with VCPUs."""
    uuid = str(uuid4())
    made = await peer.call("POST", "/resource_providers", {"name": uuid, "uuid": uuid})
    assert made.status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
    assert (await peer.call("PUT", f"/resource_providers/{uuid}/inventories", body)).status == 200
    return uuid


def claims(uuid: str, consumers: list[str]) -> dict[str, Any]:
    """The body that allocates one VCPU to each of these new consumers."""
    return {
        consumer: {
            "allocations": {uuid: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        for consumer in consumers
    }


def consumers(random_bits: random.Random, count: int) -> list[str]:
    """New consumers."""
    return [str(UUID(int=random_bits.getrandbits(128), version=4)) for _ in range(count)]


def rows(database: Path) -> list[tuple[int, int, str, str]]:
    """Every change row of a database that no server has open."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found: Any = connection.execute("SELECT revision, n, kind, key FROM change ORDER BY 1, 2")
        return list(found)
    finally:
        connection.close()


def written(path: Path) -> list[tuple[int, int, str, str]]:
    """What a reader has written down, whole lines only."""
    text = path.read_text() if path.exists() else ""
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return [(one["revision"], one["n"], one["kind"], one["key"]) for one in lines]


class Readers:
    """Reader processes; any of them can be killed and begun again."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self.files = [folder / f"reader-{n}" for n in range(READERS)]
        self._processes = [self._begin(file) for file in self.files]

    def _begin(self, file: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.e2e.support.reader", self._url, str(file)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def kill(self, n: int) -> None:
        """Kill the n-th reader and begin it again."""
        self._processes[n].kill()
        self._processes[n].wait()
        self._processes[n] = self._begin(self.files[n])

    def close(self) -> None:
        """End all of them."""
        for process in self._processes:
            process.kill()
            process.wait()


@contextmanager
def reading(url: str, folder: Path) -> Iterator[Readers]:
    """Start readers that follow a server."""
    readers = Readers(url, folder)
    try:
        yield readers
    finally:
        readers.close()


async def change_a_lot(url: str, readers: Readers, dice: random.Random) -> None:
    """Claim and release on several providers, killing a reader now and then."""
    async with Peer(url) as peer:
        providers = [await provider(peer, 10_000) for _ in range(3)]
        for _ in range(KILLS):
            for _ in range(dice.randint(1, 8)):
                batch = consumers(dice, dice.randint(1, CONSUMERS))
                body = claims(dice.choice(providers), batch)
                assert (await peer.call("POST", "/allocations", body)).status == 204
                gone = await peer.call("DELETE", f"/allocations/{batch[0]}")
                assert gone.status == 204
            readers.kill(dice.randrange(READERS))


async def until(true: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Ask again and again until it is true. Raises TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(seconds):
        while not await true():
            again = asyncio.Event()
            loop.call_later(0.1, again.set)
            await again.wait()


def test_killed_readers_miss_nothing(tmp_path: Path) -> None:
    """Readers killed at random, under a server killed and restarted, see each row once."""
    dice = random.Random(20)
    database = tmp_path / "ledger"
    where = ("--listen", f"127.0.0.1:{free_port()}")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serve(database, *OPTIONS, *where))
        readers = stack.enter_context(reading(server.url, tmp_path))
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            asyncio.run(change_a_lot(server.url, readers, dice))
            server.stop(how)
            expected = rows(database)
            server = stack.enter_context(serve(database, *OPTIONS, *where))

        async def caught_up() -> bool:
            return all(len(written(file)) >= len(expected) for file in readers.files)

        asyncio.run(until(caught_up, 60.0))
    assert len(expected) > 500
    for file in readers.files:
        assert written(file) == expected


def memory(server: Server) -> int:
    """Bytes of memory that a server occupies."""
    pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def stalled(url: str) -> socket.socket:
    """Ask for every change and never read an answer."""
    parts = urlsplit(url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((parts.hostname, parts.port))
    connection.sendall(
        b"GET /v1/watch?after=1.0 HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: admin\r\n"
        b"Accept: text/event-stream\r\n\r\n"
    )
    return connection


async def claim_a_lot(url: str, dice: random.Random) -> None:
    """Make more than 12,000 change rows."""
    async with Peer(url) as peer:
        uuid = await provider(peer, 1_000_000)
        for _ in range(CLAIMS):
            body = claims(uuid, consumers(dice, CONSUMERS_EACH))
            assert (await peer.call("POST", "/allocations", body)).status == 204


def test_a_reader_that_never_reads_costs_little(tmp_path: Path) -> None:
    """Its share of memory is bounded, others are served meanwhile, and then it is cut off."""
    dice = random.Random(21)

    async def all_cut_off(server: Server) -> bool:
        async with Peer(server.url) as peer:
            metrics = (await peer.call("GET", "/metrics")).body.decode()
        logged = sum("does not read" in line for line in server.said)
        return logged == STALLED and "moorage_http_connections 1.0" in metrics

    with serve(tmp_path / "ledger", *OPTIONS) as server:
        asyncio.run(claim_a_lot(server.url, dice))
        before = memory(server)
        readers = [stalled(server.url) for _ in range(STALLED)]
        try:
            asyncio.run(claim_a_lot(server.url, dice))
            assert memory(server) - before < GROWTH_MAX
            asyncio.run(until(lambda: all_cut_off(server), 40.0))
        finally:
            for reader in readers:
                reader.close()
        assert not any("Traceback" in line for line in server.said)


@pytest.mark.parametrize("wait", [0, 30])
def test_many_long_polls_at_once(tmp_path: Path, wait: int) -> None:
    """Hundreds of waiting readers all receive the same change."""

    async def scenario(url: str) -> None:
        peers = [Peer(url) for _ in range(300)]
        uuid = ""
        async with Peer(url) as peer:
            now = (await peer.call("GET", "/v1/watch?wait=0")).json()["next"]
            path = f"/v1/watch?after={now}&kinds=inventory&wait={wait}"
            waiting = [asyncio.create_task(one.call("GET", path)) for one in peers]
            if wait:
                await asyncio.wait(waiting, timeout=1.0)
                uuid = await provider(peer, 1)
            answers = await asyncio.gather(*waiting)
        expected = [f"{uuid}/VCPU"] if wait else []
        for answer in answers:
            assert [change["key"] for change in answer.json()["changes"]] == expected
        for one in peers:
            await one.close()

    with serve(tmp_path / "ledger", *OPTIONS) as server:
        asyncio.run(scenario(server.url))


def test_changes_of_another_server_are_heard() -> None:
    """Each of two servers on one PostgreSQL database reports the other's changes, in order."""

    async def scenario(urls: list[str]) -> None:
        async with Peer(urls[0]) as here, Peer(urls[1]) as there:
            now = (await there.call("GET", "/v1/watch?wait=0")).json()["next"]
            for n in range(40):
                maker, watcher = (here, there) if n % 3 else (there, here)
                path = f"/v1/watch?after={now}&wait=30&kinds=provider"
                waiting = asyncio.create_task(watcher.call("GET", path))
                if n % 2:
                    await asyncio.wait([waiting], timeout=0.02)
                name = str(uuid4())
                body = {"name": name, "uuid": name}
                assert (await maker.call("POST", "/resource_providers", body)).status == 200
                told = (await waiting).json()
                assert [change["key"] for change in told["changes"]] == [name]
                now = told["next"]

    database = cluster.fresh()
    with serve(database, *OPTIONS) as first, serve(database, *OPTIONS) as second:
        asyncio.run(scenario([first.url, second.url]))
