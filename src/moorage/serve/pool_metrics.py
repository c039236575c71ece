"""What Prometheus is told of admission: every pool, who waits, what was granted and has ended."""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.core.admission.model import Pool
from moorage.service.admission.service import Admission

_GAUGES: tuple[tuple[str, str, Callable[[Pool], int | None]], ...] = (
    ("moorage_pool_limit", "Units the pool may grant.", lambda pool: pool.spec.limit),
    ("moorage_pool_occupied", "Units that leases hold.", lambda pool: pool.occupied),
    ("moorage_pool_waiting", "Tickets in the pool's line.", lambda pool: pool.waiting),
    ("moorage_pool_paused", "The pool grants nothing.", lambda pool: int(pool.paused)),
)


class PoolMetrics(Collector):
    """The pools as last heard of; counters are of what this process has committed."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        tally = self._admission.tally
        yield GaugeMetricFamily(
            "moorage_waiters", "Clients waiting for a grant.", value=self._admission.waiting.count
        )
        for name, help_text, value in _GAUGES:
            gauge = GaugeMetricFamily(name, help_text, labels=["pool"])
            for pool in tally.pools.values():
                told = value(pool)
                if told is not None:
                    gauge.add_metric([pool.name], told)
            yield gauge
        unheard = GaugeMetricFamily(
            "moorage_pool_unheard", "Leases that occupy unheard.", labels=["pool"]
        )
        for name in tally.pools:
            unheard.add_metric([name], tally.unheard.get(name, 0))
        yield unheard
        granted = CounterMetricFamily(
            "moorage_leases_granted", "Leases granted here.", labels=["pool"]
        )
        for name, count in tally.granted.items():
            granted.add_metric([name], count)
        yield granted
        ended = CounterMetricFamily(
            "moorage_leases_ended", "Leases and tickets ended here.", labels=["pool", "cause"]
        )
        for (name, cause), count in tally.ended.items():
            ended.add_metric([name, cause], count)
        yield ended
