"""Upkeep of the candidate index: the in-memory copy of the fleet that every search runs on.

One way in, `apply`, after the commit of a batch. The start is a snapshot of the rows at a revision.
"""

from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search import Fleet
from moorage.store import ledger as ledger_store
from moorage.store.api import Engine


class Index:
    """The fleet as of `revision`. Never a source of truth: it can be rebuilt at any time."""

    def __init__(
        self, engine: Engine, standard_classes: frozenset[str], standard_traits: frozenset[str]
    ) -> None:
        self._engine = engine
        self.fleet = Fleet(standard_classes, standard_traits)
        self.revision = 0
        self.epoch = 0
        self.loaded = False

    async def load(self) -> None:
        """Read everything anew; needed at the start and after the rows were replaced."""
        self.epoch, self.revision, rows = await self._engine.read_aside(
            ledger_store.snapshot_load()
        )
        self.fleet = self.rebuilt(rows)
        self.loaded = True

    def rebuilt(self, rows: Changes) -> Fleet:
        """Return a fleet made of nothing but these rows."""
        fleet = Fleet(self.fleet.standard_classes, self.fleet.standard_traits)
        fleet.apply(rows)
        return fleet

    def apply(self, revision: int, changes: Changes) -> None:
        """Follow one committed batch."""
        self.fleet.apply(changes)
        self.revision = revision

    async def current(self) -> Fleet:
        """Return the fleet with every change that was acknowledged before this call."""
        return self.fleet
