"""Entries of the audit log as text: what has changed."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cli.support.tables import NOTHING, Cell
from moorage.cli.support.views.cells import id_cells
from moorage.cli.support.views.pool_text import IDLE, plain_text, property_text
from moorage.core.ids import is_normal
from moorage.wire.admission import DURATIONS, Adaptive, FairShare, Pacing

FIRST = ("reason", "owner")
"""Members that matter most: they come first, because the end of a text may be cut."""

OF_BEFORE = ("owner",)
"""Members that an act does not repeat, and that say whose the target was."""


def target_cells(targets: Mapping[str, str | None]) -> dict[str, Cell]:
    """Return the cells of targets, which may have names.

    On a terminal names are shown, and behind them ids, which are cut as in lists.
    """
    ids = id_cells(one for one in targets if is_normal(one))
    cells = {}
    for one, name in targets.items():
        cell = ids.get(one, Cell(one, one))
        cells[one] = cell._replace(short=f"{name} {cell.short}") if name else cell
    return cells


def change_text(before: Any, after: Any) -> str:
    """Return the members that have another value afterwards, `reason: because; limit: 2 -> 1`.

    Of what is new, members without a value are left out.
    """
    parts = [*_changes(_members(before), _members(after))]
    return "; ".join(parts) or NOTHING


def _changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    names = sorted({**after, **before}, key=_place)
    for name in names:
        old, new = before.get(name), after.get(name)
        if name not in after:
            if name in OF_BEFORE and old:
                yield f"{name}: {plain_text(old)}"
        elif name not in before:
            if not _is_empty(new):
                yield f"{name}: {_text(name, new)}"
        elif old != new:
            was = "" if _is_empty(old) else f"{_text(name, old)} -> "
            yield f"{name}: {was}{_text(name, new)}"


def _place(name: str) -> int:
    return FIRST.index(name) if name in FIRST else len(FIRST)


def _members(state: Any) -> dict[str, Any]:
    """Return the members of a state. One of another kind is null, or what is false of it."""
    if isinstance(state, dict):
        return state
    return {"to": state} if state not in (None, False) else {}


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _text(name: str, value: Any) -> str:
    if name == "pacing" and isinstance(value, dict):
        return property_text(name, Pacing(**value))
    if name == "adaptive" and isinstance(value, dict):
        return property_text(name, Adaptive(**value))
    if name == "fair_share" and isinstance(value, dict):
        return property_text(name, FairShare(**value))
    return property_text(name, value) if name in {*DURATIONS, IDLE} else plain_text(value)
