"""Compares rows with the values in their bodies, for the checks of the rooms.

A body is the whole value; the other columns of its row must be what would be written for it. At
most `FOUND_MAX` differences are reported.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import MsgspecError

from moorage.store.api import Plan, Row
from moorage.store.sql import columns

FOUND_MAX = 1_000
"""Differences that are reported; the check stops at the next one."""


def _nothing_spared(_stored: dict[str, Any], _value: Any) -> tuple[str, ...]:
    return ()


class Kind(NamedTuple):
    """A kind of rows: its title, the block that writes it, how to read a body and write a row.

    `spared` returns the columns that may differ from the body.
    """

    title: str
    block: str
    read: Callable[[str], Any]
    write: Callable[[Any], Row]
    spared: Callable[[dict[str, Any], Any], tuple[str, ...]] = _nothing_spared


class Enough(Exception):
    """`FOUND_MAX` differences were found, so the check stops."""


class Found:
    """The differences so far."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, lines: Iterable[str]) -> None:
        """Add differences. Raises `Enough`."""
        for line in lines:
            if len(self.lines) == FOUND_MAX:
                raise Enough
            self.lines.append(line)

    def read(self, kind: Kind, rows: Iterable[Row]) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield (columns, value) of the readable rows; compare each with the expected row."""
        names = columns(kind.block)
        for row in rows:
            stored = dict(zip(names, row, strict=True))
            title = kind.title.format(**stored)
            try:
                value = kind.read(stored["body"])
            except MsgspecError as error:
                self.tell([f"{title}: its body cannot be read: {error}"])
                continue
            self.tell(differing(title, names, row, kind.write(value), kind.spared(stored, value)))
            yield stored, value


def collected(what: str, compare: Callable[[Found], Plan[None]]) -> Plan[list[str]]:
    """Return the differences that `compare` tells of; the last line says if there were too many.

    `what` names the rows. Use `read_aside`: it reads everything.
    """
    found = Found()
    try:
        yield from compare(found)
    except Enough:
        found.lines.append(f"{what}: there are more differences; the rest was not looked at")
    return found.lines


def differing(
    title: str, names: tuple[str, ...], stored: Row, expected: Row, spared: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the columns that differ, except bodies: releases may encode them differently."""
    for name, one, other in zip(names, stored, expected, strict=True):
        if one != other and name not in ("body", *spared):
            yield f"{title}: {name} is {one!r}, it should be {other!r}"
