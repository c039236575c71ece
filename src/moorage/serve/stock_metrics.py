"""Prometheus metrics of inventories, by resource class, and of how much is kept of the past."""

from collections.abc import Iterable

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.service.admission.ended import EndedLeases
from moorage.service.ledger.stock import Stock
from moorage.store.changelog_compaction import ChangelogRetention


class StockMetrics(Collector):
    """The last known sums over all providers; the number of classes is bounded."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        labels = ["resource_class"]
        # Not `_total`, with which the names of counters end.
        total = GaugeMetricFamily(
            "moorage_inventory_units", "Totals of inventories.", labels=labels
        )
        used = GaugeMetricFamily("moorage_inventory_used", "Allocated units.", labels=labels)
        for one in self._stock.classes:
            total.add_metric([one.resource_class], one.total)
            used.add_metric([one.resource_class], one.used)
        yield total
        yield used


class PastMetrics(Collector):
    """How much of the past the database has, and how much it keeps."""

    def __init__(self, ended: EndedLeases, changelog: ChangelogRetention) -> None:
        self._ended = ended
        self._changelog = changelog

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        for name, about, value in (
            ("moorage_ended_leases", "Ended leases that are kept.", self._ended.leases),
            ("moorage_ended_leases_bytes", "Their size.", self._ended.bytes),
            ("moorage_ended_leases_bytes_max", "The most of it.", self._ended.bytes_max),
            ("moorage_changes_kept_bytes", "Size of the change rows.", self._changelog.bytes),
            ("moorage_changes_bytes_max", "The most of it.", self._changelog.bytes_max),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, about, value)
