"""What Prometheus is told: requests by face and outcome, the transactor's work, the index.

Requests are counted in plain dicts and turned into Prometheus' form only when somebody asks.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable

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

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram's buckets."""


class Requests:
    """How many requests were answered, how, and how long it took."""

    def __init__(self) -> None:
        self.answered: Counter[tuple[str, str, int]] = Counter()
        self.buckets: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()

    def add(self, face: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request; status 0: the client went away first."""
        self.answered[face, method, status] += 1
        buckets = self.buckets.get(face)
        if buckets is None:
            buckets = self.buckets[face] = [0] * (len(SECONDS) + 1)
        buckets[bisect_left(SECONDS, seconds)] += 1
        self.seconds[face] += seconds  # type: ignore[assignment] # a Counter counts floats as well


class Metrics(Collector):
    """Everything this process tells Prometheus."""

    def __init__(self, service: Service) -> None:
        self.requests = Requests()
        self.connections: Callable[[], int] = lambda: 0
        """How many connections are open; set once there is a server."""
        self._service = service
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def add(self, collector: Collector) -> None:
        """Tell what somebody else collects, too."""
        self._registry.register(collector)

    def text(self) -> tuple[bytes, str]:
        """Return all metrics and their content type."""
        return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4

    def collect(self) -> Iterable[Metric]:
        """Yield our own metrics; called by the registry."""
        yield GaugeMetricFamily("moorage_up", "The process serves.", value=1)
        build = GaugeMetricFamily("moorage_build", "Which Moorage this is.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield from self._of_requests()
        yield from self._of_service()

    def _of_requests(self) -> Iterable[Metric]:
        answered = CounterMetricFamily(
            "moorage_http_requests", "Requests answered.", labels=["face", "method", "status"]
        )
        for (face, method, status), count in self.requests.answered.items():
            answered.add_metric([face, method, str(status)], count)
        yield answered
        taken = HistogramMetricFamily(
            "moorage_http_request_seconds", "Seconds to answer a request.", labels=["face"]
        )
        for face, buckets in self.requests.buckets.items():
            taken.add_metric([face], cumulated(buckets), self.requests.seconds[face])
        yield taken

    def _of_service(self) -> Iterable[Metric]:
        transactor, index = self._service.transactor, self._service.index
        for name, help_text, value in (
            ("moorage_batches", "Batches decided.", transactor.counters.batches),
            ("moorage_changes", "Change requests decided.", transactor.counters.requests),
            ("moorage_changes_refused", "Requests refused by a rule.", transactor.counters.refused),
            ("moorage_batch_retries", "Batches decided again.", transactor.counters.retries),
            ("moorage_changes_failed", "Requests lost to a fault.", transactor.counters.failed),
            (
                "moorage_overloads",
                "Requests the queue had no room for.",
                transactor.counters.overloaded,
            ),
        ):
            yield CounterMetricFamily(name, help_text, value=value)
        for name, help_text, value in (
            ("moorage_changes_waiting", "Change requests in the queue.", transactor.waiting),
            ("moorage_http_connections", "Connections open.", self.connections()),
            ("moorage_revision", "The logical clock.", index.revision),
            ("moorage_epoch", "Restores from a backup so far.", index.epoch),
            ("moorage_providers", "Providers in the index.", len(index.fleet)),
        ):
            yield GaugeMetricFamily(name, help_text, value=value)


def cumulated(buckets: list[int], bounds: tuple[float, ...] = SECONDS) -> list[tuple[str, float]]:
    """Return what Prometheus wants of a histogram: for each bound how many are not above it."""
    shown, total = [], 0
    for bound, count in zip((*map(str, bounds), "+Inf"), buckets, strict=True):
        total += count
        shown.append((bound, float(total)))
    return shown
