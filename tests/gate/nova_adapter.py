"""Deploys nodes by the adapter that nova's driver uses, with the setting that the how-to asks for.

`python -m tests.gate.nova_adapter URL NODE...` runs in the environment with nova. Each node gets a
thread, as nova has one for each instance. It prints a line for each failure. `--retries`: another
setting, or nova's `default`; `--once`: do not wait until the nodes are active.
"""

import argparse
import sys

import nova.conf
from nova import utils

from tests.gate import workers

RETRIES = 12
"""`[ironic]status_code_retries`, see docs/howto/ironic.md."""

WORKERS = 5


def adapter(url: str, retries: str = str(RETRIES), *, once: bool = False) -> workers.Deploy:
    """Return nova's own adapter, made from its configuration."""
    configuration = nova.conf.CONF
    configuration([], project="nova", default_config_files=[])
    configuration.set_override("auth_type", "none", group="ironic")
    configuration.set_override("endpoint_override", url, group="ironic")
    if retries != "default":
        configuration.set_override("status_code_retries", int(retries), group="ironic")
    raw = workers.Raw(url)
    connection = utils.get_sdk_adapter("baremetal", True, conf_group="ironic")

    def deploy(node: str) -> None:
        connection.set_node_provision_state(node, "active", wait=False)
        if not once:
            raw.until(node, "active")

    return deploy


def main() -> int:
    """Deploy all nodes."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate.nova_adapter", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("nodes", nargs="+")
    parser.add_argument("--retries", default=str(RETRIES))
    parser.add_argument("--once", action="store_true")
    asked = parser.parse_args()
    deploy = adapter(asked.url, asked.retries, once=asked.once)
    failures = workers.run(asked.nodes, WORKERS, deploy)
    for node, error in failures.items():
        sys.stdout.write(f"{node}: {error}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
