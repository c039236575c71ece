"""What a reshape changes, as people read it: two trees side by side, consumers, violations."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from moorage.cli.support.output import say
from moorage.cli.support.tables import BAD, BUSY, GOOD, NOTHING, Cell, Column, Row, show_rows
from moorage.cli.support.terminal import size_of_terminal
from moorage.cli.support.views.cells import number_text
from moorage.core.counting import counted
from moorage.core.ledger.reshaping.tree_order import in_tree_order
from moorage.wire.reshapes import (
    ReshapeEffect,
    ReshapeLevel,
    ReshapeNode,
    ReshapeNote,
    ReshapeSummary,
    ReshapeViolation,
)

SIDES_WIDTH = 72
"""Columns of a terminal from which on two trees stand side by side."""

CONSUMERS_SHOWN = 20
"""Changes of consumers that are shown on a terminal."""

INDENT = "  "

TICKETS = "tickets_stranded"
"""The code of the note that names tickets, and not leases."""

BESIDE = "- "
"""Stands before a class of a provider."""

DELTAS = (
    Column("consumer", least=12),
    Column("provider", least=12),
    Column("class"),
    Column("change", right=True),
)

VIOLATIONS = (
    Column("code"),
    Column("provider", dropped=1, least=12),
    Column("class", dropped=2),
    Column("consumer", dropped=3, least=8),
    Column("amount", dropped=4, right=True),
    Column("message", least=24, last=True),
)

EFFECTS = (
    Column("effect"),
    Column("of", least=12),
    Column("class", dropped=1),
    Column("before", dropped=2, least=12),
    Column("after", least=12, last=True),
)

Names = Mapping[str, str]
"""Names of providers by UUID."""


def names_of(summary: ReshapeSummary) -> Names:
    """Return the names of the providers of a plan, by UUID: the new ones."""
    return {
        one.provider: node.name
        for one in summary.providers
        if (node := one.after or one.before) is not None
    }


def show_trees(summary: ReshapeSummary, *, wide: bool) -> None:
    """Print the trees before and after: side by side, or one below the other if it is narrow."""
    before, after = _tree(summary, after=False), _tree(summary, after=True)
    rows = [*_aligned(before, after)]
    if sys.stdout.isatty() and not wide and size_of_terminal().columns < SIDES_WIDTH:
        show_rows((Column("before", least=20),), [row[:1] for row in rows if row[0] != _NONE])
        show_rows((Column("after", least=20),), [row[1:] for row in rows if row[1] != _NONE])
        return
    show_rows((Column("before", least=20), Column("after", least=20)), rows, wide=wide)


def show_consumers(summary: ReshapeSummary, *, wide: bool) -> None:
    """Print by how much the units of consumers change; on a terminal only the first ones."""
    deltas, names = summary.consumers, names_of(summary)
    if not deltas:
        return
    shown = len(deltas) if wide or not sys.stdout.isatty() else CONSUMERS_SHOWN
    rows: list[Row] = [
        [one.consumer, _named(names, one.provider), one.class_, f"{one.amount:+d}"]
        for one in deltas[:shown]
    ]
    show_rows(DELTAS, rows, wide=wide)
    if len(deltas) > shown:
        say(f"{counted(len(deltas) - shown, 'change')} more; --wide shows all")


def show_notes(notes: Iterable[ReshapeNote], *, wide: bool) -> None:
    """Print what to think of, each with the consumers that it is about; on a terminal a few."""
    for note in notes:
        say(f"note: {note.message}")
        named, what = sorted(note.consumers), "ticket" if note.code == TICKETS else "lease"
        shown = len(named) if wide or not sys.stdout.isatty() else CONSUMERS_SHOWN
        for uuid in named[:shown]:
            lease = note.consumers[uuid]
            say(f"{INDENT}{uuid}" + ("" if lease is None else f" of {what} {lease}"))
        if len(named) > shown:
            say(f"{INDENT}{counted(len(named) - shown, 'consumer')} more; --wide shows all")


def show_violations(
    violations: Sequence[ReshapeViolation], summary: ReshapeSummary, *, wide: bool
) -> None:
    """Print why a plan cannot be carried out."""
    names = names_of(summary)
    rows: list[Row] = [
        [
            Cell(one.code, one.code, BAD),
            _named(names, one.provider),
            one.class_ or NOTHING,
            one.consumer or NOTHING,
            number_text(one.amount),
            one.message,
        ]
        for one in violations
    ]
    show_rows(VIOLATIONS, rows, wide=wide)


def show_differences(
    gone: Iterable[ReshapeEffect], new: Iterable[ReshapeEffect], names: Names, *, wide: bool
) -> None:
    """Print the effects that a plan no longer has, and those that it has now."""
    rows = [_effect_row("-", one, names, BAD) for one in gone]
    rows += [_effect_row("+", one, names, GOOD) for one in new]
    show_rows(EFFECTS, rows, wide=wide)


def _effect_row(sign: str, one: ReshapeEffect, names: Names, colour: str) -> Row:
    kind = f"{sign} {one.kind}"
    return [
        Cell(kind, kind, colour),
        one.consumer or _named(names, one.provider),
        one.class_ or NOTHING,
        _value_text(one.before),
        _value_text(one.after),
    ]


def _value_text(value: object) -> str:
    """Return a value of an effect: names and amounts, without the form of JSON."""
    if value is None:
        return NOTHING
    if isinstance(value, dict):
        return ", ".join(f"{name}={_value_text(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NOTHING
    return str(value)


def _named(names: Names, uuid: str | None) -> str:
    return NOTHING if uuid is None else names.get(uuid, uuid)


_NONE = Cell("", NOTHING)
"""The cell of a provider that is not in this tree, or not in this place of it."""

_Line = tuple[tuple[str, str], str]
"""What a line is about, the UUID of a provider and perhaps a class of it; and its text."""


def _tree(summary: ReshapeSummary, *, after: bool) -> list[_Line]:
    """Return the lines of one tree: each provider stands below its parent, by name.

    Its classes follow it, with what is used and the total.
    """
    nodes: dict[str, ReshapeNode] = {}
    for one in summary.providers:
        node = one.after if after else one.before
        if node is not None:
            nodes[one.provider] = node
    amounts: dict[str, list[tuple[str, str]]] = {}
    for place in summary.places:
        level = place.after if after else place.before
        if level is not None:
            text = _amount_text(place.class_, level)
            amounts.setdefault(place.provider, []).append((place.class_, text))
    lines: list[_Line] = []
    for uuid, depth in in_tree_order(nodes):
        indent = INDENT * depth
        lines.append(((uuid, ""), f"{indent}{nodes[uuid].name}"))
        lines += [
            ((uuid, name), f"{indent}{BESIDE}{text}")
            for name, text in sorted(amounts.get(uuid, ()))
        ]
    return lines


def _amount_text(name: str, level: ReshapeLevel) -> str:
    reserved = f" ({level.reserved} reserved)" if level.reserved else ""
    return f"{name} {level.used}/{level.total}{reserved}"


def _aligned(before: Sequence[_Line], after: Sequence[_Line]) -> Iterator[list[Cell]]:
    """Yield rows of two trees; what is in both has one row, if possible."""
    ids = [about for about, _ in before], [about for about, _ in after]
    for kind, left, left_end, right, right_end in SequenceMatcher(
        None, *ids, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            for (_, one), (_, other) in zip(
                before[left:left_end], after[right:right_end], strict=True
            ):
                colour = None if one == other else BUSY
                yield [Cell(one, one, colour), Cell(other, other, colour)]
            continue
        yield from ([Cell(text, text, BAD), _NONE] for _, text in before[left:left_end])
        yield from ([_NONE, Cell(text, text, GOOD)] for _, text in after[right:right_end])
