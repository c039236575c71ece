"""The gate's metrics for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from moorage.integrations.ironic.reconcile import NODES, Picture
from moorage.integrations.provisioning.pass_metrics import PassMetrics

WAITS = (0.1, 0.5, 1, 2, 5, 10, 20, 60)


class GateMetrics:
    """All metrics of one gate."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.held = Gauge("moorage_gate_held", "Requests that wait for a unit", registry=registry)
        self.decided = Counter(
            "moorage_gate_decided",
            "Requests for a provision state, by verb and outcome",
            ["verb", "outcome"],
            registry=registry,
        )
        self.passed = Counter(
            "moorage_gate_passed", "Requests that were not decided", registry=registry
        )
        self.refused = Counter(
            "moorage_gate_refused",
            "Refused requests that could be read in two ways",
            registry=registry,
        )
        self.forwarding = Gauge(
            "moorage_gate_forwarding",
            "Decided requests that Ironic is answering",
            registry=registry,
        )
        self.waits = Histogram(
            "moorage_gate_wait_seconds",
            "How long requests waited for a unit",
            buckets=WAITS,
            registry=registry,
        )
        self.passes = PassMetrics(NODES, Picture())
        registry.register(self.passes)
