"""Nova's periodic task for many nodes: its requests are timed. Runs in the environment with nova.

`python -m bench.reporters.nova_compute URL TOKEN` answers `{"cycle": CYCLE}`: what nova-compute
does with Placement for each node in `update_available_resource`, by nova's own resource tracker.
"""

import sys
import time
from collections import Counter
from typing import Any

from keystoneauth1.adapter import Adapter
from nova import objects

from tests.reporters.nova_side import NovaSide, answer_all

EXPIRED_SECONDS = 1_000
"""More than nova's `[compute]resource_provider_association_refresh`, 300 seconds."""


class TimedAdapter(Adapter):
    """Counts requests, and the time until each is answered."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seconds = 0.0
        self.counts: Counter[str] = Counter()

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        """Send a request."""
        began = time.perf_counter()
        try:
            return super().request(url, method, **kwargs)
        finally:
            self.seconds += time.perf_counter() - began
            self.counts[method] += 1


class Compute(NovaSide):
    """One nova-compute with many nodes."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url, token, TimedAdapter)
        self.adapter = self.client._client
        self._subtree = self.client.get_provider_subtree_and_ensure_root

    def refreshed(self, cycle: dict[str, Any]) -> dict[str, Any]:
        """Report all nodes, one after the other; return the times and the counts.

        Args:
            cycle: `nodes`, as Ironic's API describes them; `expired`: the associations that nova
                knows are too old; `whole_tree`: copy what is known of all nodes for each node, as
                nova did before release 34.
        """
        nodes = cycle["nodes"]
        self.cache(nodes)
        self.tracker.tracked_instances = {node["instance_uuid"] for node in nodes}
        if cycle["expired"]:
            times = self.client._association_refresh_time
            times.update({uuid: at - EXPIRED_SECONDS for uuid, at in times.items()})
        self.client.get_provider_subtree_and_ensure_root = (
            self.client.get_provider_tree_and_ensure_root if cycle["whole_tree"] else self._subtree
        )
        self.adapter.seconds = 0.0
        self.adapter.counts.clear()
        self.client.counts.clear()
        began, spent = time.perf_counter(), time.process_time()
        for node in nodes:
            compute = objects.ComputeNode(uuid=node["uuid"], hypervisor_hostname=node["uuid"])
            self.tracker._remove_deleted_instances_allocations(self.context, compute, [], {})
            self.update(node["uuid"])
        return {
            "seconds": time.perf_counter() - began,
            "processor_seconds": time.process_time() - spent,
            "requests": sum(self.adapter.counts.values()),
            "request_seconds": self.adapter.seconds,
            "writes": sum(n for method, n in self.adapter.counts.items() if method != "GET"),
            "conflicts": self.client.counts["conflicts"],
        }


def main() -> None:
    """Answer until the input ends."""
    answer_all({"cycle": Compute(*sys.argv[1:]).refreshed})


if __name__ == "__main__":
    main()
