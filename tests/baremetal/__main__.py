"""`make baremetal`: the stock clients deploy nodes of a real Ironic, which is killed on the way.

It runs in the environment of the clients. Each step is an assertion; the first that fails ends it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openstack

from tests.baremetal.contract import check_contract, record
from tests.baremetal.disguised import check_disguises
from tests.baremetal.gate import check_gate
from tests.baremetal.rules import check_double, check_spellings, check_states
from tests.support.ironic import PROGRAMS, Ironic, Setup
from tests.support.suites import print_line

SETUP = Setup(nodes=5, delays={"deploy": "2"})
ONE_AT_A_TIME = Setup(nodes=5, delays={"deploy": "2"}, max_concurrent_deploy=1)
NODES = [f"node-{number}" for number in range(1, 6)]
OPENSTACK = Path(sys.executable).parent / "openstack"
CHANGE_SECONDS = 60
FULL = 503
"""Ironic's answer to a deployment above its limit."""


def expect(found: Any, wanted: Any) -> None:
    """Raise AssertionError unless both are equal."""
    assert found == wanted, f"{found!r} instead of {wanted!r}"


class Clients:
    """The stock clients of one Ironic, without Keystone: openstacksdk and the openstack command."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._sdk = openstack.connect(auth_type="none", endpoint=url).baremetal

    def states(self) -> dict[str, str]:
        """Return the state of each node, as the SDK lists them."""
        return {node.name: node.provision_state for node in self._sdk.nodes()}

    def listed(self) -> dict[str, str]:
        """Return the state of each node, as the command lists them."""
        done = subprocess.run(
            [OPENSTACK, "baremetal", "node", "list", "-f", "json"],
            env={**os.environ, "OS_AUTH_TYPE": "none", "OS_ENDPOINT": self._url},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return {node["name"]: node["provision_state"] for node in json.loads(done.stdout)}

    def ask(self, node: str, target: str) -> str:
        """Ask for a change of a node; return the state in which it is then."""
        self._sdk.set_node_provision_state(node, target)
        state: str = self._sdk.get_node(node).provision_state
        return state

    def wait(self, node: str, state: str) -> None:
        """Wait until a node is in a state. Raises an error of the SDK if it fails or is late."""
        self._sdk.wait_for_nodes_provision_state([node], state, timeout=CHANGE_SECONDS)


def deployed(clients: Clients) -> None:
    """A node becomes active by way of `deploying`, and available again."""
    available = dict.fromkeys(NODES, "available")
    expect(clients.states(), available)
    expect(clients.listed(), available)
    expect(clients.ask("node-1", "active"), "deploying")
    clients.wait("node-1", "active")
    expect(clients.listed(), {**available, "node-1": "active"})
    expect(clients.ask("node-1", "deleted"), "deleting")
    clients.wait("node-1", "available")


def killed(ironic: Ironic, clients: Clients) -> None:
    """After SIGKILL the nodes are there, and what was being deployed has failed."""
    clients.ask("node-1", "active")
    clients.wait("node-1", "active")
    expect(clients.ask("node-2", "active"), "deploying")
    ironic.kill()
    ironic.start(ONE_AT_A_TIME)
    left = {**dict.fromkeys(NODES, "available"), "node-1": "active", "node-2": "deploy failed"}
    expect(clients.states(), left)


def limited(ironic: Ironic, clients: Clients) -> None:
    """Ironic refuses a deployment above its own limit; the setup of the new start applies."""
    expect(clients.ask("node-3", "active"), "deploying")
    status, answer = ironic.ask("node-4", "active")
    expect(status, FULL)
    assert "concurrent" in str(answer), answer
    clients.wait("node-3", "active")


def _nginx(arguments: Sequence[str]) -> Path:
    """Return the nginx of `--nginx PROGRAM`."""
    return Path(arguments[arguments.index("--nginx") + 1])


def main(arguments: Sequence[str]) -> int:
    """Run all steps in a temporary folder, and say how long they took.

    With `--record` only write down what Ironic answers, for its double.
    """
    if "--record" in arguments:
        print_line(f"e2e: baremetal: recorded the answers to {record()} steps")
        return 0
    began = time.monotonic()
    with TemporaryDirectory(prefix="moorage-ironic-") as folder, Ironic(Path(folder), SETUP) as it:
        clients = Clients(it.url)
        deployed(clients)
        check_states(PROGRAMS)
        check_double(PROGRAMS)
        understood = check_spellings(it.url)
        clients.ask("node-1", "provide")
        clients.wait("node-1", "available")
        check_gate(it, Path(folder))
        check_disguises(it, Path(folder), _nginx(arguments))
        clients.ask("node-1", "provide")
        clients.wait("node-1", "available")
        killed(it, clients)
        limited(it, clients)
    steps = check_contract()
    print_line(f"e2e: baremetal: {understood} spellings of a request are understood alike")
    print_line(f"e2e: baremetal: Ironic answers {steps} steps as recorded for its double")
    print_line(f"e2e: baremetal: the stock clients work, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
