"""Reads of agents and groups."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Agent, Group
from moorage.core.fleet.starts import ConsumerPlace
from moorage.core.ids import AgentId, ProviderId
from moorage.service import errors
from moorage.service.pages import page_of, rows_to_read
from moorage.store.api import Done, Engine, Plan, advanced
from moorage.store.fleet import reads
from moorage.store.fleet.reads import AgentFilter, GroupCounts
from moorage.store.ledger.reads import PlaceRow, places_load

__all__ = ["AgentFilter", "AgentView", "FleetQueries", "GroupView"]

A = TypeVar("A")
B = TypeVar("B")

log = logging.getLogger("moorage.fleet")

WINDOW = 500
"""Agents that are read at a time, when all are read: some milliseconds of decoding."""


@dataclass(frozen=True, slots=True)
class AgentView:
    """An agent, with what consumers hold on its machine."""

    agent: Agent
    places: list[ConsumerPlace] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group, with the number of its active members, and of those in service by liveness."""

    group: Group
    members: int
    late: int
    lost: int


class FleetQueries:
    """Reads of the fleet. Every method raises `Error`: UNAVAILABLE."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def agent(self, uuid: AgentId, root: ProviderId | None = None) -> AgentView:
        """Return an agent, with its places of the same moment.

        Args:
            uuid: the agent.
            root: of its machine, if the caller knows it; otherwise the places are read later.

        Raises AGENT_NOT_FOUND.
        """
        top = ProviderId(uuid) if root is None else root
        with errors.translated():
            agent, rows = await self._engine.read(
                _together(reads.agent_load(uuid), places_load(top))
            )
            if agent is None:
                raise Error(Code.AGENT_NOT_FOUND, f"There is no agent {uuid}.")
            return AgentView(agent, _places(rows)) if agent.root == top else await self._view(agent)

    async def _view(self, agent: Agent) -> AgentView:
        if agent.root is None:
            return AgentView(agent)
        rows = await self._engine.read(places_load(agent.root))
        return AgentView(agent, _places(rows))

    async def agents(
        self, wanted: AgentFilter, cursor: str | None, limit: int
    ) -> tuple[list[AgentView], str | None]:
        """Return a page of agents by UUID, and the cursor of the next page. Raises INVALID."""
        rows_max = rows_to_read(limit)
        with errors.translated():
            found = await self._engine.read(reads.agents_list(wanted, cursor or "", rows_max))
            agents, following = page_of(found, limit, lambda agent: agent.uuid)
            return [await self._view(one) for one in agents], following

    async def everyone(self) -> AsyncIterator[list[Agent]]:
        """Yield all agents, some at a time, except for those whose rows are damaged."""
        async for found in self._windows(reads.readable_agents_window):
            yield found

    async def all_groups(self) -> list[Group]:
        """Return all groups, except for those whose rows are damaged."""
        windows = self._windows(reads.readable_groups_window)
        return [group async for found in windows for group in found]

    async def _windows(
        self, load: Callable[[str, int], Plan[reads.Window[A]]]
    ) -> AsyncIterator[list[A]]:
        """Yield all values, some at a time; of the rows that cannot be read, each is logged."""
        after: str | None = ""
        with errors.translated():
            while after is not None:
                window = await self._engine.look(load(after, WINDOW))
                for damaged in window.damaged:
                    log.error("continuing without a row that cannot be read: %s", damaged)
                yield window.values
                after = window.last

    async def group(self, name: str) -> GroupView:
        """Return a group. Raises GROUP_NOT_FOUND."""
        with errors.translated():
            group = await self._engine.read(reads.group_load(name))
            counts = await self._engine.read(reads.groups_count())
        if group is None:
            raise Error(Code.GROUP_NOT_FOUND, f"There is no group '{name}'.")
        return _group_view(group, counts)

    async def groups(self, cursor: str | None, limit: int) -> tuple[list[GroupView], str | None]:
        """Return a page of groups by name, and the cursor of the next page. Raises INVALID."""
        rows_max = rows_to_read(limit)
        with errors.translated():
            found = await self._engine.read(reads.groups_window(cursor or "", rows_max))
            counts = await self._engine.read(reads.groups_count())
        groups, following = page_of(found, limit, lambda group: group.name)
        return [_group_view(group, counts) for group in groups], following


def _together(one: Plan[A], other: Plan[B]) -> Plan[tuple[A, B]]:
    """Return a plan that runs two plans, each of which yields once, in one snapshot."""
    asked = [*next(one)]
    rows = yield [*asked, *next(other)]
    ends = advanced(one, rows[: len(asked)]), advanced(other, rows[len(asked) :])
    assert isinstance(ends[0], Done)
    assert isinstance(ends[1], Done)
    return ends[0].answer, ends[1].answer


def _places(rows: Iterable[PlaceRow]) -> list[ConsumerPlace]:
    return [ConsumerPlace(row.consumer, row.provider, row.since, row.amounts) for row in rows]


def _group_view(group: Group, counts: GroupCounts) -> GroupView:
    return GroupView(
        group,
        counts.members.get(group.name, 0),
        counts.in_service.get((group.name, "late"), 0),
        counts.in_service.get((group.name, "lost"), 0),
    )
