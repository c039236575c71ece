"""A reporter that is stopped leaves its group at once; a dead server delays it by seconds only."""

import asyncio
import signal
from time import monotonic

import pytest

from moorage.client.transport import RefusedError
from moorage.integrations.ironic.report.membership import LEAVE_SECONDS
from tests.integrations.ironic.report.test_group import (
    PATIENCE_SECONDS,
    is_told,
    line,
    maintain,
    own,
    until,
)
from tests.integrations.ironic.report.world import GROUP, TTL, World, played
from tests.support.ironic_double.faults import Fault

NODES = 40
LONG = ("--ttl", "600")
"""Longer than any test: what happens sooner has not waited for it."""
SLACK_SECONDS = 4.0
NEVER = Fault("list", wait=1e9)


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """Stop a reporter; return its exit code and errors. Fails if that takes long."""
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(LEAVE_SECONDS + SLACK_SECONDS):
        _, errors = await process.communicate()
    return process.returncode, errors.decode()


@played(NODES)
async def test_the_others_get_its_nodes_at_once(it: World) -> None:
    """They report for it although its TTL is not over."""
    async with it.process("a", *LONG) as one, it.process("b", *LONG) as other:
        await line(one)
        await line(other)
        left = own(it, "a", ("a", "b"))
        code, errors = await ended(one)
        assert (code, "could not leave" in errors) == (0, False)
        maintain(it, left, True)
        await until(it, lambda: is_told(it, left, 1))
        assert [member.name for member in it.reporting.group(GROUP).members] == ["b"]


@played(NODES)
async def test_a_server_that_does_not_answer(it: World) -> None:
    """It ends within seconds, in order, and says that the others must wait for its TTL."""
    async with it.process("a", *LONG) as process:
        await line(process)
        it.server.process.send_signal(signal.SIGSTOP)
        try:
            began = monotonic()
            code, errors = await ended(process)
            assert monotonic() - began >= LEAVE_SECONDS
        finally:
            it.server.process.send_signal(signal.SIGCONT)
    assert code == 0
    assert f"moorage: could not leave the group {GROUP}, its nodes get other owners" in errors


@played(NODES)
async def test_an_ironic_that_does_not_answer(it: World) -> None:
    """The pass that waits for it is given up, and the group is left."""
    async with it.process("a", *LONG) as process:
        await line(process)
        it.double.faults.pending.append(NEVER)
        await it.double.received("list", it.double.counts["list"] + 1)
        code, errors = await ended(process)
    assert (code, "could not leave" in errors) == (0, False)
    assert it.reporting.group(GROUP).members == []


@played(NODES)
async def test_once(it: World) -> None:
    """With --once, too; the exit code says that not all is reported."""
    it.double.faults.pending.append(NEVER)
    async with it.process("a", *LONG, "--once") as process:
        await it.double.received("list", 1)
        code, errors = await ended(process)
    assert code == 1
    assert errors.splitlines()[-1] == "moorage: stopped before all nodes were reported"
    assert it.reporting.group(GROUP).members == []


async def deleted(it: World) -> None:
    """Delete the group once no member is live any more."""
    async with asyncio.timeout(TTL + PATIENCE_SECONDS):
        while True:
            try:
                return await asyncio.to_thread(it.reporting.group_delete, GROUP)
            except RefusedError as error:
                assert error.code == "group_in_use"


@played(NODES)
async def test_its_group_was_deleted(it: World) -> None:
    """A reporter that was stopped meanwhile ends, and does not create the group again."""
    async with it.process("a") as process:
        await line(process)
        process.send_signal(signal.SIGSTOP)
        await deleted(it)
        process.send_signal(signal.SIGCONT)
        _, errors = await process.communicate()
    assert process.returncode == 4
    assert "was deleted" in errors.decode().splitlines()[-1]
    with pytest.raises(RefusedError, match="no group of reporters"):
        it.reporting.group(GROUP)
    async with it.process("a") as another:
        assert await line(another) == f"moorage: reporting {NODES} nodes as {GROUP}/a\n"
