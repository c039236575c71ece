"""`make gate`: unmodified clients deploy 50 nodes of a real Ironic through the gate, 5 at a time.

A separate observer reads Ironic's own list and its log. The naive limiter and Ironic's own limit
run in the same test, and must be seen to exceed the limit. At the end the commands of the guide
are typed, from `make gated-ironic` on. It runs in the environment of the
clients.
"""

import argparse
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.gate import clients, controls, workers
from tests.gate.first_wave import check_first_wave
from tests.gate.guide import check_long, check_short
from tests.gate.kills import check_kills
from tests.gate.observer import Observer, most_by_log
from tests.gate.patience import check_patience
from tests.gate.session import check_session
from tests.gate.stack import Stack
from tests.support.ironic import ROOT, Ironic, Setup
from tests.support.suites import print_line

LIMIT = 5
NODES = [f"node-{number}" for number in range(1, 51)]
FEW = NODES[:25]
"""Nodes of each control: enough for 20 workers."""
KILLED = 15
"""Nodes that are deployed while the gate is killed."""
WORKERS = 20
SOAK_MINUTES = 10.0
"""How long a deployment takes in the first wave of the soak."""
SLACK = 1.25
"""The run may take this many times as long as the nodes one after the other, `LIMIT` at a time."""


def alone(ironic: Ironic) -> float:
    """Deploy one node; return how long it took."""
    raw = workers.Raw(ironic.url)
    began = time.monotonic()
    assert raw.ask(NODES[0], "active") == 202
    raw.until(NODES[0], "active")
    took = time.monotonic() - began
    controls.undeploy(ironic, NODES[:1])
    return took


def overshoots(ironic: Ironic, what: str, deploy: Callable[[str, int], workers.Deploy]) -> None:
    """Check that a limit which does not hold is seen not to hold."""
    most = controls.most_busy(ironic, FEW, deploy(ironic.url, LIMIT), WORKERS)
    print_line(f"control: {what} had {most} nodes busy at once, with a limit of {LIMIT}")
    assert most > LIMIT, f"{what} kept the limit: this run would prove nothing"
    controls.undeploy(ironic, FEW)


def nova(url: str, nodes: list[str], nova_python: Path) -> dict[str, str]:
    """Deploy nodes by nova's adapter, in its environment; return what failed."""
    done = subprocess.run(
        [nova_python, "-m", "tests.gate.nova_adapter", url, *nodes],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )
    return {"nova": done.stdout + done.stderr[-2_000:]} if done.returncode else {}


def mixed(url: str, nova_python: Path) -> dict[str, dict[str, str]]:
    """Deploy all nodes by four kinds of clients at once; return what failed, by kind."""
    failures: dict[str, dict[str, str]] = {}
    parts: dict[str, Callable[[], dict[str, str]]] = {
        "openstacksdk": lambda: workers.run(NODES[:26], WORKERS, clients.sdk(url)),
        "python-ironicclient": lambda: workers.run(NODES[26:34], 4, clients.command(url)),
        "nova": lambda: nova(url, NODES[34:42], nova_python),
        "metal3": lambda: workers.run(NODES[42:], 4, workers.metal3(url)),
    }

    def one(kind: str) -> None:
        failures[kind] = parts[kind]()

    threads = [threading.Thread(target=one, args=(kind,)) for kind in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def limited(ironic: Ironic, url: str, nova_python: Path, took_alone: float) -> None:
    """Check that the limit holds, that no client fails, and that no unit is idle for long."""
    begin, began = ironic.log.stat().st_size, time.monotonic()
    with Observer(ironic.url) as watch:
        failures = mixed(url, nova_python)
    took = time.monotonic() - began
    most = max(watch.most, most_by_log(ironic.log, begin))
    ideal = len(NODES) / LIMIT * took_alone
    print_line(f"e2e: gate: at most {most} of {len(NODES)} nodes were busy at once, limit {LIMIT}")
    print_line(f"e2e: gate: {took:.0f} s, {took / ideal:.2f} times the ideal {ideal:.0f} s")
    assert not any(failures.values()), failures
    assert most <= LIMIT, most
    assert set(ironic.states().values()) == {"active"}, ironic.states()
    assert took <= SLACK * ideal


def guide() -> None:
    """Type the commands of the guide for newcomers, each tour in a folder of its own."""
    began = time.monotonic()
    with TemporaryDirectory(prefix="moorage-guide-") as folder:
        waited = check_short(Path(folder))
    with TemporaryDirectory(prefix="moorage-guide-") as folder:
        commands = check_long(Path(folder))
    took = time.monotonic() - began
    print_line(f"e2e: gate: one command starts all, and {waited} of 20 nodes were seen to wait")
    print_line(f"e2e: gate: {commands} commands of the guide work as shown, in {took:.0f} s")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__)
    parser.add_argument("--moorage", default=".venv/bin/moorage", help="the command to test")
    parser.add_argument("--nova", type=Path, default=Path(".venv-nova/bin/python"))
    parser.add_argument("--no-controls", action="store_true", help="only the gate")
    return parser.parse_args()


def restarted(ironic: Ironic, setup: Setup) -> None:
    """Start Ironic again with another setup."""
    ironic.stop()
    ironic.start(setup)


def main() -> int:
    """Run all steps in a temporary folder, and say how long they took."""
    asked, began = arguments(), time.monotonic()
    setup, moorage = Setup(nodes=len(NODES)), shlex.split(asked.moorage)
    with (
        TemporaryDirectory(prefix="moorage-gate-") as name,
        Ironic(Path(name) / "ironic", setup) as ironic,
    ):
        folder = Path(name)
        took_alone = alone(ironic)
        if not asked.no_controls:
            overshoots(ironic, "counting, then starting,", controls.count_then_start)
            restarted(ironic, replace(setup, max_concurrent_deploy=LIMIT))
            overshoots(ironic, "Ironic's own limit", lambda url, _: controls.by_ironic(url))
            restarted(ironic, setup)
        with Stack(moorage, folder / "limited", LIMIT) as stack, stack.gate(ironic.url) as gate:
            limited(ironic, gate.url, asked.nova.absolute(), took_alone)
            controls.undeploy(ironic, FEW)
            restarted(ironic, replace(setup, delays={"deploy": "1"}))
            answers = check_session(ironic, gate.url, FEW[0])
            print_line(f"e2e: gate: {answers} answers to openstacksdk are the same without it")
        with Stack(moorage, folder / "killed", LIMIT) as stack:
            check_kills(ironic, stack, FEW[:KILLED], LIMIT)
    check_patience(asked.nova.absolute())
    if os.environ.get("MOORAGE_SOAK"):
        check_first_wave(moorage, SOAK_MINUTES, expected=False)
    guide()
    print_line(f"e2e: gate: the limit holds, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
