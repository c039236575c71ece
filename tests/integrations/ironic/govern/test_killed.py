"""A governor that gets SIGKILL at any point neither leaks a unit nor starts anything twice."""

import asyncio
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from moorage.integrations.provisioning import unit_release
from tests.integrations.ironic.govern.test_governor import carried_out
from tests.integrations.ironic.world import DEPLOY_SECONDS, World, until, world
from tests.support.ironic_double.faults import Fault
from tests.support.warm import serve

FOREVER = 1e9

POINTS = {
    "while it reads all nodes": Fault("list", wait=FOREVER),
    "after the grant": Fault("read", wait=FOREVER),
    "after the work has begun": Fault("provision", wait=FOREVER),
    "before the work begins late": Fault("provision", wait=FOREVER, work="late", late=30.0),
    "before a request that is lost": Fault("provision", wait=FOREVER, work="never"),
    "while it writes a note": Fault("patch", wait=FOREVER),
}
"""Where the governor is when it is killed: it waits for an answer."""


@pytest.mark.parametrize("point", POINTS)
def test_killed(point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three nodes one works at a time, and each is deployed once, whenever it is killed."""

    async def play(it: World) -> None:
        fault = POINTS[point]
        it.double.faults.pending.append(replace(fault))
        it.wish(1, 2, 3)
        async with it.process("--interval", "0.1"):
            await until(lambda: not it.double.faults.pending, lambda: asyncio.sleep(0))
        async with it.governor() as governor:
            for _ in range(3):
                assert await governor.tick()
            assert len(it.leases()) <= 1
            if fault.on == "provision":
                await it.double.advance(unit_release.WIRE_GRACE_SECONDS + DEPLOY_SECONDS)
                assert len(it.leases()) == 1
                # The time of Moorage has not passed: leave out the grace that has, in the double's.
                with monkeypatch.context() as patched:
                    patched.setattr(unit_release, "WIRE_GRACE_SECONDS", 0.0)
                    await governor.tick()

            async def on() -> None:
                await governor.tick()
                if it.double.fleet.busy:
                    await it.double.advance(DEPLOY_SECONDS)

            await until(lambda: len(it.entered("active")) == 3 and not it.leases(), on)
        assert it.double.fleet.busiest == 1
        assert sorted(it.entered("active")) == ["node-1", "node-2", "node-3"]

    async def run() -> None:
        async with world(tmp_path, 3, 1) as it:
            await play(it)

    asyncio.run(run())


def test_sigterm(tmp_path: Path) -> None:
    """SIGTERM lets the request that is under way be answered; the exit code is 0."""

    async def run() -> None:
        async with world(tmp_path, 2, 1) as it, it.process("--interval", "0.1") as process:
            it.double.faults.pending.append(Fault("provision", work="first", wait=5.0))
            it.wish(1, 2)
            assert process.stdout is not None
            assert b"governing" in await process.stdout.readline()
            await it.double.received("provision")
            process.send_signal(signal.SIGTERM)
            await it.double.advance(10.0)
            assert await process.wait() == 0
            (lease,) = it.leases()
            assert lease.record == {**(lease.record or {}), "sent": [], "begun": True}
            assert it.double.counts["provision"] == 1
            async with it.governor() as governor:
                await it.double.advance(DEPLOY_SECONDS)
                await carried_out(it, governor, 2, 2)

    asyncio.run(run())


def test_started_before_moorage(tmp_path: Path) -> None:
    """As after a power cut: it says once that Moorage is away, waits for it, and governs then."""

    async def run() -> None:
        async with world(tmp_path, 1, 1) as it:
            where = it.server.url.removeprefix("http://")
            await asyncio.to_thread(it.server.stop)
            async with it.process("--interval", "0.1") as process:
                assert process.stdout is not None
                assert process.stderr is not None
                assert b"nothing is started yet: no answer" in await process.stderr.readline()
                database = tmp_path / "moorage.sqlite"
                server = await asyncio.to_thread(serve, database, "--listen", where)
                try:
                    assert b"governing" in await process.stdout.readline()
                finally:
                    await asyncio.to_thread(server.stop)

    asyncio.run(run())
