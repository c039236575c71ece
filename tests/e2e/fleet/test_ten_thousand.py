"""A large fleet: signs of life cost little and write nothing, and silence is seen in time.

`MOORAGE_SOAK=1` runs 10,000 agents, each with a token of its own; otherwise a few hundred show that
nothing is written.
"""

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic
from typing import Any

import pytest

from bench.machine import processor_seconds
from tests.cli.command import answer
from tests.e2e.support.agent_load import (
    BEAT_SECONDS,
    GROUP,
    PAGES,
    AgentLoad,
    Connection,
    percentile,
)
from tests.e2e.support.server import Server, serve
from tests.support import cluster
from tests.support.suites import print_line

pytestmark = pytest.mark.thorough

SOAK = "MOORAGE_SOAK" in os.environ
soak = pytest.mark.skipif(not SOAK, reason="MOORAGE_SOAK is not set")

AGENTS = 10_000 if SOAK else 200
WINDOW_SECONDS = 60.0 if SOAK else 8.0
OPTIONS = ("--no-access-log", "--fleet-ttl-min", "10", "--fleet-ttl-max", "10")
SHARE_MAX = 0.30
"""The processor time of the server for 10,000 agents, as a share of one core."""

ROUNDS = 5
"""How often the processor time of all signs of life is measured; the median counts."""

WITHDRAWN_SECONDS_MAX = 25.0
STOPPED = 200
CUT_SECONDS = 300.0
CUT_SHARE = 0.4


def contents(database: Path) -> dict[str, str]:
    """Return a digest of each table, without the signs of life of the process.

    And without the last uses of tokens, which are written once an hour.
    """
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in found} - {"agent_heard"}
        return {name: digest(connection, name) for name in names}


def digest(connection: sqlite3.Connection, table: str) -> str:
    """Return the digest of a table."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    kept = ", ".join(column for column in columns if column != "used_at")
    rows = connection.execute(f"SELECT {kept} FROM {table}").fetchall()
    return sha256(repr(rows).encode()).hexdigest()


def heard_rows(database: Path) -> list[Any]:
    """Return the rows of signs of life: process and time."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return connection.execute("SELECT process, at FROM agent_heard").fetchall()


@asynccontextmanager
async def beating(servers: list[Server], admin: str, agents: int) -> AsyncIterator[AgentLoad]:
    """Provide a fleet whose agents send signs of life."""
    load = AgentLoad([server.url for server in servers], admin, agents)
    await load.begin()
    load.beat()
    try:
        yield load
    finally:
        await load.stop()
        assert load.refused == []


def test_signs_of_life_write_nothing(tmp_path: Path) -> None:
    """Only the one row of the process changes; with 10,000 agents most of a core stays free.

    On an otherwise idle server each request also pays for waking up the processor. Without that,
    while the server is busy, it costs less: that is what is missing for other requests.
    """
    database = tmp_path / "m.sqlite"

    async def run(server: Server) -> None:
        async with beating([server], admin_of(database), AGENTS) as load:
            await load.runs(5.0)
            before, rows = contents(database), heard_rows(database)
            paced = await load_of(server, load.runs(WINDOW_SECONDS))
            assert contents(database) == before
            ((process, at),), ((later_process, later),) = rows, heard_rows(database)
            assert process == later_process
            assert later > at
            assert await load.silent("late", server.url) == set()
            await load.stop()
            seconds = [await processor_time(server, load.beat_once()) for _ in range(ROUNDS)]
            share = median(seconds) / BEAT_SECONDS
            print_line(f"{AGENTS} agents: {paced:.1%} of a core; {share:.1%} without wake-ups")
            assert contents(database) == before
            assert max(paced, share) <= SHARE_MAX * AGENTS / 10_000 or not SOAK

    with serve(database, *OPTIONS) as server:
        asyncio.run(run(server))


async def processor_time(server: Server, work: Awaitable[object]) -> float:
    """Return the server's processor time, in seconds, while something else runs."""
    busy = processor_seconds([server.pid])
    await work
    return processor_seconds([server.pid]) - busy


async def load_of(server: Server, work: Awaitable[object]) -> float:
    """Return the server's processor time as a share of one core while something else runs."""
    began = monotonic()
    return await processor_time(server, work) / (monotonic() - began)


def admin_of(database: Path) -> str:
    """Return the administrator's token next to a database."""
    return Path(f"{database}.token").read_text().strip()


def stop_some(load: AgentLoad, count: int) -> dict[str, float]:
    """Stop agents; return when each was heard of last."""
    stopped = Random(1).sample(load.agents, min(count, len(load.agents) // 2))
    for agent in stopped:
        agent.beats = False
    return {agent.uuid: agent.heard_at for agent in stopped}


async def withdrawn(
    load: AgentLoad, stopped: dict[str, float], url: Callable[[], str]
) -> list[float]:
    """Return after which silence each stopped agent is late; nobody else may be."""
    seen: dict[str, float] = {}
    until = monotonic() + 60.0
    while len(seen) < len(stopped) and monotonic() < until:
        late = await load.silent("late", url())
        for uuid in late:
            seen.setdefault(uuid, monotonic())
        assert late <= stopped.keys(), "an agent that is heard of is late"
        await load.runs(0.25)
    assert seen.keys() == stopped.keys()
    return [seen[uuid] - heard for uuid, heard in stopped.items()]


def check_in_time(what: str, silences: list[float]) -> None:
    """Check that stopped agents were withdrawn in time."""
    slowest = percentile(silences, 0.99)
    print_line(f"{what}: withdrawn after {percentile(silences, 0.5):.1f} s, p99 {slowest:.1f} s")
    assert slowest <= WITHDRAWN_SECONDS_MAX


async def restarted(
    database: Path, port: str, how: signal.Signals, every: float, load: AgentLoad, found: list[str]
) -> None:
    """Serve, and end the server with a signal every few seconds; a new one takes its port."""
    while True:
        with serve(database, *OPTIONS, "--listen", port) as server:
            found[:] = [server.url]
            await load.runs(every)
            await asyncio.to_thread(server.stop, how)


@soak
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_restarts_every_eight_seconds(tmp_path: Path, how: signal.Signals) -> None:
    """A stopped agent is withdrawn in time although the server ends every 8 seconds."""
    database = tmp_path / "m.sqlite"

    async def run() -> None:
        found: list[str] = []
        with serve(database, *OPTIONS) as server:
            port = server.url.removeprefix("http://")
            load = AgentLoad([server.url], admin_of(database), 2 * STOPPED)
            await load.begin()
        load.beat()
        again = asyncio.create_task(restarted(database, port, how, 8.0, load, found))
        await load.runs(20.0)
        stopped = stop_some(load, STOPPED)
        check_in_time(f"{how.name} every 8 s", await withdrawn(load, stopped, lambda: found[0]))
        again.cancel()
        await asyncio.wait([again])
        await load.stop()

    asyncio.run(run())


@soak
def test_one_of_two_processes_is_killed() -> None:
    """On PostgreSQL the other process hears the agents, and withdraws those that have stopped."""
    database = cluster.fresh()
    admin = answer(
        *("token", "create", "--name", "admin", "--role", "admin", "--database", database)
    )["token"]

    async def run(killed: Server, other: Server) -> None:
        async with beating([killed, other], admin, 2 * STOPPED) as load:
            await load.runs(12.0)
            stopped = stop_some(load, STOPPED)
            await asyncio.to_thread(killed.stop, signal.SIGKILL)
            silences = await withdrawn(load, stopped, lambda: other.url)
            check_in_time("one of two processes killed", silences)

    with serve(database, *OPTIONS) as killed, serve(database, *OPTIONS) as other:
        asyncio.run(run(killed, other))


async def claims(url: str, admin: str, load: AgentLoad, seconds: float) -> list[float]:
    """Claim and release a page somewhere, again and again; return how long claims took."""
    connection, random, took = Connection(url), Random(2), []
    until = monotonic() + seconds
    question = {"groups": [{"resources": {PAGES: 1}}]}
    while monotonic() < until:
        consumer = f"{random.getrandbits(32):08x}-cccc-4ccc-8ccc-cccccccccccc"
        body = {
            "consumer": consumer,
            **question,
            "project_id": "p",
            "user_id": "u",
            "consumer_type": "INSTANCE",
        }
        began = monotonic()
        status, claimed = await connection.send("POST", "/v1/claims", body, admin)
        took.append(monotonic() - began)
        assert status in (200, 201), claimed
        status, _ = await connection.send("DELETE", f"/allocations/{consumer}", None, admin)
        assert status == 204
        await load.runs(0.02)
    connection.close()
    return took


@soak
def test_a_cut_network_loses_nobody(tmp_path: Path) -> None:
    """4,000 of 10,000 agents are cut off for 5 minutes: one event, and nothing else changes.

    Claims are measured before, meanwhile and afterwards, because the pace of the machine varies.
    """
    database = tmp_path / "m.sqlite"

    async def run(server: Server) -> None:
        admin = admin_of(database)
        async with beating([server], admin, AGENTS) as load:
            await load.runs(12.0)
            idle = percentile(await claims(server.url, admin, load, 20.0), 0.99)
            stop_some(load, int(CUT_SHARE * AGENTS))
            kept = {name: contents(database)[name] for name in ("holder", "consumer")}
            took = await claims(server.url, admin, load, CUT_SECONDS)
            cut = percentile(took, 0.99)
            late = await load.silent("late", server.url)
            assert len(late) == int(CUT_SHARE * AGENTS)
            assert await load.silent("lost", server.url) == set()
            assert {name: contents(database)[name] for name in kept} == kept
            assert await suspicions(server.url, admin) == 1
            for agent in load.agents:
                agent.beats = True
            await healed(load, server.url)
            again = percentile(await claims(server.url, admin, load, 20.0), 0.99)
            print_line(
                f"claims: p99 {1e3 * idle:.1f} and {1e3 * again:.1f} ms idle, "
                f"{1e3 * cut:.1f} ms while cut off"
            )
            assert cut <= 2 * max(idle, again)

    with serve(database, *OPTIONS) as server:
        asyncio.run(run(server))


async def suspicions(url: str, admin: str) -> int:
    """Return how often the network of a group has become suspect."""
    connection = Connection(url)
    status, page = await connection.send("GET", "/v1/audit?limit=1000", None, admin)
    connection.close()
    assert status == 200
    return sum(
        (row["action"], row["target"]) == ("group.suspect", GROUP) for row in page["entries"]
    )


async def healed(load: AgentLoad, url: str) -> None:
    """Wait until all agents are fresh: within one TTL of the next sign of life of each."""
    until = monotonic() + 25.0
    while await load.silent("late", url):
        assert monotonic() < until, "agents are still late"
        await load.runs(0.5)
