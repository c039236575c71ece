"""The capacity and usage of the whole ledger, by resource class, for metrics."""

from moorage.core.ledger.search.capacity_sums import ClassStock, stocks
from moorage.service.fair_turns import FairTurns, Pieces
from moorage.service.feed.catalog_index import CatalogIndex

CLASSES_MAX = 50
"""Classes with figures of their own: those that most providers have. Others are summed up."""

OTHER = "other"
"""No resource class: their names are in capital letters."""


class Stock:
    """The last known sums; they are not those of one moment, nor equal in all processes."""

    def __init__(self, index: CatalogIndex, turns: FairTurns) -> None:
        self._index = index
        self._turns = turns
        self.classes: list[ClassStock] = []
        """By class, most providers first; `OTHER`, if there are too many, comes last."""

    async def look(self) -> None:
        """Add up all inventories that this process knows of, in spare turns."""
        await self._index.whole()
        chunks = list(self._index.catalog.chunks)
        found = await Pieces(self._turns).driven(stocks(chunks))
        rest = found[CLASSES_MAX:]
        self.classes = found[:CLASSES_MAX]
        if rest:
            used, total = sum(one.used for one in rest), sum(one.total for one in rest)
            self.classes.append(ClassStock(OTHER, used, total))
