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


TOGETHER = 16
"""Scores that are handed out together. The lowest are sorted first, the others when needed."""


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
        loose = [each for each in columns if each is not None and each.is_loose(self._packs)]
        for column in loose:
            column.tighten(self._packs)
        return bool(loose)

    def bound(self, block: Block) -> float:
        """Return the bound of one block: the same sum."""
        full = 0.0
        for name, amount in self._reached.items():
            column = block.columns.get(name)
            if column is not None and (self._packs or name not in self._roaming):
                full += column.bound(amount, self._packs)
        return -full if self._packs else full


def best_first(scores: Scores) -> Iterator[Rows]:
    """Yield the places of the scores from the lowest on, `TOGETHER` at a time.

    Equals keep their order.
    """
    low = np.ones(len(scores), dtype=np.bool_)
    if len(scores) > TOGETHER:
        # Of most blocks no more than the first few are needed.
        low = scores <= np.partition(scores, TOGETHER)[TOGETHER]
    for part in (low, ~low):
        places = part.nonzero()[0]
        places = places[scores[places].argsort(kind="stable")]
        for at in range(0, len(places), TOGETHER):
            yield places[at : at + TOGETHER]
