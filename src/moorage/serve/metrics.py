"""All Prometheus metrics: of the process, pools, inventories, what is kept, the fleet, reports.

Requests are counted in plain dicts and converted to Prometheus' types only for a scrape.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from time import monotonic, thread_time

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from moorage import __version__
from moorage.core.admission.adaptive.rule import advised
from moorage.core.admission.model import Pool
from moorage.core.clock import SECOND
from moorage.service.admission.counters import PoolCounters
from moorage.service.admission.ended import EndedLeases
from moorage.service.admission.service import Admission
from moorage.service.admission.views import Ages
from moorage.service.app import Service
from moorage.service.fleet.reporters import Reporters
from moorage.service.fleet.service import Fleet
from moorage.service.histogram import Histogram
from moorage.service.ledger.stock_metrics import Stock
from moorage.store.changelog_compaction import ChangelogRetention

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets for requests that do not wait."""

WAIT_SECONDS = (0.1, 1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""Upper bounds of the buckets for requests that wait on purpose."""

LONG_SECONDS = 0.02
"""Processor time from which an answer counts as expensive: that of some hundred pools."""

RESTS = 10
"""An expensive answer is reused for this many times its cost: scrapes are not authenticated."""

_NO_AGES = Ages()
"""Of a pool that was created after the last look."""

_POOL_GAUGES: tuple[tuple[str, str, Callable[[Pool], int | None]], ...] = (
    ("moorage_pool_limit", "Units the pool may grant.", lambda pool: pool.spec.limit),
    ("moorage_pool_occupied", "Units that leases occupy.", lambda pool: pool.occupied),
    ("moorage_pool_waiting", "Tickets in the pool's line.", lambda pool: pool.waiting),
    (
        "moorage_pool_adaptive_limit",
        "The limit that the outcomes of starts suggest; only of pools with an adaptive limit.",
        advised,
    ),
    ("moorage_pool_paused", "1: the pool is paused.", lambda pool: int(pool.paused)),
    (
        "moorage_pool_sharers",
        "Sharers with units, tickets or a debt in the pool's fair share.",
        lambda pool: None if pool.sharing is None else len(pool.sharing.sharers),
    ),
)


def rest(took: float) -> float:
    """Return for how many seconds to reuse an answer that took `took` seconds to compute."""
    return took * RESTS if took >= LONG_SECONDS else 0.0


class RequestMetrics:
    """Counts of answered requests by face, method and status, and their durations.

    Requests that wait on purpose have a separate histogram: their durations do not show the speed
    of the server.
    """

    def __init__(self) -> None:
        self.answered: Counter[tuple[str, str, int]] = Counter()
        self.prompt = Histogram(SECONDS)
        self.waits = Histogram(WAIT_SECONDS)

    def add(self, face: str, method: str, status: int, seconds: float, waited: bool) -> None:
        """Count one answered request; status 0: the client went away first."""
        self.answered[face, method, status] += 1
        (self.waits if waited else self.prompt).add(face, seconds)


class ServerMetrics(Collector):
    """All metrics of this process."""

    def __init__(self, service: Service, clock: Callable[[], float] = monotonic) -> None:
        self.requests = RequestMetrics()
        self.connections: Callable[[], int] = lambda: 0
        """Returns the number of open connections; set once the servers exist."""
        self._service = service
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._clock = clock
        self._text = b""
        self._until = 0.0
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def add(self, collector: Collector) -> None:
        """Add the metrics of another collector."""
        self._registry.register(collector)

    def text(self) -> tuple[bytes, str]:
        """Return all metrics and their content type."""
        if self._clock() >= self._until:
            begun = thread_time()
            self._text = generate_latest(self._registry)
            self._until = self._clock() + rest(thread_time() - begun)
        return self._text, CONTENT_TYPE_PLAIN_0_0_4

    def collect(self) -> Iterable[Metric]:
        """Yield our own metrics; called by the registry."""
        yield GaugeMetricFamily("moorage_up", "The process is serving.", value=1)
        build = GaugeMetricFamily("moorage_build", "The version of Moorage.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield from self._of_requests()
        yield from self._of_service()

    def _of_requests(self) -> Iterable[Metric]:
        answered = CounterMetricFamily(
            "moorage_http_requests", "Answered requests.", labels=["face", "method", "status"]
        )
        for (face, method, status), count in self.requests.answered.items():
            answered.add_metric([face, method, str(status)], count)
        yield answered
        yield histogram_family(
            self.requests.prompt,
            "moorage_http_request_seconds",
            "Seconds to answer a request, except requests that wait on purpose.",
            "face",
        )
        yield histogram_family(
            self.requests.waits,
            "moorage_http_wait_seconds",
            "Seconds to answer a request that waits on purpose.",
            "face",
        )

    def _of_service(self) -> Iterable[Metric]:
        transactor, index = self._service.transactor, self._service.index
        searches = self._service.searches
        for name, help_text, value in (
            ("moorage_batches", "Decided batches.", transactor.counters.batches),
            ("moorage_changes", "Decided change requests.", transactor.counters.requests),
            ("moorage_changes_refused", "Requests refused by a rule.", transactor.counters.refused),
            ("moorage_batch_retries", "Batches decided again.", transactor.counters.retries),
            ("moorage_changes_failed", "Requests failed by a fault.", transactor.counters.failed),
            (
                "moorage_overloads",
                "Change requests refused because the queue was full.",
                transactor.counters.overloaded,
            ),
            (
                "moorage_searches_cut",
                "Candidate answers that may be incomplete because a search ran out of steps.",
                searches.counters.cut,
            ),
            (
                "moorage_searches_given_up",
                "Searches that ran out of steps before they found anything.",
                searches.counters.given_up,
            ),
            (
                "moorage_searches_capped",
                "Candidate answers truncated at candidates_max.",
                searches.counters.capped,
            ),
            (
                "moorage_answers_refused",
                "Long answers refused because too many others were still being read.",
                self._service.unsent.refused,
            ),
        ):
            yield CounterMetricFamily(name, help_text, value=value)
        for name, help_text, value in (
            ("moorage_changes_waiting", "Change requests in the queue.", transactor.waiting),
            (
                "moorage_searches_waiting",
                "Long searches in progress or waiting.",
                searches.waiting,
            ),
            (
                "moorage_answers_unsent_bytes",
                "Memory of long answers that clients are reading, in bytes.",
                self._service.unsent.bytes,
            ),
            ("moorage_http_connections", "Open connections.", self.connections()),
            ("moorage_revision", "The revision of the ledger.", index.revision),
            (
                "moorage_epoch",
                "The time of the last restore or failover, in seconds; 1: none.",
                index.epoch,
            ),
            ("moorage_providers", "Providers in the index.", len(index.catalog)),
        ):
            yield GaugeMetricFamily(name, help_text, value=value)


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
        for name, meaning, value in _POOL_GAUGES:
            figures = ((pool.name, value(pool)) for pool in tally.pools.values())
            known = (((pool,), figure) for pool, figure in figures if figure is not None)
            yield _labelled(GaugeMetricFamily, name, meaning, ["pool"], known)
        yield _labelled(
            GaugeMetricFamily,
            "moorage_pool_unheard",
            "Leases that were not renewed in time and still occupy units.",
            ["pool"],
            (((name,), tally.unheard.get(name, 0)) for name in tally.pools),
        )
        ages = {name: tally.oldest.get(name, _NO_AGES) for name in tally.pools}
        yield _labelled(
            GaugeMetricFamily,
            "moorage_pool_oldest_ticket_seconds",
            "Age of the oldest ticket in the pool's line; 0: none waits.",
            ["pool"],
            (((name,), one.ticket / SECOND) for name, one in ages.items()),
        )
        yield _labelled(
            GaugeMetricFamily,
            "moorage_pool_oldest_lease_seconds",
            "Seconds since the oldest grant whose units are still occupied; 0: there is none.",
            ["pool"],
            (((name,), one.lease / SECOND) for name, one in ages.items()),
        )
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
        yield from _counts(tally)


def _counts(tally: PoolCounters) -> Iterable[Metric]:
    """Yield what this process has done with leases."""
    yield _labelled(
        CounterMetricFamily,
        "moorage_leases_granted",
        "Leases granted by this process.",
        ["pool"],
        (((name,), count) for name, count in tally.granted.items()),
    )
    yield _labelled(
        CounterMetricFamily,
        "moorage_leases_preempted",
        "Leases that this process has asked to stop for another ticket.",
        ["pool", "for_pool", "rule"],
        tally.preempted.items(),
    )
    yield _labelled(
        CounterMetricFamily,
        "moorage_leases_ended",
        "Leases and tickets ended by this process.",
        ["pool", "cause"],
        tally.ended.items(),
    )


class StockMetrics(Collector):
    """The last known sums over all providers; the number of classes is bounded."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        classes, labels = self._stock.classes, ["resource_class"]
        # Not `_total`, with which the names of counters end.
        yield _labelled(
            GaugeMetricFamily,
            "moorage_inventory_units",
            "Totals of inventories.",
            labels,
            (((one.resource_class,), one.total) for one in classes),
        )
        yield _labelled(
            GaugeMetricFamily,
            "moorage_inventory_used",
            "Allocated units.",
            labels,
            (((one.resource_class,), one.used) for one in classes),
        )


class PastMetrics(Collector):
    """How much of the past the database has, and how much it keeps."""

    def __init__(self, ended: EndedLeases, changelog: ChangelogRetention) -> None:
        self._ended = ended
        self._changelog = changelog

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        for name, about, value in (
            ("moorage_ended_leases", "Ended leases that are kept.", self._ended.leases),
            ("moorage_ended_leases_bytes", "Size of the kept ended leases.", self._ended.bytes),
            (
                "moorage_ended_leases_bytes_max",
                "Largest size of the kept ended leases.",
                self._ended.bytes_max,
            ),
            ("moorage_changes_kept_bytes", "Size of the change rows.", self._changelog.bytes),
            (
                "moorage_changes_bytes_max",
                "Largest size of the change rows.",
                self._changelog.bytes_max,
            ),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, about, value)


class FleetMetrics(Collector):
    """The last known state of the agents, with few labels: a large fleet has few groups."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        tally = self._fleet.directory.tally
        groups = self._fleet.directory.groups()
        classes = ["group", "resource_class"]
        for name, meaning, labels, values in (
            (
                "moorage_agents",
                "Active agents.",
                ["group", "policy", "readiness", "liveness"],
                tally.agents.items(),
            ),
            *(
                (name, f"Units that are {units} on machines in service.", classes, sums.items())
                for name, units, sums in (
                    ("moorage_reservoir_desired", "desired", tally.desired),
                    ("moorage_reservoir_actual", "there", tally.actual),
                    ("moorage_reservoir_offered", "offered", tally.offered),
                )
            ),
            (
                "moorage_agents_short",
                "Agents in service that have less than is desired.",
                ["group"],
                (((group,), count) for group, count in tally.short.items()),
            ),
            (
                "moorage_agent_failures",
                "Agents in service whose last report has a failure.",
                ["group", "code"],
                tally.failures.items(),
            ),
            (
                "moorage_group_suspect",
                "1: so many agents of the group are silent that its network is suspect.",
                ["group"],
                (((group.name,), int(group.suspect_since is not None)) for group in groups),
            ),
        ):
            yield _labelled(GaugeMetricFamily, name, meaning, labels, values)


class ReporterMetrics(Collector):
    """The reports that this process has answered. Outcomes are few, and so are groups."""

    def __init__(self, reporters: Reporters) -> None:
        self._reporters = reporters

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        yield _labelled(
            CounterMetricFamily,
            "moorage_reported_nodes",
            "Nodes of reports to this process.",
            ["outcome"],
            (((outcome,), count) for outcome, count in sorted(self._reporters.outcomes.items())),
        )
        yield _labelled(
            GaugeMetricFamily,
            "moorage_last_report_timestamp_seconds",
            "When a member of the group last sent a report to this process.",
            ["group"],
            (((group,), at / SECOND) for group, at in self._reporters.reported_at.items()),
        )
        yield _labelled(
            GaugeMetricFamily,
            "moorage_reporter_group_deleted",
            "1 for a day after the group was deleted, unless the group begins again.",
            ["group"],
            (((group,), 1) for group in sorted(self._reporters.deleted)),
        )


def _labelled(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    meaning: str,
    labels: list[str],
    values: Iterable[tuple[Sequence[str], float]],
) -> Metric:
    """Return a metric with one value for each combination of labels."""
    family = kind(name, meaning, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def histogram_family(
    histogram: Histogram, name: str, meaning: str, label: str
) -> HistogramMetricFamily:
    """Return a histogram as a Prometheus metric."""
    family = HistogramMetricFamily(name, meaning, labels=[label])
    for one in histogram:
        family.add_metric([one.label], cumulated(one.counts, histogram.bounds), one.seconds)
    return family


def cumulated(buckets: list[int], bounds: tuple[float, ...]) -> list[tuple[str, float]]:
    """Return cumulative buckets: for each upper bound, the number of values not above it."""
    shown, total = [], 0
    for bound, count in zip((*map(str, bounds), "+Inf"), buckets, strict=True):
        total += count
        shown.append((bound, float(total)))
    return shown
