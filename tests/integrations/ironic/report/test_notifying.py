"""What systemd learns from `moorage ironic report`."""

import asyncio
import signal

import pytest

from tests.integrations.ironic.report.world import GROUP, World, played
from tests.support.ironic_double.faults import Fault
from tests.systemd.systemd_double import NotifySocket


@played(2)
async def test_notifications(it: World) -> None:
    """Ready at once, for Ironic may be away when a machine boots; the status says what it does."""
    with NotifySocket() as systemd, pytest.MonkeyPatch.context() as patched:
        for name, value in systemd.variables(1.0).items():
            patched.setenv(name, value)
        it.double.faults.pending.append(Fault("list", wait=30.0))
        async with it.process("a") as process:
            await asyncio.to_thread(systemd.wait_for, "STATUS", "reading all nodes".__eq__)
            await asyncio.to_thread(systemd.wait_for, "WATCHDOG", times=3)
            assert systemd.all_of("READY") == ["1"]
            await it.double.advance(30.0)
            doing = f"reporting 2 nodes as {GROUP}/a"
            await asyncio.to_thread(systemd.wait_for, "STATUS", doing.__eq__)
            assert systemd.all_of("READY") == ["1"]
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(systemd.wait_for, "STOPPING")
            await process.communicate()
            assert process.returncode == 0
