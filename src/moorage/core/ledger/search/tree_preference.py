"""Which trees a claim prefers, and which chunks may contain them.

Trees are preferred by their fullness. It is computed for the anchors of an opened chunk; for other
chunks the summaries give bounds.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.requests import CandidateOrder
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.catalog.summaries import Summaries
from moorage.core.ledger.search.groups import GroupPart

Rows = NDArray[np.intp]
Scores = NDArray[np.float64]
"""One number per anchor, or per chunk; the lowest is preferred."""


TOGETHER = 16
"""Scores that are returned together. The lowest are sorted first, the others on demand."""


class Scorer:
    """Scores anchors by fullness, and bounds the scores of whole chunks."""

    def __init__(
        self,
        order: CandidateOrder,
        summaries: Summaries,
        terms: Sequence[GroupPart],
        roaming: set[str],
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

    def scores(self, chunk: Chunk, anchors: Rows) -> Scores:
        """Return the scores of some anchors of a chunk."""
        full: Scores | None = None
        for name in self._reached:
            column = chunk.columns.get(name)
            if column is not None:
                # For all rows: selecting rows from each column would take longer.
                full = column.fullness() if full is None else full + column.fullness()
        if full is None:
            return np.zeros(len(anchors))
        picked = full.take(anchors)
        return -picked if self._packs else picked

    def bounds(self) -> Scores:
        """Return a lower bound of the anchors' scores for each chunk."""
        size = self._summaries.size
        full = np.zeros(size)
        for name, amount in self._reached.items():
            gauge = self._summaries.classes.get(name)
            if gauge is None:
                continue
            bound = gauge.bounds(amount, size, self._packs)
            # If a guest provides the class, the tree itself may have none of it.
            if self._packs or name not in self._roaming:
                full += bound
        return -full if self._packs else full

    def tightened(self, chunk: Chunk) -> bool:
        """Make the bound of one chunk exact, class by class; False: it already is."""
        columns = (chunk.columns.get(name) for name in self._reached)
        loose = [each for each in columns if each is not None and each.is_loose(self._packs)]
        for column in loose:
            column.tighten(self._packs)
        return bool(loose)

    def bound(self, chunk: Chunk) -> float:
        """Return the bound of one chunk, computed as in `bounds`."""
        full = 0.0
        for name, amount in self._reached.items():
            column = chunk.columns.get(name)
            if column is not None and (self._packs or name not in self._roaming):
                full += column.bound(amount, self._packs)
        return -full if self._packs else full


def best_first(scores: Scores) -> Iterator[Rows]:
    """Yield the indexes of the scores in ascending order, `TOGETHER` at a time.

    Equal scores keep their order.
    """
    low = np.ones(len(scores), dtype=np.bool_)
    if len(scores) > TOGETHER:
        # For most chunks only the first few are needed.
        low = scores <= np.partition(scores, TOGETHER)[TOGETHER]
    for part in (low, ~low):
        places = part.nonzero()[0]
        places = places[scores[places].argsort(kind="stable")]
        for at in range(0, len(places), TOGETHER):
            yield places[at : at + TOGETHER]
