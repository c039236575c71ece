"""Nova's own driver, resource tracker and report client: what they say of Ironic's nodes.

`python -m tests.reporters.nova_side URL TOKEN` runs in the environment with nova. It answers each
line of its input with a line. `{"map": NODES}` asks what nova's driver makes of nodes, as Ironic's
API describes them; `{"cycle": NODES}` lets nova report them to Moorage, as its periodic task does.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import nova.conf
from keystoneauth1 import token_endpoint
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from nova import context, exception, objects
from nova.compute import provider_tree, resource_tracker
from nova.scheduler.client import report
from nova.virt.ironic import driver
from openstack.baremetal.v1 import node as sdk_node

Described = dict[str, Any]

HARDWARE = {"properties": {"cpu_arch": "x86_64"}}
"""Nova complains of nodes without it, and reports nothing of it."""


class ReportClient(report.SchedulerReportClient):  # type: ignore[misc]  # nova has no types
    """Nova's client, which counts what it writes and what is refused as a conflict."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__(adapter)
        self.counts: Counter[str] = Counter()

    def put(self, *args: Any, **kwargs: Any) -> Any:
        """Count the answer."""
        answer = super().put(*args, **kwargs)
        self.counts["conflicts" if answer.status_code == 409 else "writes"] += 1
        return answer


class Tracker(resource_tracker.ResourceTracker):  # type: ignore[misc]  # nova has no types
    """Nova's resource tracker, without nova's database."""

    def _sync_compute_service_disabled_trait(self, *_: Any) -> None:
        """The status of the service is in the database."""


class NovaSide:
    """One nova-compute."""

    def __init__(self, url: str, token: str, adapter: type[Adapter] = Adapter) -> None:
        configuration = nova.conf.CONF
        configuration([], project="nova", default_config_files=[])
        objects.register_all()
        self._driver = driver.IronicDriver(None)
        session = Session(auth=token_endpoint.Token(url, token))
        self.client = ReportClient(adapter(session, service_type="placement", raise_exc=False))
        self.tracker = Tracker("nova-compute", self._driver, self.client)
        self.context = context.get_admin_context()

    def mapped(self, nodes: list[Described]) -> dict[str, Any]:
        """Return inventories and traits by UUID; None: nova reports nothing."""
        self.cache(nodes)
        found: dict[str, Any] = {}
        for described in nodes:
            uuid = described["uuid"]
            tree = provider_tree.ProviderTree()
            tree.new_root(uuid, uuid, generation=0)
            try:
                self._driver.update_provider_tree(tree, uuid)
            except exception.NoResourceClass:
                found[uuid] = None
                continue
            data = tree.data(uuid)
            found[uuid] = {"inventories": data.inventory, "traits": sorted(data.traits)}
        return found

    def cycle(self, nodes: list[Described]) -> dict[str, Any]:
        """Report all nodes, one after the other; return the counts, and which nodes failed."""
        self.cache(nodes)
        self.client.counts.clear()
        failed = {}
        for described in nodes:
            uuid = described["uuid"]
            try:
                self.update(uuid)
            except Exception as error:  # each kind of failure is one of the test
                failed[uuid] = repr(error)
        return {"conflicts": 0, "writes": 0, **self.client.counts, "failed": failed}

    def update(self, uuid: str) -> None:
        """Let the resource tracker report a node. Raises what nova raises."""
        compute = objects.ComputeNode(uuid=uuid, hypervisor_hostname=uuid)
        self.tracker._update_to_placement(self.context, compute, False)

    def cache(self, nodes: list[Described]) -> None:
        """Make the driver know these nodes."""
        found = [sdk_node.Node.existing(**HARDWARE, **node) for node in nodes]
        self._driver.node_cache = {node.id: node for node in found}


def answer_all(kinds: dict[str, Callable[[Any], Any]]) -> None:
    """Answer each line of the input, which has what is asked for and its argument, with a line."""
    for line in sys.stdin:
        ((what, argument),) = json.loads(line).items()
        sys.stdout.write(json.dumps(kinds[what](argument)) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Answer until the input ends."""
    url, token = sys.argv[1:]
    side = NovaSide(url, token)
    answer_all({"map": side.mapped, "cycle": side.cycle})


if __name__ == "__main__":
    main()
