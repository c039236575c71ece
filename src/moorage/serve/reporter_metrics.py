"""Prometheus metrics of reports: nodes by outcome, last reports, and deleted groups."""

from collections.abc import Iterable

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.core.clock import SECOND
from moorage.service.fleet.reporters import Reporters


class ReporterMetrics(Collector):
    """The reports that this process has answered. Outcomes are few, and so are groups."""

    def __init__(self, reporters: Reporters) -> None:
        self._reporters = reporters

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        nodes = CounterMetricFamily(
            "moorage_reported_nodes", "Nodes of reports to this process.", labels=["outcome"]
        )
        for outcome, count in sorted(self._reporters.outcomes.items()):
            nodes.add_metric([outcome], count)
        yield nodes
        last = GaugeMetricFamily(
            "moorage_last_report_timestamp_seconds",
            "When a member of the group last sent a report to this process.",
            labels=["group"],
        )
        for group, at in self._reporters.reported_at.items():
            last.add_metric([group], at / SECOND)
        yield last
        deleted = GaugeMetricFamily(
            "moorage_reporter_group_deleted",
            "1 for a day after the group was deleted, unless it begins again.",
            labels=["group"],
        )
        for group in sorted(self._reporters.deleted):
            deleted.add_metric([group], 1)
        yield deleted
