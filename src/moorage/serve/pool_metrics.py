"""Prometheus metrics of admission: pools, waiting clients, leases granted and ended."""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.core.admission.model import Pool
from moorage.service.admission.service import Admission

_GAUGES: tuple[tuple[str, str, Callable[[Pool], int | None]], ...] = (
    ("moorage_pool_limit", "Units the pool may grant.", lambda pool: pool.spec.limit),
    ("moorage_pool_occupied", "Units that leases occupy.", lambda pool: pool.occupied),
    ("moorage_pool_waiting", "Tickets in the pool's line.", lambda pool: pool.waiting),
    ("moorage_pool_paused", "1: the pool is paused.", lambda pool: int(pool.paused)),
)


class PoolMetrics(Collector):
    """The last known state of the pools; counters cover only commits of this process."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        tally = self._admission.tally
        yield GaugeMetricFamily(
            "moorage_waiters",
            "Leases and tickets whose grant or end clients wait for at this process.",
            value=self._admission.waiting.count,
        )
        for name, help_text, value in _GAUGES:
            gauge = GaugeMetricFamily(name, help_text, labels=["pool"])
            for pool in tally.pools.values():
                figure = value(pool)
                if figure is not None:
                    gauge.add_metric([pool.name], figure)
            yield gauge
        unheard = GaugeMetricFamily(
            "moorage_pool_unheard",
            "Leases that were not renewed in time and still occupy units.",
            labels=["pool"],
        )
        for name in tally.pools:
            unheard.add_metric([name], tally.unheard.get(name, 0))
        yield unheard
        granted = CounterMetricFamily(
            "moorage_leases_granted", "Leases granted by this process.", labels=["pool"]
        )
        for name, count in tally.granted.items():
            granted.add_metric([name], count)
        yield granted
        ended = CounterMetricFamily(
            "moorage_leases_ended",
            "Leases and tickets ended by this process.",
            labels=["pool", "cause"],
        )
        for (name, cause), count in tally.ended.items():
            ended.add_metric([name, cause], count)
        yield ended
