"""Kills a gate at two points: before Ironic gets a request whose step is stored, and after that."""

import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from enum import Enum
from urllib.parse import urlsplit

from moorage.integrations.provisioning.unit_release import WIRE_GRACE_SECONDS
from tests.e2e.support.server import Server
from tests.gate import workers
from tests.gate.observer import Observer, most_by_log
from tests.gate.stack import Stack
from tests.support.closing import Closing
from tests.support.ironic import Ironic
from tests.support.suites import print_line
from tests.systemd.systemd_double import passing

DECIDED = b"/states/provision"
BYTES = 1 << 16
WORKERS = 8
RELEASE_SECONDS_MAX = WIRE_GRACE_SECONDS + 30
"""A request without an answer may start work for this long; until then its unit is kept."""


class Moment(Enum):
    """When the gate is killed: relative to Ironic's getting the request."""

    STORED = "after the step was stored, before the request was sent"
    FORWARDED = "after Ironic has answered, before the gate knows it"


class Tap(Closing):
    """Passes connections of the gate on to Ironic, and does something at one request.

    `at` and `act` are set once, and used for the next request for a provision state.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.at: Moment | None = None
        self.act: Callable[[], None] = lambda: None
        self.acted = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(self._to) as far:
            while True:
                ready, _, _ = select.select([near, far], [], [])
                for one in ready:
                    data = one.recv(BYTES)
                    if not data:
                        return
                    if one is near and DECIDED in data and self.at is not None:
                        self._meet(far, data)
                        return
                    (far if one is near else near).sendall(data)

    def _meet(self, far: socket.socket, data: bytes) -> None:
        """Do what is to be done at a request; its connection to the gate ends."""
        moment, self.at = self.at, None
        if moment is Moment.FORWARDED:
            far.sendall(data)
            assert b" 202 " in far.recv(BYTES)
        self.act()
        self.acted.set()

    def close(self) -> None:
        """Accept no more."""
        self._listener.close()


def start(stack: Stack, tap: Tap, held: socket.socket) -> Server:
    """Start a gate that gets its socket from this process, so that no connection is refused."""
    command = passing(stack.gate_command(tap.url), {"listen": held})
    return stack.started(command, passed=[held.fileno()])


def until_released(stack: Stack) -> float:
    """Wait until all units are released; return how long that took. Raises AssertionError."""
    began, pause = time.monotonic(), threading.Event()
    while leases := stack.leases():
        assert time.monotonic() - began < RELEASE_SECONDS_MAX, leases
        pause.wait(1.0)
    return time.monotonic() - began


def check_kills(ironic: Ironic, stack: Stack, nodes: list[str], limit: int) -> None:
    """Deploy nodes while the gate is killed at both moments; the limit holds, and no unit leaks."""
    begin = ironic.log.stat().st_size
    with socket.create_server(("127.0.0.1", 0), backlog=128) as held, Tap(ironic.url) as tap:
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        gates = [start(stack, tap, held)]

        def kill() -> None:
            os.killpg(gates[-1].pid, signal.SIGKILL)

        tap.act = kill
        failures: dict[str, str] = {}
        with Observer(ironic.url) as watch:
            worker = threading.Thread(
                target=lambda: failures.update(workers.run(nodes, WORKERS, workers.metal3(url)))
            )
            worker.start()
            for moment in Moment:
                tap.acted.clear()
                tap.at = moment
                assert tap.acted.wait(60), f"no request {moment.value}"
                gates[-1].process.wait()
                gates.append(start(stack, tap, held))
            worker.join()
        left = until_released(stack)
        for gate in gates:
            gate.stop()
    most = max(watch.most, most_by_log(ironic.log, begin))
    print_line(f"e2e: gate: killed {len(gates) - 1} times, at most {most} nodes were busy at once")
    print_line(f"e2e: gate: the last unit was released {left:.0f} s after the last deployment")
    assert not failures, failures
    assert most <= limit, most
