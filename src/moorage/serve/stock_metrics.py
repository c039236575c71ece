"""Prometheus metrics of the ledger's inventories, by resource class."""

from collections.abc import Iterable

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.service.ledger.stock import Stock


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
