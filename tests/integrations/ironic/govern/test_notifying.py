"""What systemd learns from `moorage ironic govern`."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.integrations.ironic.world import world
from tests.support.ironic_double.faults import Fault
from tests.systemd.systemd_double import NotifySocket


def test_notifications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ready at once, for Ironic may be away when a machine boots; the status says what it does."""

    async def run() -> None:
        async with world(tmp_path, 2, 1) as it:
            for name, value in systemd.variables(1.0).items():
                monkeypatch.setenv(name, value)
            it.double.faults.pending.append(Fault("list", wait=30.0))
            async with it.process("--interval", "0.1") as process:
                reading = "no pass has succeeded yet"
                await asyncio.to_thread(systemd.wait_for, "STATUS", reading.__eq__)
                await asyncio.to_thread(systemd.wait_for, "WATCHDOG", times=3)
                assert systemd.all_of("READY") == ["1"]
                await it.double.advance(30.0)
                doing = f"governing {it.double.url} (2 nodes, 0 busy)"
                await asyncio.to_thread(systemd.wait_for, "STATUS", doing.__eq__)
                assert systemd.all_of("READY") == ["1"]
                process.send_signal(signal.SIGTERM)
                await asyncio.to_thread(systemd.wait_for, "STOPPING")
                assert await process.wait() == 0

    with NotifySocket() as systemd:
        asyncio.run(run())
