"""The capacity and usage of the whole ledger, by resource class, for metrics."""

from moorage.service import errors
from moorage.store.api import Engine
from moorage.store.ledger.reads import ClassStock, stock_load

CLASSES_MAX = 50
"""Classes with figures of their own: those that most providers have. Others are summed up."""

OTHER = "other"
"""No resource class: their names are in capital letters."""


class Stock:
    """The last known sums; they are not those of one moment in all processes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.classes: list[ClassStock] = []
        """By class, most providers first; `OTHER`, if there are too many, comes last."""

    async def look(self) -> None:
        """Add up all inventories, off the event loop. Raises `Error`: UNAVAILABLE."""
        with errors.translated():
            found = await self._engine.read_aside(stock_load(), slow=True)
        rest = found[CLASSES_MAX:]
        self.classes = found[:CLASSES_MAX]
        if rest:
            used, total = sum(one.used for one in rest), sum(one.total for one in rest)
            self.classes.append(ClassStock(OTHER, used, total))
