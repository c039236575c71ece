"""Parents and ancestors, for a whole chunk at once."""

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.catalog.columns import Mask


def parent_rows(chunk: Chunk) -> NDArray[np.intp]:
    """Return the row of each row's parent; for roots and empty rows, the row itself.

    The result is cached until a tree of the chunk changes. Do not modify it.
    """
    known = chunk.trees.parents
    if known is None:
        held = [(row, each.provider) for row, each in enumerate(chunk.records) if each is not None]
        rows = {provider.uuid: row for row, provider in held}
        known = np.arange(chunk.size)
        for row, provider in held:
            if provider.parent is not None:
                known[row] = rows[provider.parent]
        chunk.trees.parents = known
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
