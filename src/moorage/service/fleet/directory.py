"""All agents and groups in memory, and their counts: enough to answer a sign of life."""

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable
from typing import TypeVar

from moorage.core.fleet.facts import Changes
from moorage.core.fleet.liveness import GroupCount
from moorage.core.fleet.model import Agent, Group, Liveness, Policy, Source, State
from moorage.core.fleet.offers import offered
from moorage.core.ids import AgentId
from moorage.core.service_time import When

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


class Directory:
    """All agents and groups, as of the last commit that this process has followed."""

    def __init__(self) -> None:
        self._agents: dict[AgentId, Agent] = {}
        self._groups: dict[str, Group] = {}
        self._watchers: dict[AgentId, set[Callable[[], None]]] = {}
        self.tally = Tally()

    def __len__(self) -> int:
        return len(self._agents)

    def get(self, uuid: AgentId) -> Agent | None:
        """Return an agent; None: there is none."""
        return self._agents.get(uuid)

    def agents(self) -> Iterable[Agent]:
        """Return all agents; do not wait while iterating."""
        return self._agents.values()

    def group(self, name: str) -> Group | None:
        """Return a group; None: there is none."""
        return self._groups.get(name)

    def groups(self) -> list[Group]:
        """Return all groups."""
        return [*self._groups.values()]

    def note(self, changes: Changes, _when: When) -> None:
        """Follow a commit."""
        for uuid, agent in changes.agents.items():
            self.tally.change(self._agents.get(uuid), agent)
        self._agents.update(changes.agents)
        for name, group in changes.groups.items():
            if group is None:
                self._groups.pop(name, None)
            else:
                self._groups[name] = group
        for uuid in changes.agents:
            for wake in [*self._watchers.get(uuid, ())]:
                wake()

    def keep(self, known: Container[AgentId]) -> list[Agent]:
        """Forget all other agents; return them."""
        gone = [agent for uuid, agent in self._agents.items() if uuid not in known]
        for agent in gone:
            self.tally.change(agent, None)
            del self._agents[agent.uuid]
        return gone

    def watch(self, uuid: AgentId, wake: Callable[[], None]) -> None:
        """Call `wake` with every change of an agent, until `unwatch`."""
        self._watchers.setdefault(uuid, set()).add(wake)

    def wake_all(self) -> None:
        """Wake everyone who watches an agent."""
        for watchers in [*self._watchers.values()]:
            for wake in [*watchers]:
                wake()

    def unwatch(self, uuid: AgentId, wake: Callable[[], None]) -> None:
        """End `watch`."""
        watchers = self._watchers.get(uuid, set())
        watchers.discard(wake)
        if not watchers:
            self._watchers.pop(uuid, None)
