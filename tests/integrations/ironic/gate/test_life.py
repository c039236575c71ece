"""Starting, stopping and starting again: no connection is refused, no request is lost."""

import asyncio
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from moorage.integrations.ironic.gate.listening import LISTEN_BY_DEFAULT
from moorage.wire.admission import PoolWanted
from tests.e2e.support.server import MOORAGE, Server
from tests.integrations.ironic.gate.gates import NOWHERE, READY
from tests.integrations.ironic.gate.test_limit import play
from tests.integrations.ironic.gate.world import World
from tests.support.ironic_double.faults import Fault
from tests.support.ironic_double.server import IronicDouble
from tests.systemd.systemd_double import NotifySocket, passing


def held_gate(held: socket.socket, world: World) -> Server:
    """Start a gate that gets its socket from its parent."""
    command = [*MOORAGE, "gate", "--ironic", world.double.url, "--pool", "deploy"]
    command += ["--url", world.moorage.url, "--token", world.token]
    return Server(passing(command, {"": held}), ready=READY, passed=[held.fileno()])


def test_sigterm(tmp_path: Path) -> None:
    """Requests that wait are refused at once; what Ironic has is finished; the exit code is 0."""

    async def act(world: World) -> None:
        gate = await world.gate()
        world.double.faults.pending.append(Fault("provision", wait=5.0))
        first = asyncio.create_task(world.ask(gate.url, "node-1", "active"))
        await world.double.received("provision")
        second = asyncio.create_task(world.ask(gate.url, "node-2", "active"))
        await world.waiting(1)
        gate.process.send_signal(signal.SIGTERM)
        got = await second
        assert (got.status, got.fault) == (409, "The gate is being restarted")
        assert not first.done()
        await world.double.advance(5)
        assert (await first).status == 202
        assert await asyncio.to_thread(gate.process.wait) == 0
        (lease,) = await world.leases()
        assert lease.record == {"sent": [], "begun": True}

    play(tmp_path, IronicDouble(2), 1, act)


def test_no_connection_is_refused(tmp_path: Path) -> None:
    """While the gate is started again, or after SIGKILL, connections wait in the socket."""

    async def act(world: World) -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=64) as held:
            url = f"http://127.0.0.1:{held.getsockname()[1]}"
            for how in (signal.SIGTERM, signal.SIGKILL):
                gate = await asyncio.to_thread(held_gate, held, world)
                assert gate.url == url
                async with world.session.get(f"{url}/v1/nodes") as answer:
                    assert answer.status == 200
                await asyncio.to_thread(gate.stop, how)
                waiting = asyncio.create_task(world.ask(url, "node-1", "manage"))
                gate = await asyncio.to_thread(held_gate, held, world)
                assert (await waiting).status in (202, 400)
                await asyncio.to_thread(gate.stop)

    play(tmp_path, IronicDouble(1), 1, act)


def test_sockets_by_name(tmp_path: Path) -> None:
    """Systemd may hold the socket of the metrics, too; an option that says otherwise is refused,
    also if it says what the default is.
    """

    async def act(world: World) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as clients,
            socket.create_server(("127.0.0.1", 0)) as metrics,
        ):
            sockets = {"metrics_listen": metrics, "listen": clients}
            numbers = [one.fileno() for one in sockets.values()]
            command = [*MOORAGE, "gate", "--ironic", world.double.url, "--pool", "deploy"]
            command += ["--url", world.moorage.url, "--token", world.token]

            def started() -> Server:
                return Server(passing(command, sockets), ready=READY, passed=numbers)

            with await asyncio.to_thread(started) as gate:
                assert gate.url.endswith(f":{clients.getsockname()[1]}")
                address = f"http://127.0.0.1:{metrics.getsockname()[1]}/metrics"
                async with world.session.get(address) as answer:
                    assert "moorage_gate_" in await answer.text()
            for option, address in (
                ("--listen", "127.0.0.1:1"),
                ("--listen", LISTEN_BY_DEFAULT),
                ("--metrics-listen", "127.0.0.1:1"),
            ):
                done = await asyncio.to_thread(
                    subprocess.run,
                    passing([*command, option, address], sockets),
                    pass_fds=numbers,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 2
                assert f"{option} is {address}, but systemd passes a socket on" in done.stderr

    play(tmp_path, IronicDouble(1), 1, act)


def test_what_systemd_is_told(tmp_path: Path) -> None:
    """Ready after the first pass; alive as long as the loop turns; what it does, until the end."""

    async def act(world: World) -> None:
        command = ["gate", "--ironic", world.double.url, "--pool", "deploy"]
        command += ["--url", world.moorage.url, "--token", world.token]
        command += ["--listen", "127.0.0.1:0"]
        with NotifySocket() as systemd:
            environment = {**os.environ, **systemd.variables(1.0)}

            def started() -> Server:
                return Server(command, environment, ready=READY, forked=True)

            with await asyncio.to_thread(started) as gate:
                serving = f"serving on {gate.url}, 2 nodes, 0 busy"
                await asyncio.to_thread(systemd.wait_for, "STATUS", serving.__eq__)
                await asyncio.to_thread(systemd.wait_for, "WATCHDOG", times=3)
                assert systemd.all_of("READY") == ["1"]
                world.double.faults.pending.append(Fault("provision", wait=5.0))
                asking = asyncio.create_task(world.ask(gate.url, "node-1", "active"))
                await world.double.received("provision")
                gate.process.send_signal(signal.SIGTERM)
                finishing = "stopping: finishing what was forwarded"
                await asyncio.to_thread(systemd.wait_for, "STATUS", finishing.__eq__)
                await world.double.advance(5)
                assert (await asking).status == 202
                assert await asyncio.to_thread(gate.process.wait) == 0
            assert systemd.received[0] == {"STATUS": "reading all nodes"}
            assert systemd.all_of("STOPPING") == ["1"]

    play(tmp_path, IronicDouble(2), 1, act)


def test_a_stop_during_the_first_pass(tmp_path: Path) -> None:
    """It ends at once, and is never ready; until then the start gets more time."""

    async def act(world: World) -> None:
        command = [*MOORAGE, "gate", "--ironic", world.double.url, "--pool", "deploy"]
        command += ["--url", world.moorage.url, "--token", world.token]
        command += ["--listen", "127.0.0.1:0"]
        world.double.faults.pending.append(Fault("list", wait=30.0))
        with NotifySocket() as systemd:
            gate = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, **systemd.variables(1.0)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            await world.double.received("list")
            await asyncio.to_thread(systemd.wait_for, "EXTEND_TIMEOUT_USEC", times=2)
            gate.send_signal(signal.SIGTERM)
            said, _ = await asyncio.wait_for(gate.communicate(), 30)
            assert gate.returncode == 0, said
            assert READY.search(said.decode()) is None
            assert systemd.all_of("READY") == systemd.all_of("WATCHDOG") == []
            assert systemd.all_of("STOPPING") == ["1"]

    play(tmp_path, IronicDouble(2), 1, act)


def test_pools_are_checked(tmp_path: Path) -> None:
    """A pool that is missing, or frees units by time, ends the start; the line says what to do."""

    async def act(world: World) -> None:
        async def says(pool: str) -> str:
            command = [*MOORAGE, "gate", "--ironic", world.double.url, "--pool", pool]
            command += ["--url", world.moorage.url, "--token", world.token]
            command += ["--listen", "127.0.0.1:0"]
            done = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, check=False
            )
            assert done.returncode == 2
            return done.stderr

        assert "moorage pool create deploy/x --limit N --expire keep`" in await says("deploy/x")
        world.admission.pool_put("deploy/y", PoolWanted(limit=1))
        assert "moorage pool change deploy/y --expire keep`" in await says("deploy/y")

    play(tmp_path, IronicDouble(1), 1, act)


def test_check(tmp_path: Path) -> None:
    """`moorage gate check` says whether Ironic can be reached past the gate."""

    async def act(world: World) -> None:
        gate = await world.gate()

        async def check(url: str, ironic: str) -> tuple[int, str]:
            command = [*MOORAGE, "gate", "check", "--gate", url, "--ironic", ironic]
            done = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, check=False
            )
            return done.returncode, done.stdout

        code, text = await check(gate.url, world.double.url)
        assert (code, "can be reached past the gate" in text) == (1, True)
        code, text = await check(gate.url, NOWHERE)
        assert (code, text.count("good: ")) == (0, 3)
        code, text = await check(NOWHERE, NOWHERE)
        assert (code, "does not answer" in text) == (1, True)

    play(tmp_path, IronicDouble(1), 1, act)


def test_metrics(tmp_path: Path) -> None:
    """Prometheus reads what the gate does."""

    async def act(world: World) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        gate = await world.gate("--metrics-listen", address)
        await world.ask(gate.url, "node-1", "active")
        async with world.session.get(f"http://{address}/metrics") as answer:
            text = await answer.text()
        found = dict(re.findall(r"^(moorage_[^ ]*) (.*)$", text, re.MULTILINE))
        sent = 'moorage_gate_decided_total{outcome="forwarded_with_unit",verb="active"}'
        assert found[sent] == "1.0"
        assert float(found["moorage_ironic_pass_age_seconds"]) < 30

    play(tmp_path, IronicDouble(1), 1, act)
