"""Unmodified clients with their defaults: openstacksdk, and the openstack command.

It runs in the environment of the clients.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import openstack

from tests.gate import workers

ACTIVE_SECONDS_MAX = 240
OPENSTACK = Path(sys.executable).parent / "openstack"


def environment(url: str) -> dict[str, str]:
    """Return the environment in which the command talks to an address, without Keystone."""
    return {**os.environ, "OS_AUTH_TYPE": "none", "OS_ENDPOINT": url}


def sdk(url: str) -> workers.Deploy:
    """Return openstacksdk; each worker has a connection of its own."""
    own = threading.local()

    def deploy(node: str) -> None:
        if not hasattr(own, "client"):
            own.client = openstack.connect(auth_type="none", endpoint=url).baremetal
        own.client.set_node_provision_state(node, "active")
        own.client.wait_for_nodes_provision_state([node], "active", timeout=ACTIVE_SECONDS_MAX)

    return deploy


def command(url: str) -> workers.Deploy:
    """Return `openstack baremetal node deploy`, that is python-ironicclient."""
    raw = workers.Raw(url)

    def deploy(node: str) -> None:
        run([str(OPENSTACK), "baremetal", "node", "deploy", node], environment(url))
        raw.until(node, "active")

    return deploy


def run(command_line: list[str], env: Mapping[str, str]) -> None:
    """Run a command. Raises AssertionError with its error if it fails."""
    done = subprocess.run(command_line, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1_000:]
