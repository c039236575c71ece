"""The two rooms that `moorage top` shows: admission, and the fleet."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

from moorage.cli.commands.top import pools
from moorage.cli.support.tables import Column, Row
from moorage.cli.support.views.fleet_text import (
    AGENTS,
    CAPACITY,
    REPORTERS,
    agent_rows,
    capacity_rows,
    percent,
    reporter_rows,
)
from moorage.client.admission import Admission
from moorage.client.fleet import Fleet
from moorage.client.ledger import Ledger
from moorage.client.reporting import Reporting
from moorage.client.transport import Transport
from moorage.core.counting import counted
from moorage.wire.admission import Pool
from moorage.wire.capacity import Capacity, CapacityAsked
from moorage.wire.fleet import AgentGroup
from moorage.wire.reporting import ReporterGroup

CLASSES_MAX = 1_000
"""Resource classes that are shown."""

REPORTER_GROUPS_MAX = 20
"""Groups of reporters that are shown: each is a request of its own."""


class Table(NamedTuple):
    """A table of a room."""

    columns: Sequence[Column]
    rows: list[Row]


class Found(NamedTuple):
    """What a room has asked for, and the revision of the ledger; None: the caller may not know."""

    value: Any
    as_of: str | None


class Room(Protocol):
    """What can be looked at. `orders` are those of its tables, the first one by default."""

    name: str
    orders: tuple[str, ...]

    def ask(self) -> Found:
        """Ask the server. Raises UnreachableError, RefusedError, UndecodableError."""
        ...

    def totals(self, value: Any) -> str:
        """Return everything together in one line."""
        ...

    def tables(self, value: Any, order: str) -> list[Table]:
        """Return the tables; empty ones are not shown."""
        ...


class AdmissionRoom:
    """Pools, and the line before each."""

    name = "admission"
    orders: tuple[str, ...] = (pools.BUSY, pools.NAME, pools.FULL)

    def __init__(self, transport: Transport) -> None:
        self._admission, self._ledger = Admission(transport), Ledger(transport)

    def ask(self) -> Found:
        """See `Room`."""
        as_of = self._ledger.now()  # asked first, so the pools are not older
        return Found([*self._admission.pools()], as_of)

    def totals(self, value: list[Pool]) -> str:
        """See `Room`."""
        return pools.totals(value)

    def tables(self, value: list[Pool], order: str) -> list[Table]:
        """See `Room`."""
        return [Table(pools.COLUMNS, pools.rows(pools.in_order(value, order)))]


class _Fleet(NamedTuple):
    capacity: Capacity
    agents: list[AgentGroup]
    reporters: list[tuple[str, ReporterGroup]]
    more: bool
    """Whether there are more groups of reporters."""


class FleetRoom:
    """Capacity by resource class, groups of agents, reporters."""

    name = "fleet"
    orders: tuple[str, ...] = (pools.BUSY, pools.NAME)

    def __init__(self, transport: Transport) -> None:
        self._ledger, self._fleet = Ledger(transport), Fleet(transport)
        self._reporting = Reporting(transport)

    def ask(self) -> Found:
        """See `Room`."""
        capacity = self._ledger.capacity(CapacityAsked(ends=1, limit=CLASSES_MAX))
        agents = [*self._fleet.groups()]
        names = [*islice(self._reporting.groups(), REPORTER_GROUPS_MAX + 1)]
        shown = [(name, self._reporting.group(name)) for name in names[:REPORTER_GROUPS_MAX]]
        more = len(names) > len(shown)
        return Found(_Fleet(capacity, agents, shown, more), capacity.as_of)

    def totals(self, value: _Fleet) -> str:
        """See `Room`."""
        lines, agents = value.capacity.lines, value.agents
        members, late, lost = (
            sum(getattr(one, name) for one in agents) for name in ("members", "late", "lost")
        )
        reporters = [one for _, group in value.reporters for one in group.members]
        live = sum(one.live for one in reporters)
        classes = len(lines) + value.capacity.left_out
        return (
            f"{counted(value.capacity.providers, 'provider')}, {classes} classes;"
            f" {counted(members, 'agent')}, {late} late, {lost} lost;"
            f" {len(reporters)}{'+' if value.more else ''} reporters, {live} live"
        )

    def tables(self, value: _Fleet, order: str) -> list[Table]:
        """See `Room`."""
        lines, agents, reporters = value.capacity.lines, value.agents, value.reporters
        if order == pools.BUSY:
            lines = sorted(lines, key=lambda line: -(percent(line.used, line.capacity) or 0))
            agents = sorted(agents, key=lambda one: (not one.suspect_network, -one.lost, -one.late))
        return [
            Table(CAPACITY, capacity_rows(lines)),
            Table(AGENTS, agent_rows(agents)),
            Table(REPORTERS, reporter_rows(reporters)),
        ]
