"""The first wave on real hardware: deployments of ten minutes, a new pool, real clocks.

`python -m tests.gate.first_wave` runs in the environment of the clients. `--minutes` is how long a
deployment takes. A node is being deployed when the clients come: openstacksdk with its defaults
must get its turn, `openstack baremetal` must read what to do instead.
"""

import argparse
import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.gate import clients, workers
from tests.gate.observer import Observer
from tests.gate.stack import Stack
from tests.support.ironic import Ironic, Setup
from tests.support.suites import print_line

CLIENTS = ("openstacksdk", "openstack baremetal")
ANYWHERE = ("--listen", "127.0.0.1:0")


def waited(kind: str, url: str, node: str) -> tuple[float, str]:
    """Ask for a deployment by a client; return how long it waited, and its error."""
    began = time.monotonic()
    if kind == "openstacksdk":
        import openstack

        client = openstack.connect(auth_type="none", endpoint=url).baremetal
        try:
            client.set_node_provision_state(node, "active")
        except Exception as error:
            return time.monotonic() - began, str(error)
        return time.monotonic() - began, ""
    done = subprocess.run(
        [str(clients.OPENSTACK), "baremetal", "node", "deploy", node],
        env=clients.environment(url),
        capture_output=True,
        text=True,
        check=False,
    )
    return time.monotonic() - began, done.stderr if done.returncode else ""


def check_first_wave(moorage: Sequence[str], minutes: float, *, expected: bool) -> None:
    """Let each client wait behind a deployment. Raises AssertionError: one did not as it should.

    `expected`: the gate knows how long deployments take; otherwise it believes what is typical.
    """
    seconds = round(minutes * 60)
    # The fake driver pauses once for each of its two steps.
    setup = Setup(nodes=1 + len(CLIENTS), delays={"deploy": str(seconds // 2)})
    options = ["--expected", f"{seconds}s"] if expected else []
    found: dict[str, tuple[float, str]] = {}
    with (
        TemporaryDirectory(prefix="moorage-first-wave-") as name,
        Ironic(Path(name) / "ironic", setup) as ironic,
        Stack(moorage, Path(name) / "stack", 1) as stack,
        stack.started([*stack.gate_command(ironic.url), *options, *ANYWHERE]) as gate,
    ):
        assert workers.Raw(gate.url).ask("node-1", "active") == 202

        def one(number: int, kind: str) -> None:
            found[kind] = waited(kind, gate.url, f"node-{number}")

        with Observer(ironic.url) as watch:
            threads = [threading.Thread(target=one, args=each) for each in enumerate(CLIENTS, 2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for kind, (took, error) in found.items():
            print_line(f"first wave: {kind}: {took:.0f} s; {error.strip() or 'accepted'}")
        print_line(f"first wave: at most {watch.most} busy, limit 1")
        assert watch.most == 1, watch.most
        took, error = found["openstacksdk"]
        assert not error and took >= seconds * 0.9, found
        took, error = found["openstack baremetal"]
        assert "moorage ironic rollout" in error or not error, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.gate.first_wave", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--expected", action="store_true", help="tell the gate how long they take")
    parser.add_argument("--moorage", default=".venv/bin/moorage")
    asked = parser.parse_args()
    check_first_wave(shlex.split(asked.moorage), asked.minutes, expected=asked.expected)
