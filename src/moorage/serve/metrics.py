"""Prometheus metrics: requests by face and status, the transactor's work, the catalog.

Requests are counted in plain dicts and converted to Prometheus' types only for a scrape.
"""

from collections import Counter
from collections.abc import Callable, Iterable
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
from moorage.service.app import Service
from moorage.service.histogram import Histogram

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets for requests that do not wait."""

WAIT_SECONDS = (0.1, 1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""Upper bounds of the buckets for requests that wait on purpose."""

LONG_SECONDS = 0.02
"""Processor time from which an answer counts as expensive: that of some hundred pools."""

RESTS = 10
"""An expensive answer is reused for this many times its cost: scrapes are not authenticated."""


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
