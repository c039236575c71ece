"""Several reporters share the nodes: one is killed, one is stopped and continues, one is replaced.

The change stream is the witness: what it says of a node is what happened to the node in Ironic, in
that order, and each of it once. So nobody has written what was no longer true.
"""

import asyncio
import re
import signal
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from time import monotonic

import pytest

from moorage.wire.rendezvous import owner
from moorage.wire.reporting import PinsWanted
from tests.integrations.ironic.report.world import CLASS, GROUP, TTL, World, played, whole

pytestmark = pytest.mark.thorough

NODES = 300
MEMBERS = ("a", "b", "c")
PATIENCE_SECONDS = 60.0
SLACK_SECONDS = 1.0
"""How much longer than a TTL a takeover may take, or twice as long as any change takes."""


async def until(it: World, condition: Callable[[], bool]) -> None:
    """Return when a condition holds, which is looked at after each reading of a reporter."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await it.double.received("list", it.double.counts["list"] + 1)


def own(it: World, member: str, members: tuple[str, ...]) -> set[str]:
    """Return which nodes a member owns."""
    return {uuid for uuid in it.double.fleet.nodes if owner(uuid, members) == member}


def maintain(it: World, uuids: set[str], on: bool) -> None:
    """Begin or end the maintenance of nodes."""
    it.double.agenda.advance(1.0)
    for uuid in uuids:
        it.double.fleet.touch(it.double.fleet.nodes[uuid], maintenance=on)


def is_told(it: World, uuids: set[str], reserved: int) -> bool:
    """Return whether the ledger says this of all these nodes."""
    held = it.providers()
    return all(
        uuid in held and held[uuid].inventories[CLASS].reserved == reserved for uuid in uuids
    )


def history(it: World, after: str) -> dict[str, list[int]]:
    """Return what the ledger has said of each node since then, from the change stream."""
    said: defaultdict[str, list[int]] = defaultdict(list)
    revisions = set()
    for change in it.changes(after, "inventory"):
        uuid = change["key"].partition("/")[0]
        said[uuid].append(change["value"]["reserved"])
        assert (uuid, change["revision"]) not in revisions, "two writes at one revision"
        revisions.add((uuid, change["revision"]))
    return said


async def line(process: asyncio.subprocess.Process) -> str:
    """Return the ready line."""
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        return (await process.stdout.readline()).decode()


@played(NODES)
async def test_takeovers(it: World) -> None:
    """A killed and a stopped reporter are replaced within a TTL; one that goes on does no harm."""
    everything = {*it.double.fleet.nodes}
    async with AsyncExitStack() as stack:
        running = {}
        for name in MEMBERS:
            running[name] = await stack.enter_async_context(it.process(name))
            assert re.fullmatch(
                rf"moorage: reporting \d+ nodes as {GROUP}/{name}\n", await line(running[name])
            )
        maintain(it, everything, True)
        began = monotonic()
        await until(it, lambda: is_told(it, everything, 1))
        slack = max(SLACK_SECONDS, 2 * (monotonic() - began))
        maintain(it, everything, False)
        await until(it, lambda: is_told(it, everything, 0))
        cursor = it.cursor()

        killed = own(it, "a", MEMBERS)
        running["a"].kill()
        began = monotonic()
        maintain(it, killed, True)
        await until(it, lambda: is_told(it, killed, 1))
        assert monotonic() - began <= TTL + slack

        stopped = own(it, "b", ("b", "c"))
        running["b"].send_signal(signal.SIGSTOP)
        began = monotonic()
        maintain(it, stopped, True)
        await until(it, lambda: is_told(it, stopped, 1))
        assert monotonic() - began <= TTL + slack
        maintain(it, stopped, False)
        await until(it, lambda: is_told(it, stopped, 0))

        running["b"].send_signal(signal.SIGCONT)
        await until(it, lambda: _live(it) == ["b", "c"])
        maintain(it, everything, True)
        await until(it, lambda: is_told(it, everything, 1))
        said = history(it, cursor)
    assert said.keys() == everything
    for uuid, values in said.items():
        expected = [1] if uuid not in stopped else [1, 0, 1]
        assert values == expected, (uuid, uuid in killed, uuid in stopped, values)


@played(NODES)
async def test_a_replaced_reporter_ends(it: World) -> None:
    """One that was stopped while another started as the same member writes nothing, and says so."""
    everything = {*it.double.fleet.nodes}
    async with it.process("a") as old:
        await line(old)
        cursor = it.cursor()
        old.send_signal(signal.SIGSTOP)
        async with it.process("a") as new:
            await line(new)
            maintain(it, everything, True)
            await until(it, lambda: is_told(it, everything, 1))
            old.send_signal(signal.SIGCONT)
            _, errors = await old.communicate()
            assert old.returncode == 4
            last = errors.decode().splitlines()[-1]
            assert last.startswith(
                f"moorage: this reporter is no longer member a of group {GROUP}, and stops: "
            )
            assert last.endswith("give each reporter its own --member.")
            maintain(it, everything, False)
            await until(it, lambda: is_told(it, everything, 0))
    assert all(values == [1, 0] for values in history(it, cursor).values())


@played(3)
async def test_sigterm(it: World) -> None:
    """A reporter that is stopped in order leaves: the others need not wait for its TTL."""
    async with it.process("a") as process:
        await line(process)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    assert it.reporting.group(GROUP).members == []


def _live(it: World) -> list[str]:
    return [member.name for member in it.reporting.group(GROUP).members if member.live]


@played(3)
async def test_refused_before_it_moved(it: World) -> None:
    """A refused node that is another member's now is not in the numbers of the last pass."""

    async def refused() -> int:
        for _ in range(2):  # a pass is shown by the sign of life of the next one
            assert await reporter.tick(), reporter.progress.trouble
        (member,) = it.reporting.group(GROUP).members
        assert member.last_pass is not None
        return sum(member.last_pass.refused.values())

    async with it.reporter() as reporter:
        it.change(1, traits=["NO_SUCH_TRAIT"])
        await whole(reporter)
        assert await refused() == 1
        it.reporting.pin(GROUP, PinsWanted(nodes=[it.node(1).uuid], member="b"))
        assert await refused() == 0


@played(3)
async def test_a_restore(it: World) -> None:
    """In a new epoch all nodes are reported again at once, by the pins that there are then."""
    kept, moved, other = (it.node(number).uuid for number in (1, 2, 3))
    it.double.agenda.advance(60.0)  # so that none of these is among what has changed
    it.double.fleet.add({"name": "last", "driver": "fake-hardware"}, "available")
    async with it.reporter() as reporter:
        await whole(reporter)
        it.reporting.pin(GROUP, PinsWanted(nodes=[kept], member="b"))
        assert await reporter.tick(), reporter.progress.trouble
        await reporter.read_all_done()
        for uuid in (kept, moved, other):
            it.placement("DELETE", f"/resource_providers/{uuid}")
        with closing(sqlite3.connect(it.database)) as database, database:
            database.execute("UPDATE reporter_pin SET node = ?", (moved,))
        assert await reporter.tick(), reporter.progress.trouble
        await reporter.read_all_done()
        assert it.providers() == {}
        it.admin.request("POST", "/v1/database/epoch", {})
        assert await reporter.tick(), reporter.progress.trouble
        await reporter.read_all_done()
        assert it.providers().keys() == {kept, other}
