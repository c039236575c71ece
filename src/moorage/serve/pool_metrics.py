"""Prometheus metrics of admission: pools, waiting clients, leases granted and ended."""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.core.admission.model import Pool
from moorage.core.clock import SECOND
from moorage.serve.metrics import histogram_family
from moorage.service.admission.service import Admission
from moorage.service.admission.views import Ages

NONE = Ages()
"""Of a pool that was created after the last look."""

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
        yield from self._oldest()
        yield histogram_family(
            tally.waited,
            "moorage_lease_wait_seconds",
            "Seconds from the request to the grant, of leases granted by this process.",
            "pool",
        )
        yield histogram_family(
            tally.held,
            "moorage_lease_held_seconds",
            "Seconds from the grant to the end, of leases ended by this process.",
            "pool",
        )
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

    def _oldest(self) -> Iterable[Metric]:
        tally = self._admission.tally
        ticket = GaugeMetricFamily(
            "moorage_pool_oldest_ticket_seconds",
            "Age of the oldest ticket in the pool's line; 0: none waits.",
            labels=["pool"],
        )
        lease = GaugeMetricFamily(
            "moorage_pool_oldest_lease_seconds",
            "Seconds since the oldest grant of which units are occupied; 0: there is none.",
            labels=["pool"],
        )
        for name in tally.pools:
            ages = tally.oldest.get(name, NONE)
            ticket.add_metric([name], ages.ticket / SECOND)
            lease.add_metric([name], ages.lease / SECOND)
        yield ticket
        yield lease
