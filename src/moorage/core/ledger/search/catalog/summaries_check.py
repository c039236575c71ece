"""Check the summaries against the chunks: every figure is recomputed from the rows."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.catalog.columns import Column, Marks
from moorage.core.ledger.search.catalog.summaries import (
    BUCKETS,
    Gauge,
    Register,
    Summaries,
    Uses,
    buckets,
)

NAMES = 64
"""Registers, traits or aggregates that are checked in one piece."""

T = TypeVar("T")


def unsound(summaries: Summaries, chunks: Sequence[Chunk]) -> Iterator[list[str]]:
    """Yield, piece by piece, a line for each summary that is not exact or not a bound.

    The catalog may change between two pieces.
    """
    held = sum(len(chunk.columns) for chunk in chunks)
    if held != sum(gauge.held for gauge in summaries.classes.values()):
        yield ["summaries: a class is noted for a chunk that has none of it"]
    for known, masks in (
        (summaries.traits, [chunk.traits.masks for chunk in chunks]),
        (summaries.aggregates, [chunk.aggregates.masks for chunk in chunks]),
    ):
        if sum(each.held for each in known.values()) != sum(map(len, masks)):
            yield ["summaries: a name is noted for a chunk in which nobody has it"]
    registers: list[Register] = [summaries.rows, *summaries.classes.values()]
    registers += [*summaries.traits.values(), *summaries.aggregates.values()]
    for some in _portions(registers):
        wrong = not all(each.is_sound() for each in some)
        yield ["summaries: the slots of a class or a name are counted wrong"] if wrong else []
    for chunk in list(chunks):
        for name in list(chunk.columns):
            if name in chunk.columns:
                yield list(_column_wrong(summaries, chunk, name))
        if int(np.count_nonzero(chunk.here)) != summaries.rows.rows[chunk.number]:
            yield [f"summaries: chunk {chunk.number}: the count of rows in use"]
        for marks, uses in (
            (chunk.traits, summaries.traits),
            (chunk.aggregates, summaries.aggregates),
        ):
            for names in _portions(list(marks.masks)):
                yield list(_marks_wrong(marks, names, uses, chunk.number))


def _portions(many: list[T]) -> Iterator[list[T]]:
    for first in range(0, len(many), NAMES):
        yield many[first : first + NAMES]


def _column_wrong(summaries: Summaries, chunk: Chunk, name: str) -> Iterator[str]:
    gauge = summaries.classes.get(name)
    wrong = _first_wrong(gauge, chunk.columns[name], chunk.number)
    if wrong:
        yield f"summaries: chunk {chunk.number}: {wrong} of {name}"


def _first_wrong(gauge: Gauge | None, column: Column, chunk: int) -> str:
    """Return the name of the first wrong summary of a column; "" if none is."""
    slots = [] if gauge is None else np.flatnonzero(gauge.chunks == chunk).tolist()
    if gauge is None or len(slots) != 1:
        return "the place"
    slot = slots[0]
    rows = np.flatnonzero(column.offers())
    at = buckets(column.largest[rows])
    if not np.array_equal(column.bucket[rows], at):
        return "the bucket of a row"
    counts = np.bincount(at, minlength=BUCKETS)[::-1].cumsum()[::-1]
    if not np.array_equal(counts, gauge.at_least[:, slot]):
        return "the count of rows by bucket"
    most = column.largest_piece()
    if gauge.most[slot] < most or (gauge.most[slot] > most and not gauge.fell[slot]):
        return "the largest amount"
    for highest, bounds in ((True, gauge.fullest), (False, gauge.emptiest)):
        exact, bound = column.extreme(highest), bounds[:, slot]
        if (bound < exact if highest else bound > exact).any():
            return "a bound of fullness"
        if not (gauge.is_loose(slot, highest) or np.array_equal(bound, exact)):
            return "a bound of fullness that should be exact"
    return ""


def _marks_wrong(
    marks: Marks, names: list[str], known: dict[str, Uses], chunk: int
) -> Iterator[str]:
    for name in names:
        mask = marks.masks.get(name)
        if mask is None:
            continue  # removed meanwhile
        uses = known.get(name)
        slots = [] if uses is None else np.flatnonzero(uses.chunks == chunk).tolist()
        count = int(np.count_nonzero(mask))
        if uses is None or len(slots) != 1 or int(uses.rows[slots[0]]) != count:
            yield f"summaries: chunk {chunk}: the count of rows with {name}"
