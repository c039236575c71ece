"""What a decision about agents may read, and what it may change."""

from dataclasses import dataclass, field

from moorage.core.fleet.model import Agent, Group
from moorage.core.ids import AgentId, ProviderId


@dataclass(slots=True)
class Keys:
    """What to load. A batch loads the union of its requests' keys."""

    groups: set[str] = field(default_factory=set)
    """Groups; those of `agents` are loaded, too."""
    changed: set[str] = field(default_factory=set)
    """Groups that are to be changed by what is known of their members elsewhere."""
    members: set[str] = field(default_factory=set)
    """Groups that are to be changed: they are loaded with all their members."""
    agents: set[AgentId] = field(default_factory=set)
    roots: set[ProviderId] = field(default_factory=set)
    """Providers of which must be known whether they are the root of an agent's machine."""
    number: bool = False
    """Whether the next free number of an agent is needed."""

    def update(self, other: "Keys") -> None:
        """Add the keys of another request of the same batch."""
        self.groups |= other.groups
        self.changed |= other.changed
        self.members |= other.members
        self.agents |= other.agents
        self.roots |= other.roots
        self.number = self.number or other.number


@dataclass(slots=True)
class Changes:
    """After-images, by key. None: deleted. Within a batch the last one counts."""

    groups: dict[str, Group | None] = field(default_factory=dict)
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    """Agents are never deleted: their UUIDs must stay used up."""

    def update(self, other: "Changes") -> None:
        """Merge the after-images of a later decision, which override those here."""
        self.groups.update(other.groups)
        self.agents.update(other.agents)

    def __bool__(self) -> bool:
        return bool(self.groups or self.agents)


@dataclass(slots=True)
class Facts:
    """The loaded rows of a batch, as changed by its decisions so far."""

    groups: dict[str, Group] = field(default_factory=dict)
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    roots: dict[ProviderId, AgentId] = field(default_factory=dict)
    """The active agent of each machine whose root was asked for."""
    next_number: int = 1
    """The least number that no agent has."""

    def apply(self, changes: Changes) -> None:
        """Make the changes of one decision visible to the next."""
        for name, group in changes.groups.items():
            if group is None:
                self.groups.pop(name, None)
            else:
                self.groups[name] = group
        for uuid, agent in changes.agents.items():
            self.agents[uuid] = agent
            self.next_number = max(self.next_number, agent.number + 1)
            if agent.root is not None:
                if agent.state == "active":
                    self.roots[agent.root] = uuid
                elif self.roots.get(agent.root) == uuid:
                    del self.roots[agent.root]
