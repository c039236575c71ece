"""Which trees a claim prefers, and which blocks may hold them.

Trees are preferred by their fullness. It is computed for the anchors of an opened block; for all
other blocks the summaries give bounds.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.requests import Order
from moorage.core.ledger.search.block import Block
from moorage.core.ledger.search.groups import Term
from moorage.core.ledger.search.summaries import Summaries

Rows = NDArray[np.intp]
Scores = NDArray[np.float64]
"""One number per anchor, or per block; the lowest is preferred."""


FEW_BEST = 16
"""Scores that are sorted first; the others follow only if they are needed."""


class Scorer:
    """Scores anchors by fullness, and bounds the scores of whole blocks."""

    def __init__(
        self, order: Order, summaries: Summaries, terms: Sequence[Term], roaming: set[str]
    ) -> None:
        """Prepare the scores of one query.

        `roaming`: the classes that sharing providers can serve for other trees.
        """
        self._packs = order.preference == "pack"
        self._summaries = summaries
        # A tree must be able to give the largest amount of a class in one piece, unless a sharing
        # provider may give it. The order is fixed, because sums of floats depend on it.
        reached: dict[str, int] = {}
        for term in terms:
            for name, amount in term.resources.items():
                reached[name] = max(reached.get(name, 0), amount)
        self._reached = {name: 0 if name in roaming else reached[name] for name in sorted(reached)}
        self._roaming = roaming

    def scores(self, block: Block, anchors: Rows) -> Scores:
        """Return the scores of some anchors of a block."""
        full: Scores | None = None
        for name in self._reached:
            column = block.columns.get(name)
            if column is not None:
                # For all rows: picking some of each column would take longer.
                full = column.fullness() if full is None else full + column.fullness()
        if full is None:
            return np.zeros(len(anchors))
        picked = full.take(anchors)
        return -picked if self._packs else picked

    def bounds(self) -> Scores:
        """Return for each block a score that no anchor in it comes below."""
        size = self._summaries.size
        full = np.zeros(size)
        for name, amount in self._reached.items():
            gauge = self._summaries.classes.get(name)
            if gauge is None:
                continue
            bound = gauge.bounds(amount, size, self._packs)
            # Where the class comes from abroad the tree may have none of it.
            if self._packs or name not in self._roaming:
                full += bound
        return -full if self._packs else full

    def tightened(self, block: Block) -> bool:
        """Make the bound of one block exact, class by class; False: it is so already."""
        columns = (block.columns.get(name) for name in self._reached)
        loose = [column for column in columns if column is not None and column.is_loose]
        for column in loose:
            column.tighten()
        return bool(loose)

    def bound(self, block: Block) -> float:
        """Return the bound of one block: the same sum."""
        full = 0.0
        for name, amount in self._reached.items():
            column = block.columns.get(name)
            if column is not None and (self._packs or name not in self._roaming):
                full += column.bound(amount, self._packs)
        return -full if self._packs else full


def best_first(scores: Scores) -> Iterator[int]:
    """Yield the places of the scores from the lowest on, among equals in their order."""
    if not len(scores):
        return
    # Of most blocks no more is needed than the first, or a few.
    first = int(scores.argmin())
    yield first
    few = np.ones(len(scores), dtype=np.bool_)
    if len(scores) > FEW_BEST:
        few = scores <= np.partition(scores, FEW_BEST)[FEW_BEST]
    for part in (few, ~few):
        places = part.nonzero()[0]
        for place in places[scores[places].argsort(kind="stable")].tolist():
            if place != first:
                yield place
