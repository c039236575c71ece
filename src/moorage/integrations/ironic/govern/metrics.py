"""The governor's metrics for Prometheus."""

from collections.abc import Callable, Iterable
from time import monotonic

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.integrations.ironic.govern.governor import Counts


class GovernorMetrics(Collector):
    """What a governor has counted."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._began = monotonic()

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        counts = self._counts
        yield GaugeMetricFamily("moorage_ironic_nodes", "Nodes.", value=counts.nodes)
        yield GaugeMetricFamily(
            "moorage_ironic_busy", "Nodes on which Ironic works.", value=counts.busy
        )
        leases = GaugeMetricFamily(
            "moorage_ironic_units", "Units that nodes have.", labels=["pool"]
        )
        for pool, units in counts.leases.items():
            leases.add_metric([pool], units)
        yield leases
        waiting = GaugeMetricFamily(
            "moorage_ironic_waiting", "Nodes that wait.", labels=["pool", "conductor"]
        )
        for (pool, conductor), number in counts.waiting.items():
            waiting.add_metric([pool, conductor], number)
        yield waiting
        for name, meaning, value in (
            ("adopted", "Nodes that were busy without a unit.", counts.adopted),
            ("released", "Units released after a reading.", counts.released),
            ("passes_failed", "Passes that failed.", counts.passes_failed),
        ):
            yield CounterMetricFamily(f"moorage_ironic_{name}", meaning, value=value)
        yield GaugeMetricFamily(
            "moorage_ironic_uncounted_nodes",
            "Busy nodes that cannot be counted.",
            value=counts.uncounted,
        )
        seen = self._began if counts.passed_at is None else counts.passed_at
        yield GaugeMetricFamily(
            "moorage_ironic_pass_age_seconds",
            "Time since the last pass that succeeded.",
            value=monotonic() - seen,
        )


def serve(counts: Counts, host: str, port: int) -> Callable[[], None]:
    """Serve metrics from a thread; return what stops it. Raises OSError."""
    registry = CollectorRegistry()
    registry.register(GovernorMetrics(counts))
    server, thread = start_http_server(port, host, registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
