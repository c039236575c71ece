"""Prometheus metrics of the fleet: agents by their axes, what is desired, there and offered."""

from collections.abc import Iterable, Sequence

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.service.fleet.service import Fleet


class FleetMetrics(Collector):
    """The last known state of the agents, with few labels: a large fleet has few groups."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        tally = self._fleet.directory.tally
        axes = ["group", "policy", "readiness", "liveness"]
        yield _gauge("moorage_agents", "Active agents.", axes, tally.agents.items())
        for name, units, sums in (
            ("moorage_reservoir_desired", "desired", tally.desired),
            ("moorage_reservoir_actual", "there", tally.actual),
            ("moorage_reservoir_offered", "offered", tally.offered),
        ):
            labels = ["group", "resource_class"]
            meaning = f"Units that are {units} on machines in service."
            yield _gauge(name, meaning, labels, sums.items())
        yield _gauge(
            "moorage_agents_short",
            "Agents in service that have less than is desired.",
            ["group"],
            (((group,), count) for group, count in tally.short.items()),
        )
        yield _gauge(
            "moorage_agent_failures",
            "Agents in service whose last report has a failure.",
            ["group", "code"],
            tally.failures.items(),
        )
        groups = self._fleet.directory.groups()
        yield _gauge(
            "moorage_group_suspect",
            "1: so many agents of the group are silent that its network is suspect.",
            ["group"],
            (((group.name,), int(group.suspect_since is not None)) for group in groups),
        )


def _gauge(
    name: str, meaning: str, labels: list[str], values: Iterable[tuple[Sequence[str], int]]
) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, meaning, labels=labels)
    for key, value in values:
        gauge.add_metric(key, value)
    return gauge
