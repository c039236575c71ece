"""Counts of all agents, kept up to date as they change: a scrape of metrics reads no agent."""

from collections import Counter
from collections.abc import Hashable
from typing import TypeVar

from moorage.core.fleet.liveness import GroupCount
from moorage.core.fleet.model import Agent, Liveness, Policy, Source, State
from moorage.core.fleet.offers import offered

FAILURE_CODES = frozenset({"hugepages_short", "hugepages_refused", "hugepages_unreadable"})
"""The codes that `moorage agent run` reports. A machine may report any text: as the label of a
metric it would make a new time series each time."""

OTHER = "other"

K = TypeVar("K", bound=Hashable)

Reservoir = tuple[str, str]
"""A group and a resource class."""


class Tally:
    """Counts of agents that are not decommissioned. No counter has entries of 0 agents."""

    def __init__(self) -> None:
        self.agents: Counter[tuple[str, str, str, str]] = Counter()
        """By group, policy, readiness and liveness."""
        self.short: Counter[str] = Counter()
        """Those in service that have less than is desired, by group."""
        self.failures: Counter[tuple[str, str]] = Counter()
        """Those in service whose last report has a failure, by group and code or `OTHER`."""
        self.reservoirs: Counter[Reservoir] = Counter()
        """How many parts of machines in service have a class."""
        self.desired: Counter[Reservoir] = Counter()
        self.actual: Counter[Reservoir] = Counter()
        self.offered: Counter[Reservoir] = Counter()
        """Sums of units over the parts of `reservoirs`; an entry may be 0."""
        self._members: Counter[tuple[str, Liveness]] = Counter()

    def change(self, before: Agent | None, after: Agent | None) -> None:
        """Count an agent as it is now, None: it is gone; `before` as it was counted, None: new."""
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, 1)

    def groups_in_service(self) -> set[str]:
        """Return the groups that have registered members in service."""
        return {group for group, _ in self._members}

    def members(self, group: str) -> GroupCount:
        """Count the registered members of a group that are in service and not lost."""
        late = self._members[group, Liveness.LATE]
        return GroupCount(self._members[group, Liveness.FRESH] + late, late)

    def _count(self, agent: Agent, by: int) -> None:
        if agent.state is not State.ACTIVE:
            return
        group = agent.group
        axes = (group, agent.policy.value, agent.readiness.value, agent.liveness.value)
        _add(self.agents, axes, by)
        if agent.policy is not Policy.IN_SERVICE:
            return
        if agent.boot_id is not None:
            _add(self._members, (group, agent.liveness), by)
        if agent.failure is not None:
            code = agent.failure.code if agent.failure.code in FAILURE_CODES else OTHER
            _add(self.failures, (group, code), by)
        if self._count_parts(agent, by):
            _add(self.short, group, by)

    def _count_parts(self, agent: Agent, by: int) -> bool:
        """Count what a machine has; return whether it has less than is desired."""
        short = False
        for part in agent.parts.values():
            for name, held in part.classes.items():
                if held.source is Source.NONE:
                    continue  # a name that only machines know would be a new time series, too
                key = agent.group, name
                self.desired[key] += by * held.desired
                self.actual[key] += by * held.actual
                self.offered[key] += by * offered(agent, part, held)
                if not _add(self.reservoirs, key, by):
                    del self.desired[key], self.actual[key], self.offered[key]
                short = short or held.actual < held.desired
        return short


def _add(counter: Counter[K], key: K, by: int) -> int:
    """Add to a count, and forget it at 0; return the count."""
    count = counter[key] + by
    if count:
        counter[key] = count
    else:
        del counter[key]
    return count
