"""The facts that a decision about agents and reporters may read, and its possible changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.fleet.model import Agent, Group
from moorage.core.fleet.reporters import DeletedGroup, Member, Pass, ReporterGroup
from moorage.core.ids import AgentId, ProviderId

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Keys:
    """The keys to load. A batch loads the union of its requests' keys."""

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
    reporters: set[str] = field(default_factory=set)
    """Groups of reporters with their members; service time is locked with them."""
    pins: set[tuple[str, ProviderId]] = field(default_factory=set)
    """Groups of reporters and nodes whose pins must be known."""

    def update(self, other: "Keys") -> None:
        """Add the keys of another request of the same batch."""
        self.groups |= other.groups
        self.changed |= other.changed
        self.members |= other.members
        self.agents |= other.agents
        self.roots |= other.roots
        self.number = self.number or other.number
        self.reporters |= other.reporters
        self.pins |= other.pins


@dataclass(slots=True)
class Changes:
    """After-images, by key. None: deleted. Within a batch the last one counts."""

    groups: dict[str, Group | None] = field(default_factory=dict)
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    """Agents are never deleted: their UUIDs must stay used up."""
    reporter_groups: dict[str, ReporterGroup | None] = field(default_factory=dict)
    members: dict[tuple[str, str], Member | None] = field(default_factory=dict)
    """Reporters by group and name."""
    pins: dict[tuple[str, ProviderId], str | None] = field(default_factory=dict)
    """Members by group and node."""
    heard: dict[tuple[str, str], Instant] = field(default_factory=dict)
    """New `heard_until` of members that are otherwise unchanged: no change rows, no revision."""
    passes: dict[tuple[str, str], Pass] = field(default_factory=dict)
    """New `last_pass` of members, likewise."""
    seen: dict[str, Instant] = field(default_factory=dict)
    """New `seen_at` of groups of reporters, likewise."""
    deleted_groups: dict[str, DeletedGroup | None] = field(default_factory=dict)
    """The traces of deleted groups of reporters, likewise. None: they are forgotten."""

    def update(self, other: "Changes") -> None:
        """Merge the after-images of a later decision, which override those here."""
        self.groups.update(other.groups)
        self.agents.update(other.agents)
        self.reporter_groups.update(other.reporter_groups)
        self.members.update(other.members)
        self.pins.update(other.pins)
        self.deleted_groups.update(other.deleted_groups)
        self._update_signs(other)

    def _update_signs(self, other: "Changes") -> None:
        """Merge signs of life; those of a member that is changed are part of its after-image."""
        for key in other.members:
            self.heard.pop(key, None)
            self.passes.pop(key, None)
        for name in other.reporter_groups:
            self.seen.pop(name, None)
        for key, until in other.heard.items():
            changed = self.members.get(key)
            if changed is None:
                self.heard[key] = until
            else:
                self.members[key] = replace(changed, heard_until=until)
        for key, last in other.passes.items():
            changed = self.members.get(key)
            if changed is None:
                self.passes[key] = last
            else:
                self.members[key] = replace(changed, last_pass=last)
        for name, at in other.seen.items():
            group = self.reporter_groups.get(name)
            if group is None:
                self.seen[name] = at
            else:
                self.reporter_groups[name] = replace(group, seen_at=at)

    @property
    def is_logged(self) -> bool:
        """Whether there is anything that followers must know."""
        rows = (self.groups, self.agents, self.reporter_groups, self.members, self.pins)
        return any(rows)

    def __bool__(self) -> bool:
        unlogged = (self.heard, self.passes, self.seen, self.deleted_groups)
        return self.is_logged or any(unlogged)


@dataclass(slots=True)
class Facts:
    """The loaded rows of a batch, as changed by its decisions so far."""

    groups: dict[str, Group] = field(default_factory=dict)
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    roots: dict[ProviderId, AgentId] = field(default_factory=dict)
    """The active agent of each machine whose root was asked for."""
    asked: Keys = field(default_factory=Keys, compare=False)
    """The requested keys; objects that do not exist are missing in the facts."""
    next_number: int = 1
    """The least number that no agent has."""
    epoch: int = 0
    """The present epoch, if reporters were asked for."""
    reporter_groups: dict[str, ReporterGroup] = field(default_factory=dict)
    deleted_groups: dict[str, DeletedGroup] = field(default_factory=dict)
    members: dict[tuple[str, str], Member] = field(default_factory=dict)
    pins: dict[tuple[str, ProviderId], str] = field(default_factory=dict)

    def apply(self, changes: Changes) -> None:
        """Make the changes of one decision visible to the next."""
        _put(self.groups, changes.groups)
        for uuid, agent in changes.agents.items():
            self.agents[uuid] = agent
            self.next_number = max(self.next_number, agent.number + 1)
            if agent.root is not None:
                if agent.state == "active":
                    self.roots[agent.root] = uuid
                elif self.roots.get(agent.root) == uuid:
                    del self.roots[agent.root]
        self._reporters(changes)

    def _reporters(self, changes: Changes) -> None:
        _put(self.reporter_groups, changes.reporter_groups)
        _put(self.deleted_groups, changes.deleted_groups)
        _put(self.members, changes.members)
        _put(self.pins, changes.pins)
        for key, until in changes.heard.items():
            self.members[key] = replace(self.members[key], heard_until=until)
        for key, last in changes.passes.items():
            self.members[key] = replace(self.members[key], last_pass=last)
        for group, at in changes.seen.items():
            self.reporter_groups[group] = replace(self.reporter_groups[group], seen_at=at)


def _put(rows: dict[K, V], changes: Mapping[K, V | None]) -> None:
    for key, value in changes.items():
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value
