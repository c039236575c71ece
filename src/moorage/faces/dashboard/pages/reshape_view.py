"""What a page shows of a reshape, done or planned: two trees, places, consumers, all bounded.

A reshape may concern thousands of providers and consumers, so all of this belongs into a thread.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from moorage.core.ledger.reshaping.tenants import NoteCode
from moorage.core.ledger.reshaping.tree_order import in_tree_order
from moorage.core.ledger.reshaping.violations import ViolationCode
from moorage.wire.reshapes import (
    ReshapeDelta,
    ReshapeEffect,
    ReshapeLevel,
    ReshapeNode,
    ReshapePlaceChange,
    ReshapePlanned,
    ReshapeProviderChange,
    ReshapeSummary,
    ReshapeViolation,
)

PROVIDERS_SHOWN = 200
"""Providers of each tree."""

ROWS_SHOWN = 100
"""Rows of each table."""

CHARACTERS_SHOWN = 300
"""Characters of a value in the list of other changes: a provider may have hundreds of traits."""

LEAVE_OUT_SHOWN = 100
"""Consumers that can be left out by a click: all of them fit into the address of a page."""

FIGURES = ("total", "reserved", "used", "free")

OTHERS = {
    "inventory_set": "figures",
    "traits_set": "traits",
    "aggregates_set": "aggregates",
    "provider_drained": "withheld",
}
"""Effects that neither a tree nor an amount shows, and what they change."""

SHOWN_ELSEWHERE = frozenset({"total", "reserved"})
"""Figures of an inventory that the table of places has."""


class Line(NamedTuple):
    """A provider in one of the trees."""

    provider: str
    name: str
    depth: int
    note: str
    """What has become of it, or has been made of it; empty: it stays as it is."""


class PlaceRow(NamedTuple):
    """A place, its figures before and after, and what has become of it; None: no inventory."""

    provider: str
    name: str
    resource_class: str
    note: str
    figures: list[tuple[str, int | None, int | None]]


class DeltaRow(NamedTuple):
    """By how much a consumer's units at a place change."""

    consumer: str
    provider: str
    name: str
    resource_class: str
    amount: int


class OtherRow(NamedTuple):
    """A change of figures, traits, aggregates or a drain."""

    name: str
    what: str
    before: str
    after: str


class ViolationRow(NamedTuple):
    """Why a plan cannot be carried out."""

    code: str
    name: str
    resource_class: str
    consumer: str
    amount: int | None
    message: str


class Returning(NamedTuple):
    """A consumer that an undo would create again, unless it is left out."""

    consumer: str
    why: str
    """Why somebody may want to leave it out."""
    left_out: bool


class Bounded(NamedTuple):
    """The first rows of a table, and how many more there are."""

    rows: Sequence[Any]
    more: int


class View(NamedTuple):
    """A reshape as a page shows it."""

    before: Bounded
    after: Bounded
    places: Bounded
    consumers: Bounded
    others: Bounded
    violations: Bounded


def view_of(
    summary: ReshapeSummary,
    effects: Sequence[ReshapeEffect],
    violations: Sequence[ReshapeViolation] = (),
) -> View:
    """Return what a page shows."""
    names = {
        one.provider: node.name
        for one in summary.providers
        if (node := one.after or one.before) is not None
    }
    changed = {one.provider for one in summary.places if one.before != one.after}
    shown = _shown(summary.providers, changed)
    others = [*_others(effects, names)]
    return View(
        _tree(summary.providers, shown, changed, names, after=False),
        _tree(summary.providers, shown, changed, names, after=True),
        _bounded(
            [_place(one, names) for one in _changed_first(summary.places)[:ROWS_SHOWN]],
            len(summary.places),
        ),
        _bounded(
            [_delta(one, names) for one in summary.consumers[:ROWS_SHOWN]], len(summary.consumers)
        ),
        _bounded(others[:ROWS_SHOWN], len(others)),
        _bounded([_violation(one, names) for one in violations[:ROWS_SHOWN]], len(violations)),
    )


def returning_of(plan: ReshapePlanned, left_out: Sequence[str]) -> Bounded:
    """Return the consumers that an undo may leave out: who is left out now, and whose lease ended.

    The others follow that would be created again and that no lease has.
    """
    ended = [one.consumer or "" for one in plan.violations if one.code == ViolationCode.LEASE_ENDED]
    again = [one.consumers for one in plan.notes if one.code == NoteCode.CREATED_AGAIN]
    whys = dict.fromkeys(left_out, "")
    for why, found in (
        ("its lease has ended", ended),
        ("no lease has it", [uuid for one in again for uuid in one]),
    ):
        for uuid in found:
            whys.setdefault(uuid, why)
    shown = [Returning(uuid, why, uuid in left_out) for uuid, why in whys.items()]
    return _bounded(shown[:LEAVE_OUT_SHOWN], len(shown))


def _bounded(rows: Sequence[Any], count: int) -> Bounded:
    return Bounded(rows, count - len(rows))


def _shown(providers: Sequence[ReshapeProviderChange], changed: set[str]) -> set[str]:
    """Return the providers that both trees show: of many, those that change come first."""
    ordered = sorted(
        providers, key=lambda one: not (one.before != one.after or one.provider in changed)
    )
    return {one.provider for one in ordered[:PROVIDERS_SHOWN]}


def _tree(
    providers: Sequence[ReshapeProviderChange],
    shown: set[str],
    changed: set[str],
    names: Mapping[str, str],
    *,
    after: bool,
) -> Bounded:
    """Return one of the trees. What is above a shown provider but not shown has no line."""
    changes = {one.provider: one for one in providers}
    nodes = {
        uuid: node
        for uuid, one in changes.items()
        if (node := one.after if after else one.before) is not None
    }
    lines = [
        Line(
            uuid, nodes[uuid].name, depth, _note(changes[uuid], uuid in changed, names, after=after)
        )
        for uuid, depth in in_tree_order(nodes)
        if uuid in shown
    ]
    return _bounded(lines, len(nodes))


def _note(
    one: ReshapeProviderChange, changed: bool, names: Mapping[str, str], *, after: bool
) -> str:
    """Return what is special about a provider in one of the trees, in words."""
    if one.before is None or one.after is None:
        return "new" if after else "gone afterwards"
    here, there = (one.after, one.before) if after else (one.before, one.after)
    notes = []
    if here.name != there.name:
        notes.append(f"{'was' if after else 'becomes'} {there.name}")
    if here.parent != there.parent:
        notes.append(f"{'moved from' if after else 'moves to'} {_parent(there, names)}")
    if changed:
        notes.append("amounts changed" if after else "amounts change")
    return ", ".join(notes)


def _parent(node: ReshapeNode, names: Mapping[str, str]) -> str:
    return "the top" if node.parent is None else names.get(node.parent, node.parent)


def _changed_first(places: Sequence[ReshapePlaceChange]) -> list[ReshapePlaceChange]:
    return sorted(places, key=lambda one: one.before == one.after)


def _place(one: ReshapePlaceChange, names: Mapping[str, str]) -> PlaceRow:
    if one.before == one.after:
        note = "unchanged"
    elif one.before is None:
        note = "new"
    else:
        note = "removed" if one.after is None else "changed"
    figures = [(name, _figure(one.before, name), _figure(one.after, name)) for name in FIGURES]
    name = names.get(one.provider, one.provider)
    return PlaceRow(one.provider, name, one.class_, note, figures)


def _figure(level: ReshapeLevel | None, name: str) -> int | None:
    return None if level is None else int(getattr(level, name))


def _delta(one: ReshapeDelta, names: Mapping[str, str]) -> DeltaRow:
    name = names.get(one.provider, one.provider)
    return DeltaRow(one.consumer, one.provider, name, one.class_, one.amount)


def _others(effects: Sequence[ReshapeEffect], names: Mapping[str, str]) -> Iterator[OtherRow]:
    for one in effects:
        what = OTHERS.get(one.kind)
        if what is None or one.provider is None:
            continue
        before, after = _differing(one.before), _differing(one.after)
        if what == "figures":
            if one.before is None or one.after is None or before == after:
                continue  # the table of places has it
            before, after = _only_changed(before, after)
            what = f"figures of {one.class_}"
        name = names.get(one.provider, one.provider)
        yield OtherRow(name, what, _text(before), _text(after))


def _differing(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if name not in SHOWN_ELSEWHERE}
    return value


def _only_changed(before: Any, after: Any) -> tuple[Any, Any]:
    changed = [name for name in after if after[name] != before.get(name)]
    return {name: before.get(name) for name in changed}, {name: after[name] for name in changed}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        text = ", ".join(f"{name} {one}" for name, one in value.items())
    elif isinstance(value, str):
        text = value
    else:
        text = ", ".join(map(str, value or ()))
    return text if len(text) <= CHARACTERS_SHOWN else f"{text[:CHARACTERS_SHOWN]} …"


def _violation(one: ReshapeViolation, names: Mapping[str, str]) -> ViolationRow:
    name = "" if one.provider is None else names.get(one.provider, one.provider)
    return ViolationRow(
        one.code, name, one.class_ or "", one.consumer or "", one.amount, one.message
    )
