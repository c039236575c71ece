"""Which trees a claim prefers: whole columns are scored, and the best come first."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.requests import Order
from moorage.core.ledger.search.block import Block

Rows = NDArray[np.intp]
Scores = NDArray[np.float64]
"""One number per anchor; the lowest is preferred."""


class Scorer:
    """Scores the anchors of one query, block by block."""

    def __init__(self, order: Order, classes: set[str]) -> None:
        self._order = order
        self._classes = sorted(classes)
        self._chance = np.random.Generator(np.random.PCG64(order.seed))

    def scores(self, block: Block, anchors: Rows) -> Scores:
        """Return the scores of some anchors of a block."""
        if self._order.preference == "random":
            return self._chance.random(len(anchors))
        full = np.zeros(len(anchors))
        for name in self._classes:
            full += _fullness(block, name, anchors)
        return full if self._order.preference == "spread" else -full


def best_first(scores: Scores, likely: int) -> Iterator[int]:
    """Yield the places of the scores from the lowest on; the first `likely` ones are quick."""
    if len(scores) <= likely:
        yield from np.argsort(scores, kind="stable").tolist()
        return
    parted = np.argpartition(scores, likely)
    for part in (parted[:likely], parted[likely:]):
        # Among equals the first row is the first, as it would be in a stable sort of all.
        part.sort()
        yield from part[np.argsort(scores[part], kind="stable")].tolist()


def _fullness(block: Block, name: str, anchors: Rows) -> Scores:
    """Return the part of a class's capacity that is used, by tree: 0 empty, 1 full."""
    column = block.columns.get(name)
    if column is None:
        return np.zeros(len(anchors))
    used: Scores = column.used.astype(np.float64)
    capacity: Scores = column.capacities()
    if block.trees.is_forest:
        root = block.trees.root
        used = np.bincount(root, used, block.size).astype(np.float64, copy=False)
        capacity = np.bincount(root, capacity, block.size).astype(np.float64, copy=False)
    part: Scores = used[anchors] / np.maximum(capacity[anchors], 1.0)
    return part
