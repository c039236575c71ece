"""Parents and ancestors, for a whole block at once."""

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.search.block import Block
from moorage.core.ledger.search.columns import Mask


def parent_rows(block: Block) -> NDArray[np.intp]:
    """Return the row of each row's parent; roots and empty rows stand for themselves.

    The result is cached until a tree of the block changes. Do not modify it.
    """
    known = block.trees.parents
    if known is None:
        held = [(row, each.provider) for row, each in enumerate(block.records) if each is not None]
        rows = {provider.uuid: row for row, provider in held}
        known = np.arange(block.size)
        for row, provider in held:
            if provider.parent is not None:
                known[row] = rows[provider.parent]
        block.trees.parents = known
    return known


def with_ancestors(mask: Mask, parents: NDArray[np.intp]) -> Mask:
    """Mark the marked rows and all rows above them."""
    found = mask.copy()
    rows = np.flatnonzero(mask)
    while len(rows):
        above = parents[rows]
        rows = np.unique(above[~found[above]])
        found[rows] = True
    return found
