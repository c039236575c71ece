"""Capacity, agents and reporters as lines of tables."""

from collections.abc import Iterable, Sequence

from moorage.cli.support.tables import BAD, BUSY, GOOD, NOTHING, Cell, Column, Row
from moorage.cli.support.views.cells import state_cell
from moorage.core.ages import age_text
from moorage.wire.capacity import CapacityLine, ProviderFilled
from moorage.wire.fleet import AgentGroup
from moorage.wire.reporting import ReporterGroup

FULL_PERCENT, BUSY_PERCENT = 100, 90
"""From these shares of the capacity on, a class is shown in the colour of full and busy ones."""

FIGURES = (
    Column("providers", dropped=3, right=True),
    Column("total", dropped=2, right=True),
    Column("ratio", dropped=3, added=1, right=True),
    Column("offered", dropped=1, added=1, right=True),
    Column("reserved", dropped=4, right=True),
    Column("used", right=True),
    Column("free", right=True),
    Column("used%", right=True),
)

ENDS = (Column("fullest", dropped=6, least=24), Column("emptiest", dropped=5, least=24))

CAPACITY = (Column("class"), *FIGURES, *ENDS)

AGENTS = (
    Column("agent group", least=12),
    Column("agents", right=True),
    Column("late", right=True),
    Column("lost", right=True),
    Column("network"),
)

REPORTERS = (
    Column("reporter group", least=12),
    Column("member", least=14),
    Column("live"),
    Column("silent", right=True),
    Column("last pass", dropped=1, right=True),
    Column("nodes", right=True),
    Column("refused", least=12, last=True),
)


def grouped(by: str) -> tuple[Column, ...]:
    """Return the columns of sums by class and aggregate or trait."""
    return (CAPACITY[0], Column(by), *FIGURES, *ENDS)


def percent(used: int, capacity: int) -> int | None:
    """Return the used percentage, rounded down: 100 means full; None: there is nothing to use."""
    if capacity <= 0:
        return FULL_PERCENT if used else None
    return used * 100 // capacity


def capacity_rows(lines: Iterable[CapacityLine], *, groups: bool = False) -> list[Row]:
    """Return sums as rows; `groups`: with the aggregate or trait of each."""
    return [
        [
            line.resource_class,
            *([line.group or NOTHING] if groups else []),
            str(line.providers),
            str(line.total),
            "varies" if line.ratio is None else f"{line.ratio:g}",
            str(line.capacity),
            str(line.reserved),
            str(line.used),
            str(line.free),
            share_cell(line.used, line.capacity),
            _end(line.fullest),
            _end(line.emptiest),
        ]
        for line in lines
    ]


def share_cell(used: int, capacity: int) -> Cell:
    """Return the cell of how much is used, in the colour of how full that is."""
    share = percent(used, capacity)
    if share is None:
        return Cell(NOTHING, NOTHING)
    full, busy = share >= FULL_PERCENT, share >= BUSY_PERCENT
    return Cell(f"{share}%", f"{share}%", BAD if full else BUSY if busy else None)


def _end(found: Sequence[ProviderFilled]) -> str:
    """Return the first of the fullest or emptiest providers."""
    if not found:
        return NOTHING
    share = percent(found[0].used, found[0].capacity)
    return f"{share or 0}% {found[0].name}"


def agent_rows(groups: Iterable[AgentGroup]) -> list[Row]:
    """Return groups of agents as rows."""
    return [
        [
            one.name,
            str(one.members),
            Cell(str(one.late), str(one.late), BUSY if one.late else None),
            Cell(str(one.lost), str(one.lost), BAD if one.lost else None),
            state_cell("suspect" if one.suspect_network else NOTHING),
        ]
        for one in groups
    ]


def reporter_rows(groups: Iterable[tuple[str, ReporterGroup]]) -> list[Row]:
    """Return the members of groups of reporters as rows."""
    found: list[Row] = []
    for name, group in groups:
        for member in group.members:
            last = member.last_pass
            refused = ", ".join(f"{n} {code}" for code, n in (last.refused if last else {}).items())
            found.append(
                [
                    name,
                    member.name,
                    Cell("yes", "yes", GOOD) if member.live else Cell("no", "no", BAD),
                    age_text(member.silent),
                    NOTHING if last is None else f"{age_text(last.age)} ago",
                    NOTHING if last is None else str(last.nodes),
                    refused or NOTHING,
                ]
            )
    return found
