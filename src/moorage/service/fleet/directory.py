"""All agents and groups in the memory of this process: enough to answer a sign of life."""

from collections.abc import Callable, Container, Iterable

from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Agent, Group
from moorage.core.ids import AgentId
from moorage.core.service_time import When
from moorage.service.fleet.tally import Tally


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
