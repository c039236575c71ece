"""Cells that lists have in common: ids, ages, ends, states."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from moorage.cli.support.tables import BAD, BUSY, FAINT, GOOD, NOTHING, Cell
from moorage.cli.support.views.lease_text import time_text
from moorage.core.ages import age_text

ID_LEAST = 8
"""Characters of an id that are always shown."""

DATED_LEAST = 13
"""The same of an id that begins with the time: its first 8 characters are the same for a minute."""

DATED = "7"
"""The version of such a UUID, which stands behind the time."""

COLOURS: Mapping[str, str] = {
    **dict.fromkeys(
        ("granted", "held", "open", "valid", "live", "in_service", "ready", "yes"), GOOD
    ),
    **dict.fromkeys(
        ("waiting", "full", "late", "paused", "rotated", "drained", "draining", "resting"), BUSY
    ),
    **dict.fromkeys(("over", "lost", "revoked", "expired", "suspect", "expunged", "failed"), BAD),
    "ended": FAINT,
}
"""The colours of states, by the first word of the text."""


def id_cells(ids: Iterable[str]) -> dict[str, Cell]:
    """Return the cells of ids: each has the shortest prefix that none of the others has."""
    order = sorted({*ids})
    before, after = ["", *order], [*order[1:], ""]
    cells = {}
    for one, former, following in zip(order, before, after, strict=False):
        size = max(_common(one, former), _common(one, following)) + 1
        size = max(size, DATED_LEAST if one[14:15] == DATED else ID_LEAST)
        short = one[:size]
        cells[one] = Cell(one[: size + 1] if short.endswith("-") else short, one)
    return cells


def _common(one: str, other: str) -> int:
    """Return how many characters at the beginning of two texts are equal."""
    for number, (mine, its) in enumerate(zip(one, other, strict=False)):
        if mine != its:
            return number
    return min(len(one), len(other))


def state_cell(state: str) -> Cell:
    """Return the cell of a state, in its colour."""
    return Cell(state, state, COLOURS.get(re.split("[,: ]", state, maxsplit=1)[0]))


def age_cell(at: datetime | None, now: datetime) -> Cell:
    """Return the cell of a time in the past: on a terminal how long ago it was."""
    if at is None:
        return Cell(NOTHING, NOTHING)
    return Cell(age_text((now - at).total_seconds()), time_text(at))


def end_cell(at: datetime | None, now: datetime) -> Cell:
    """Return the cell of an end: on a terminal in how long it is, or how long ago it was."""
    if at is None:
        return Cell(NOTHING, NOTHING)
    seconds = (at - now).total_seconds()
    text = f"in {age_text(seconds)}" if seconds > 0 else f"{age_text(-seconds)} ago"
    return Cell(text, time_text(at))


def clock_cell(at: datetime) -> Cell:
    """Return the cell of a time of which the hour matters: on a terminal to the minute, in UTC."""
    return Cell(f"{at:%Y-%m-%d %H:%M}Z", time_text(at))


def timed(cell: Cell, after: str = "") -> str:
    """Return a time and how far away it is, where there is room for both."""
    return f"{cell.full}, {cell.short}{after}"


def as_it_came(
    cell: Callable[[datetime | None, datetime], Cell], text: str | None, now: datetime
) -> Cell:
    """Return the cell of a time that came as text; in a pipe it stays as it came."""
    made = cell(None if text is None else datetime.fromisoformat(text), now)
    return made if text is None else made._replace(full=text)


def number_text(value: int | None) -> str:
    """Return a number as text."""
    return NOTHING if value is None else str(value)
