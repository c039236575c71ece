"""What this process knows of every agent in memory: enough to answer a sign of life."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Agent, Liveness, Policy, State
from moorage.core.ids import AgentId, ProviderId
from moorage.core.service_time import When


class Known(NamedTuple):
    """The part of an agent that signs of life are compared with."""

    number: int
    group: str
    root: ProviderId | None
    boot_id: str | None
    report_generation: int
    desired_generation: int
    desired_generation_seen: int
    active: bool
    in_service: bool
    liveness: Liveness


def known_of(agent: Agent) -> Known:
    """Return what is kept of an agent."""
    return Known(
        number=agent.number,
        group=agent.group,
        root=agent.root,
        boot_id=agent.boot_id,
        report_generation=agent.report_generation,
        desired_generation=agent.desired_generation,
        desired_generation_seen=agent.desired_generation_seen,
        active=agent.state is State.ACTIVE,
        in_service=agent.policy is Policy.IN_SERVICE,
        liveness=agent.liveness,
    )


class Directory:
    """All agents, as of the last commit that this process has followed."""

    def __init__(self) -> None:
        self._known: dict[AgentId, Known] = {}
        self._watchers: dict[AgentId, set[Callable[[], None]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, uuid: AgentId) -> Known | None:
        """Return what is known of an agent; None: there is none."""
        return self._known.get(uuid)

    def items(self) -> Iterable[tuple[AgentId, Known]]:
        """Return all agents; do not wait while iterating."""
        return self._known.items()

    def note(self, changes: Changes, _when: When) -> None:
        """Follow a commit."""
        for uuid, agent in changes.agents.items():
            self._known[uuid] = known_of(agent)
            for wake in [*self._watchers.get(uuid, ())]:
                wake()

    def watch(self, uuid: AgentId, wake: Callable[[], None]) -> None:
        """Call `wake` with every change of an agent, until `unwatch`."""
        self._watchers.setdefault(uuid, set()).add(wake)

    def unwatch(self, uuid: AgentId, wake: Callable[[], None]) -> None:
        """End `watch`."""
        watchers = self._watchers.get(uuid, set())
        watchers.discard(wake)
        if not watchers:
            self._watchers.pop(uuid, None)
