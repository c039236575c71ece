"""Check the summaries against the blocks: every figure is computed again from the rows."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from moorage.core.ledger.search.block import Block
from moorage.core.ledger.search.columns import Column, Marks
from moorage.core.ledger.search.summaries import BUCKETS, Gauge, Register, Summaries, Uses, buckets

NAMES = 64
"""Traits or aggregates that are looked at in one piece."""

T = TypeVar("T")


def unsound(summaries: Summaries, blocks: Sequence[Block]) -> Iterator[list[str]]:
    """Yield, piece by piece, a line for each summary that is not exact or not a bound.

    The fleet may change between two pieces.
    """
    held = sum(len(block.columns) for block in blocks)
    if held != sum(gauge.held for gauge in summaries.classes.values()):
        yield ["summaries: a class is noted for a block that has none of it"]
    for known, masks in (
        (summaries.traits, [block.traits.masks for block in blocks]),
        (summaries.aggregates, [block.aggregates.masks for block in blocks]),
    ):
        if sum(each.held for each in known.values()) != sum(map(len, masks)):
            yield ["summaries: a name is noted for a block in which nobody has it"]
    registers: list[Register] = [summaries.rows, *summaries.classes.values()]
    registers += [*summaries.traits.values(), *summaries.aggregates.values()]
    for some in _portions(registers):
        wrong = not all(each.is_sound() for each in some)
        yield ["summaries: the slots of a class or a name are counted wrong"] if wrong else []
    for block in list(blocks):
        for name in list(block.columns):
            if name in block.columns:
                yield list(_column_wrong(summaries, block, name))
        if int(np.count_nonzero(block.here)) != summaries.rows.rows[block.number]:
            yield [f"summaries: block {block.number}: the count of rows in use"]
        for marks, uses in (
            (block.traits, summaries.traits),
            (block.aggregates, summaries.aggregates),
        ):
            for names in _portions(list(marks.masks)):
                yield list(_marks_wrong(marks, names, uses, block.number))


def _portions(many: list[T]) -> Iterator[list[T]]:
    for first in range(0, len(many), NAMES):
        yield many[first : first + NAMES]


def _column_wrong(summaries: Summaries, block: Block, name: str) -> Iterator[str]:
    gauge = summaries.classes.get(name)
    wrong = _first_wrong(gauge, block.columns[name], block.number)
    if wrong:
        yield f"summaries: block {block.number}: {wrong} of {name}"


def _first_wrong(gauge: Gauge | None, column: Column, block: int) -> str:
    """Name the first summary of a column that is wrong; "" if none is."""
    slots = [] if gauge is None else np.flatnonzero(gauge.blocks == block).tolist()
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
    marks: Marks, names: list[str], known: dict[str, Uses], block: int
) -> Iterator[str]:
    for name in names:
        mask = marks.masks.get(name)
        if mask is None:
            continue  # since the list was made
        uses = known.get(name)
        slots = [] if uses is None else np.flatnonzero(uses.blocks == block).tolist()
        count = int(np.count_nonzero(mask))
        if uses is None or len(slots) != 1 or int(uses.rows[slots[0]]) != count:
            yield f"summaries: block {block}: the count of rows with {name}"
