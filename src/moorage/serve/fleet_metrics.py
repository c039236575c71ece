"""Prometheus metrics of the fleet: agents by their axes, what is desired, there and offered."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.core.fleet.model import Agent, Policy, Source, State
from moorage.core.fleet.offers import offered
from moorage.service.fleet.service import Fleet

_RESERVOIR = {
    "desired": "moorage_reservoir_desired",
    "actual": "moorage_reservoir_actual",
    "offered": "moorage_reservoir_offered",
}


FAILURE_CODES = frozenset({"hugepages_short", "hugepages_refused", "hugepages_unreadable"})
"""The codes that `moorage agent run` reports. A machine may report any text: as a label it would
make a new time series each time."""

OTHER = "other"


class FleetMetrics(Collector):
    """The last known state of the agents, with few labels: a large fleet has few groups."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        agents = [one for one in self._fleet.directory.agents() if one.state is State.ACTIVE]
        in_service = [one for one in agents if one.policy is Policy.IN_SERVICE]
        yield _counted(
            "moorage_agents",
            "Active agents.",
            ["group", "policy", "readiness", "liveness"],
            Counter(
                (one.group, one.policy.value, one.readiness.value, one.liveness.value)
                for one in agents
            ),
        )
        yield from _amounts(in_service)
        yield _counted(
            "moorage_agents_short",
            "Agents in service that have less than is desired.",
            ["group"],
            Counter((one.group,) for one in in_service if _is_short(one)),
        )
        yield _counted(
            "moorage_agent_failures",
            "Agents in service whose last report has a failure.",
            ["group", "code"],
            Counter(
                (one.group, one.failure.code if one.failure.code in FAILURE_CODES else OTHER)
                for one in in_service
                if one.failure is not None
            ),
        )
        suspect = GaugeMetricFamily(
            "moorage_group_suspect",
            "1: so many agents of the group are silent that its network is suspect.",
            labels=["group"],
        )
        for group in self._fleet.directory.groups():
            suspect.add_metric([group.name], int(group.suspect_since is not None))
        yield suspect


def _counted(
    name: str, meaning: str, labels: list[str], counts: Counter[tuple[str, ...]]
) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, meaning, labels=labels)
    for key, count in counts.items():
        gauge.add_metric(list(key), count)
    return gauge


def _amounts(agents: Iterable[Agent]) -> Iterable[GaugeMetricFamily]:
    sums: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in _RESERVOIR}
    for agent in agents:
        for part in agent.parts.values():
            for name, held in part.classes.items():
                if held.source is Source.NONE:
                    continue  # a name that only machines know would be a new time series
                key = agent.group, name
                sums["desired"][key] += held.desired
                sums["actual"][key] += held.actual
                sums["offered"][key] += offered(agent, part, held)
    for figure, metric in _RESERVOIR.items():
        gauge = GaugeMetricFamily(
            metric,
            f"Units that are {'there' if figure == 'actual' else figure} on machines in service.",
            labels=["group", "resource_class"],
        )
        for key, amount in sums[figure].items():
            gauge.add_metric(list(key), amount)
        yield gauge


def _is_short(agent: Agent) -> bool:
    return any(
        held.actual < held.desired
        for part in agent.parts.values()
        for held in part.classes.values()
    )
