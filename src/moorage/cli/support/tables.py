"""Tables of lists: one line per row on a terminal, complete and tab-separated elsewhere.

On a terminal, columns without values are not shown. If it is too narrow, more columns go, in an
order that each table sets, and a last line names them. Then texts that may be cut end with an
ellipsis. The reason is cut last: others give way until it has room for what matters. Below a table
that is longer than the screen the titles stand again. What other programs read never depends on a
terminal: each row has every column, with complete texts.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import click

from moorage.cli.support.output import printable, say, show_line
from moorage.cli.support.terminal import BETWEEN, has_colours, size_of_terminal, width_of, wrapped

NOTHING = "-"
"""The text of a cell without a value."""

ELLIPSIS = "…"

EXTRA = 10
"""Columns that are dropped in this place or before only stay if the reason has `ROOM`."""

ROOM = 40
"""The width at which a reason says what matters."""

SHORTEST, NARROWEST = 6, 4
"""The least width of texts, and of all columns, on a terminal that is too narrow for more."""

GOOD, BUSY, BAD, FAINT = "green", "yellow", "red", "bright_black"
"""Colours of cells. The text of a cell says the same."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `name` is its title in a pipe, where scripts rely on it. `title` is that on a terminal, if the
    text is another one there, such as an age instead of a time.
    """

    name: str
    title: str = ""
    dropped: int = 0
    """The column with the highest number is dropped first; 0: never, even if it is empty."""
    least: int | None = None
    """The width down to which its texts may be cut; None: they are cut only if nothing helps."""
    last: bool = False
    """On a terminal it is the last column. That of the reason, which is the longest text."""
    piped: bool = False
    """It is only in a pipe: on a terminal another column says the same."""
    added: int = 0
    """In which addition it came: in a pipe it is behind all earlier ones, which stay where they
    were. 0: it was there from the start."""
    right: bool = False
    """Its texts are aligned on the right, as those of numbers are."""

    @property
    def heading(self) -> str:
        """Return its title on a terminal."""
        return self.title or self.name


class Cell(NamedTuple):
    """A cell with one text for terminals and another, complete one for pipes."""

    short: str
    full: str
    colour: str | None = None


Row = Sequence[Cell | str]


class Drawn(NamedTuple):
    """A table for a terminal: its title, its rows, and lines that name what is not shown."""

    title: str
    rows: list[str]
    rest: list[str]

    @property
    def lines(self) -> list[str]:
        """Return all lines."""
        return [self.title, *self.rows, *self.rest]


def show_rows(columns: Sequence[Column], rows: Sequence[Row], *, wide: bool = False) -> None:
    """Print a table: for a terminal as wide as that is, or `wide`; otherwise tab-separated."""
    if not sys.stdout.isatty():
        order = sorted(range(len(columns)), key=lambda number: columns[number].added)
        say(*(columns[number].name for number in order))
        for row in rows:
            say(*(_full(row[number]) for number in order))
        return
    if not rows:
        say("nothing to show")
        return
    size = size_of_terminal()
    width = None if wide else size.columns
    drawn = draw(columns, rows, width, colours=has_colours(os.environ))
    again = [drawn.title] if len(drawn.lines) >= size.lines else []
    for line in (drawn.title, *drawn.rows, *again, *drawn.rest):
        show_line(line)


def draw(
    columns: Sequence[Column], rows: Sequence[Row], width: int | None, *, colours: bool = False
) -> Drawn:
    """Return a table for a terminal of this width; None: as wide as its texts."""
    cells = [[_clean(cell) for cell in row] for row in rows]
    there = [number for number, column in enumerate(columns) if not column.piped]
    order = sorted(there, key=lambda number: columns[number].last)
    texts = [[row[number].short for row in cells] for number in range(len(columns))]
    natural = [
        max(map(width_of, (column.heading, *those)))
        for column, those in zip(columns, texts, strict=True)
    ]
    if width is not None:
        order, missing = _kept(columns, texts, natural, order, width)
        widths = _widths(columns, natural, order, width)
    else:
        missing, widths = [], natural
    pairs = [(columns[number], widths[number]) for number in order]

    def line(those: Sequence[Cell], *, title: bool = False) -> str:
        parts = [
            _fitted(cell, size, right=column.right, colours=colours, title=title)
            for cell, (column, size) in zip(those, pairs, strict=True)
        ]
        return BETWEEN.join(parts).rstrip()

    heading = line([Cell(columns[number].heading, "") for number in order], title=True)
    names = ", ".join(columns[number].heading for number in missing)
    rest = f"not shown: {names}; --wide shows all" if names else ""
    below = wrapped(rest, width or len(rest) + 1)
    if colours:
        below = [click.style(one, fg=FAINT) for one in below]
    drawn = [line([row[number] for number in order]) for row in cells]
    return Drawn(heading, drawn, below)


def _full(cell: Cell | str) -> str:
    return cell if isinstance(cell, str) else cell.full


def _clean(cell: Cell | str) -> Cell:
    if isinstance(cell, str):
        return Cell(printable(cell), "")
    return cell._replace(short=printable(cell.short))


def _kept(
    columns: Sequence[Column],
    texts: Sequence[Sequence[str]],
    natural: Sequence[int],
    order: Sequence[int],
    width: int,
) -> tuple[list[int], list[int]]:
    """Return the columns that are shown, and those with values that are not."""
    empty = [bool(those) and all(text == NOTHING for text in those) for those in texts]
    # A column without values is not shown: nothing is lost with it.
    kept = [number for number in order if not (columns[number].dropped and empty[number])]
    missing = []
    droppable = [number for number in kept if columns[number].dropped]
    for number in sorted(droppable, key=lambda one: -columns[one].dropped):
        room = ROOM if columns[number].dropped >= EXTRA else 0
        if _total(_least(columns[one], natural[one], room) for one in kept) <= width:
            continue
        kept.remove(number)
        missing.append(number)
    return kept, sorted(missing)


def _total(widths: Iterable[int]) -> int:
    sizes = [*widths]
    return sum(sizes) + len(BETWEEN) * (len(sizes) - 1)


def _least(column: Column, natural: int, room: int = 0) -> int:
    """Return the width that a column needs for its texts to be of use; `room`: for the reason."""
    if column.least is None:
        return natural
    least = max(column.least, room) if column.last else column.least
    return min(natural, max(least, width_of(column.heading)))


def _widths(
    columns: Sequence[Column], natural: Sequence[int], kept: Sequence[int], width: int
) -> list[int]:
    """Return the width of each column, so that those that are kept fit if that is possible."""
    widths = [_least(column, size) for column, size in zip(columns, natural, strict=True)]
    spare = width - _total([widths[number] for number in kept])
    reasons = [number for number in kept if columns[number].last]
    others = [number for number in kept if not columns[number].last]
    enough = [min(size, ROOM) for size in natural]
    for growing, ends in ((reasons, enough), (others, natural), (reasons, natural)):
        spare = _grown(widths, ends, growing, spare)
    texts = [number for number in others if columns[number].least is not None]
    for shrinking, end in ((texts, SHORTEST), (reasons, SHORTEST), (kept, NARROWEST)):
        while spare < 0 and shrinking:
            widest = max(shrinking, key=lambda number: widths[number])
            if widths[widest] <= end:
                break
            widths[widest] -= 1
            spare += 1
    return widths


def _grown(widths: list[int], ends: Sequence[int], which: Sequence[int], spare: int) -> int:
    """Give columns the spare width, the narrowest first; return what is left of it."""
    growing = [number for number in which if widths[number] < ends[number]]
    while spare > 0 and growing:
        widths[min(growing, key=lambda number: widths[number])] += 1
        spare -= 1
        growing = [number for number in growing if widths[number] < ends[number]]
    return spare


def _fitted(cell: Cell, size: int, *, right: bool, colours: bool, title: bool) -> str:
    """Return a text with exactly this width, with its colour."""
    text = _cut(cell.short, size)
    space = " " * (size - width_of(text))
    if colours and title:
        text = click.style(text, bold=True)
    elif colours and cell.colour is not None:
        text = click.style(text, fg=cell.colour)
    return f"{space}{text}" if right else f"{text}{space}"


def _cut(text: str, width: int) -> str:
    """Return a text with at most this width, with an ellipsis if something is missing."""
    if width_of(text) <= width:
        return text
    kept = ""
    for one in text:
        if width_of(kept + one) >= width:
            break
        kept += one
    return kept.rstrip() + ELLIPSIS
