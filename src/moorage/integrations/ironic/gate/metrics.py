"""What the gate counts, for Prometheus."""

from collections import Counter as Tally
from collections.abc import Callable
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from moorage.integrations.ironic.reconcile import Picture
from moorage.integrations.ironic.rules import value_of

WAITS = (0.1, 0.5, 1, 2, 5, 10, 20, 60)


class GateMetrics:
    """All metrics of one gate."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        self.held = Gauge("moorage_gate_held", "Requests that wait for a unit", registry=registry)
        self.decided = Counter(
            "moorage_gate_decided",
            "Requests for a provision state, by verb and what became of them",
            ["verb", "outcome"],
            registry=registry,
        )
        self.passed = Counter(
            "moorage_gate_passed", "Requests that were not decided", registry=registry
        )
        self.refused = Counter(
            "moorage_gate_refused", "Requests that could be read in two ways", registry=registry
        )
        self.forwarding = Gauge(
            "moorage_gate_forwarding", "Decided requests that Ironic answers", registry=registry
        )
        self.waits = Histogram(
            "moorage_gate_wait_seconds",
            "How long requests waited for a unit",
            buckets=WAITS,
            registry=registry,
        )
        self._nodes = Gauge("moorage_gate_nodes", "Nodes of Ironic", registry=registry)
        self._busy = Gauge(
            "moorage_gate_busy_nodes", "Busy nodes", ["conductor"], registry=registry
        )
        self._leases = Gauge(
            "moorage_gate_leases", "Units that hosts have", ["pool"], registry=registry
        )
        self._adopted = Counter(
            "moorage_gate_adopted", "Busy nodes that had no unit", registry=registry
        )
        self._failed = Gauge(
            "moorage_gate_uncounted_nodes", "Busy nodes that cannot be counted", registry=registry
        )
        self._age = Gauge(
            "moorage_gate_pass_age_seconds",
            "Since the last complete look at all nodes",
            registry=registry,
        )

    def age_since(self, seen: Callable[[], float | None]) -> None:
        """Show how long ago the last pass ended; `seen` is the monotonic time of its end."""
        began = monotonic()
        self._age.set_function(lambda: monotonic() - (seen() or began))

    def picture(self, picture: Picture) -> None:
        """Show what a pass has seen."""
        self._nodes.set(len(picture.nodes))
        self._failed.set(picture.failed)
        self._adopted.inc(picture.adopted)
        busy = Tally(value_of(picture.nodes[one], "conductor") or "" for one in picture.busy)
        self._busy.clear()
        for conductor, count in busy.items():
            self._busy.labels(conductor).set(count)
        self._leases.clear()
        for pool, units in picture.units.items():
            self._leases.labels(pool).set(units)

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self._registry)
