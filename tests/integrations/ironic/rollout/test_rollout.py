"""A rollout works on a few nodes at once, stops after failures, and goes on after SIGKILL."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorage.cli.commands.ironic.rollout import failures_of
from moorage.cli.support.output import Failure
from moorage.integrations.ironic.nodes import Node
from moorage.integrations.ironic.rollout import Limits, Phase, Rollout, UnknownNodesError, times_of
from moorage.integrations.provisioning.hosts import Host
from moorage.wire.admission import Lease, LeaseWanted, NeedWanted
from tests.integrations.ironic.world import DEPLOY_SECONDS, POOL, World, played, until
from tests.support import warm
from tests.support.ironic_double.faults import Fault


@asynccontextmanager
async def rollout(it: World, limit: int, failures: int) -> AsyncIterator[Rollout]:
    """Yield a rollout that deploys."""
    async with it.host_leases() as (host_leases, nodes):
        yield Rollout(host_leases, nodes, it.rules, "active", Limits(limit, failures))


def is_answered(lease: Lease) -> bool:
    """Return whether the request of a lease was sent and answered."""
    return bool(lease.record) and not (lease.record or {})["sent"]


def names(*numbers: int) -> list[str]:
    """Return the names of nodes."""
    return [f"node-{number}" for number in numbers]


async def played_out(it: World, wave: Rollout, together: int = 1) -> None:
    """Let time pass until the wave is over, but only while this many work, or all that are left.

    Otherwise one could end before the next one, whose request is on its way, begins.
    """

    async def on() -> bool:
        status = await wave.tick()
        left = sum(status.counts[one] for one in (Phase.NEW, Phase.WAITING, Phase.WORKING))
        enough = len(it.double.fleet.busy) >= max(1, min(together, left))
        if enough and not wave._line.is_sending:  # an answer that is not stored yet is not judged
            await it.double.advance(DEPLOY_SECONDS)
        return wave.is_over(status)

    async with asyncio.timeout(30.0):
        while not await on():
            pass


@played(2, 1)
async def test_a_node_on_hold(it: World) -> None:
    """A wave keeps the unit of a node on hold if the gate does."""
    it.node(1).state = "deploy hold"
    for counts in (True, False):
        async with it.host_leases() as (host_leases, nodes):
            limits = Limits(1, 0)
            wave = Rollout(host_leases, nodes, it.rules, "active", limits, hold_counts=counts)
            await wave.prepare(["node-2"], None)
            await host_leases.adopt(Host("ironic", it.node(1).uuid), {POOL: 1})
            wave.stop()
            await wave.tick()
        assert len(it.leases()) == counts


@played(8, 5)
async def test_a_wave(it: World) -> None:
    """At most two of the wave work at once, although the pool has more units; others stay."""
    async with rollout(it, 2, 0) as wave:
        await wave.prepare([*names(1, 2, 3), it.node(4).uuid, *names(5)], None)
        await played_out(it, wave, 2)
        report = await wave.report()
    assert it.double.fleet.busiest == 2
    assert report.done == names(1, 2, 3, 4, 5)
    assert (report.failed, report.never_started, report.stopped) == ({}, [], "")
    assert report.working_seconds.median is not None
    assert {lease.outcome for lease in it.leases("ended")} == {"ok"}
    assert it.node(6).state == "available"


@played(10, 5)
async def test_it_stops_after_failures(it: World) -> None:
    """Once two have failed nothing more is started; what works is followed, and its error shown."""
    for number in range(1, 11):
        it.node(number).fails = True
    async with rollout(it, 3, 1) as wave:
        await wave.prepare(names(*range(1, 11)), None)
        await played_out(it, wave, 3)
        report = await wave.report()
    assert len(report.failed) == 3
    assert set(report.failed.values()) == {"It failed on demand."}
    assert len(report.never_started) == 7
    assert report.stopped == "3 nodes have failed"
    assert {lease.outcome for lease in it.leases("ended") if lease.outcome} == {"failed"}
    assert it.operator.pool(POOL).waiting == 0


@played(1, 1)
async def test_a_request_that_is_accepted_during_a_pass(it: World) -> None:
    """A pass has read the node before: its old state does not say that the work has failed."""
    other = it.operator.ask(LeaseWanted(needs=[NeedWanted(pool=POOL, units=1)], key="other"))
    async with it.host_leases() as (host_leases, nodes):
        wave = Rollout(host_leases, nodes, it.rules, "active", Limits(1, 0))
        await wave.prepare(names(1), None)
        await until(lambda: bool(it.leases("waiting")), wave.tick)
        everything = nodes.all

        async def listed(fields: Sequence[str]) -> list[Node]:
            found = await everything(fields)
            it.operator.release(other.id)
            await until(
                lambda: it.double.counts["provision"] == 1 and not wave._line.is_sending, once_more
            )
            return found

        nodes.all = listed  # type: ignore[method-assign] # a test double
        status = await wave.tick()
        assert (status.counts[Phase.FAILED], status.stopped) == (0, "")
        nodes.all = everything  # type: ignore[method-assign] # a test double
        await played_out(it, wave)
        assert (await wave.report()).done == names(1)


@played(4, 5)
async def test_unknown_nodes(it: World) -> None:
    """A list with a node that does not exist starts nothing."""
    async with rollout(it, 2, 0) as wave:
        with pytest.raises(UnknownNodesError, match="node-9"):
            await wave.prepare(names(1, 9), None)
    assert it.double.counts["provision"] == 0


@played(3, 5)
async def test_nodes_that_cannot_be_deployed(it: World) -> None:
    """A node in maintenance, one in a wrong state and one that Ironic refuses have failed."""
    it.node(1).members["maintenance"] = True
    it.node(2).state = "manageable"
    it.double.faults.pending.append(Fault("provision", work="never", answer=400))
    async with rollout(it, 3, 3) as wave:
        await wave.prepare(names(1, 2, 3), None)
        await played_out(it, wave)
        report = await wave.report()
    assert list(report.failed) == names(1, 2, 3)


@played(3, 5)
async def test_a_failed_node_is_not_tried_again_by_the_same_wave(it: World) -> None:
    """The same command keeps what has failed; a wave with another name tries it."""
    it.node(2).fails = True
    for _ in range(2):
        async with rollout(it, 3, 3) as wave:
            await wave.prepare(names(1, 2, 3), None)
            await played_out(it, wave)
            report = await wave.report()
        assert (report.done, list(report.failed)) == (names(1, 3), names(2))
        assert it.double.counts["provision"] == 3
    async with rollout(it, 3, 3) as wave:
        await wave.prepare(names(1, 2, 3), "again")
        await played_out(it, wave)
        assert (await wave.report()).done == names(1, 2, 3)
    assert it.double.counts["provision"] == 4


def command(it: World, file: Path, *options: str) -> tuple[str, ...]:
    """Return the arguments of a rollout."""
    words = (
        "--ironic",
        it.double.url,
        "--url",
        it.server.url,
        "--pool",
        POOL,
        "--nodes",
        str(file),
    )
    return ("ironic", "rollout", *words, *options)


async def once_more() -> None:
    """Let the double answer."""
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.05)


async def started(it: World, file: Path, *options: str) -> asyncio.subprocess.Process:
    """Start a rollout as a process of its own."""
    words = command(it, file, "--interval", "0.1", *options)
    return await warm.fork_async(words, {**os.environ, "MOORAGE_TOKEN": it.token})


@pytest.mark.parametrize("work", ["under way", "done"])
def test_killed_and_continued(work: str, tmp_path: Path) -> None:
    """After SIGKILL the same command goes on: nothing is sent twice, and every node is active."""
    file = tmp_path / "nodes.txt"
    file.write_text("# rack 7\nnode-1\nnode-2  # the second\n\nnode-3\nnode-4\n")

    @played(4, 5)
    async def play(it: World) -> None:
        process = await started(it, file, "--limit", "2")
        await until(lambda: sum(map(is_answered, it.leases())) == 2, once_more)
        process.kill()
        await process.communicate()
        if work == "done":
            await it.double.advance(DEPLOY_SECONDS)
        process = await started(it, file, "--limit", "2", "--json")
        ending = asyncio.create_task(process.communicate())

        async def on() -> None:
            await asyncio.wait([ending], timeout=0.2)
            if it.double.fleet.busy and all(map(is_answered, it.leases())):
                await it.double.advance(DEPLOY_SECONDS)

        await until(ending.done, on)
        said, trouble = await ending
        assert process.returncode == 0, trouble
        assert json.loads(said)["done"] == names(1, 2, 3, 4)
        assert it.double.counts["provision"] == 4
        assert it.double.fleet.busiest == 2

    play(tmp_path)


def test_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C starts nothing more and follows what works; the exit code is 3."""
    file = tmp_path / "nodes.txt"
    file.write_text("node-1\nnode-2\nnode-3\n")

    @played(3, 5)
    async def play(it: World) -> None:
        process = await started(it, file, "--limit", "1")
        await it.double.received("provision")
        process.send_signal(signal.SIGINT)
        ending = asyncio.create_task(process.communicate())

        async def on() -> None:
            await asyncio.wait([ending], timeout=0.2)
            await it.double.advance(DEPLOY_SECONDS)

        await until(ending.done, on)
        said, trouble = await ending
        assert process.returncode == 3, trouble
        assert b"1 active, 0 failed, 2 never started" in said
        assert it.double.counts["provision"] == 1

    play(tmp_path)


@pytest.mark.parametrize(
    ("text", "nodes", "most"), [("5%", 100, 5), ("5%", 19, 0), ("3", 10, 3), ("100%", 7, 7)]
)
def test_the_share_of_failures(text: str, nodes: int, most: int) -> None:
    """A share is of all nodes, rounded down; a number is a number."""
    assert failures_of(text, nodes) == most


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "5%%"])
def test_no_share(text: str) -> None:
    """Anything else is refused."""
    with pytest.raises(Failure):
        failures_of(text, 10)


def test_percentiles() -> None:
    """Both are measured values."""
    times = times_of([4.0, 1.0, 3.0, 2.0, 10.0])
    assert (times.median, times.p90) == (3.0, 10.0)
    assert times_of([]).median is None


def test_phases_are_words() -> None:
    """They are shown as they are."""
    assert str(Phase.WORKING) == "working"
