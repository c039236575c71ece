"""The governor's metrics for Prometheus."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from moorage.integrations.ironic.pass_metrics import PassMetrics
from moorage.integrations.provisioning.rules import value_of
from moorage.wire.admission import Lease


class GovernorMetrics(PassMetrics):
    """What a governor shows: its passes, and the nodes that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._waiting: Counter[tuple[str, str]] = Counter()
        """By pool and conductor."""

    def waits(self, tickets: Mapping[str, Collection[Lease]]) -> None:
        """Show the tickets of nodes, by the UUID of the node; those of other Ironics do not count.

        Call it after `passed`.
        """
        nodes = self.picture.nodes
        self._waiting = Counter(
            (need.pool, value_of(nodes[uuid], "conductor") or "")
            for uuid, waiting in tickets.items()
            if uuid in nodes
            for ticket in waiting
            for need in ticket.needs
        )

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        yield from super().collect()
        waiting = GaugeMetricFamily(
            "moorage_ironic_waiting_nodes", "Nodes that wait.", labels=["pool", "conductor"]
        )
        for labels, count in self._waiting.items():
            waiting.add_metric(labels, count)
        yield waiting
