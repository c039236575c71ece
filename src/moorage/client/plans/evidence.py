"""Files of evidence: the children that a provider gets, and what each consumer uses of them.

The three kinds of file describe the same: a file of one class, of NUMA cells, of PCI devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from moorage.wire.reshapes import ReshapeFigures

Holdings = dict[str, dict[str, dict[str, int]]]
"""Units by consumer, name of the provider, and class."""

FIGURES = tuple(one.name for one in fields(ReshapeFigures))
RATIO = "allocation_ratio"


class EvidenceError(ValueError):
    """A file of evidence does not say what it should; the message names the place in it."""


@dataclass(frozen=True)
class Child:
    """A provider below the one that is split; `figures` are by class, each with a total.

    `uuid` None: that of the child if it exists, otherwise one that follows from its name. `traits`
    are added to those that it has.
    """

    name: str
    figures: dict[str, ReshapeFigures]
    traits: tuple[str, ...] = ()
    uuid: str | None = None


@dataclass(frozen=True)
class Evidence:
    """What a host has: its children, and what consumers use of each."""

    children: list[Child]
    holdings: Holdings = field(default_factory=dict)

    @property
    def classes(self) -> list[str]:
        """The resource classes of the children, in their order."""
        return list(dict.fromkeys(name for child in self.children for name in child.figures))


def of_class(document: Any, name: str) -> Evidence:
    """Read a file about one class: `children` and `consumers`. Raises EvidenceError."""
    top = _table(document, "the file", ("children", "consumers"), ("children",))
    children = []
    for child, value in _named(top["children"], "children").items():
        where = f"children: {child}"
        given = _table(value, where, (*FIGURES, "traits", "uuid"), ("total",))
        figures = {key: one for key, one in given.items() if key in FIGURES}
        children.append(_child(child, {name: _figures(figures, where)}, given, where))
    holdings: Holdings = {}
    for consumer, value in _named(top.get("consumers", {}), "consumers").items():
        where = f"consumers: {consumer}"
        amounts = _amounts(value, where)
        holdings[consumer.lower()] = {child: {name: units} for child, units in amounts.items()}
    return Evidence(children, holdings)


def of_cells(document: Any) -> Evidence:
    """Read a file about NUMA cells: `cells` and `consumers`. Raises EvidenceError."""
    top = _table(document, "the file", ("cells", "consumers"), ("cells",))
    children = []
    for child, value in _named(top["cells"], "cells").items():
        where = f"cells: {child}"
        given = _table(value, where, ("inventories", "traits", "uuid"), ("inventories",))
        figures = {
            name: _figures(one, f"{where}: {name}")
            for name, one in _named(given["inventories"], where).items()
        }
        children.append(_child(child, figures, given, where))
    holdings: Holdings = {}
    for consumer, value in _named(top.get("consumers", {}), "consumers").items():
        where = f"consumers: {consumer}"
        holdings[consumer.lower()] = {
            child: _amounts(amounts, f"{where}: {child}")
            for child, amounts in _named(value, where).items()
        }
    return Evidence(children, holdings)


def of_devices(document: Any, host: str) -> Evidence:
    """Read a file about PCI devices: `devices` by address. Raises EvidenceError.

    A device is a child with the name of the host, `_` and its address, as Nova names it. Its total
    is 1, unless the file says how many virtual functions it has.
    """
    top = _table(document, "the file", ("devices",), ("devices",))
    children = []
    holdings: Holdings = {}
    for address, value in _named(top["devices"], "devices").items():
        where = f"devices: {address}"
        allowed = ("class", *FIGURES, "traits", "uuid", "consumers")
        given = _table(value, where, allowed, ("class",))
        name = _text(given["class"], f"{where}: class")
        figures = {"total": 1, **{key: one for key, one in given.items() if key in FIGURES}}
        child = f"{host}_{address}"
        children.append(_child(child, {name: _figures(figures, where)}, given, where))
        for consumer, units in _amounts(given.get("consumers", {}), where).items():
            holdings.setdefault(consumer.lower(), {})[child] = {name: units}
    return Evidence(children, holdings)


def _child(
    name: str, figures: dict[str, ReshapeFigures], given: Mapping[str, Any], where: str
) -> Child:
    traits = given.get("traits", [])
    if not isinstance(traits, list):
        raise EvidenceError(f"{where}: traits: this must be a list")
    texts = tuple(_text(one, f"{where}: traits") for one in traits)
    uuid = None if "uuid" not in given else _text(given["uuid"], f"{where}: uuid").lower()
    return Child(name, figures, texts, uuid)


def _figures(value: Any, where: str) -> ReshapeFigures:
    """Return the figures of an inventory; a number alone is its total."""
    if _is_number(value):
        value = {"total": value}
    given = _table(value, where, FIGURES, ("total",))
    for key, one in given.items():
        if key == RATIO and isinstance(one, float) and one > 0:
            continue
        least = 0 if key == "reserved" else 1
        if not _is_number(one) or one < least:
            what = "above 0" if key == RATIO else f"a whole number, {least} or more"
            raise EvidenceError(f"{where}: {key}: this must be {what}")
    return ReshapeFigures(**given)


def _amounts(value: Any, where: str) -> dict[str, int]:
    amounts = _named(value, where)
    for name, units in amounts.items():
        if not _is_number(units) or units < 0:
            raise EvidenceError(f"{where}: {name}: this must be a whole number, 0 or more")
    return amounts


def _table(
    value: Any, where: str, known: tuple[str, ...], needed: tuple[str, ...]
) -> dict[str, Any]:
    """Return an object with only known members. Raises EvidenceError."""
    given = _named(value, where)
    for name in given:
        if name not in known:
            raise EvidenceError(f"{where}: {name} is unknown; known: {', '.join(known)}")
    for name in needed:
        if name not in given:
            raise EvidenceError(f"{where}: {name} is missing")
    return given


def _named(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise EvidenceError(f"{where}: this must be an object")
    for name in value:
        if not isinstance(name, str):  # YAML takes the address 0000:01:00.0 for a number
            raise EvidenceError(f"{where}: {name} must be text: put it in quotes")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise EvidenceError(f"{where}: this must be text")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


Reader = Callable[[Any, str], Evidence]
"""Reads a document; the text is a class, or the name of the host."""
