"""The ledger's part of a batch: load, apply decisions, save."""

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.core.ledger.model import Import
from moorage.core.service_time import When
from moorage.service.batch.world import World
from moorage.store.api import Plan
from moorage.store.ledger import load, save

LARGE = 1_000
"""Rows from which on a batch is decided in a thread: about twenty milliseconds of work."""


class LedgerRoom:
    """The providers and consumers of one batch."""

    def __init__(self, world: World, keys: Keys) -> None:
        self._world = world
        self.keys = keys
        # Looking for uses of a class or trait scans all providers; there may be many holders.
        self.large = len(keys) > LARGE or bool(keys.class_uses or keys.trait_uses or keys.holders)
        """Whether its work belongs into a thread."""
        self.changes = Changes()
        """The merged changes of all decisions so far."""
        self.stamp = Instant(0)
        """The time of the next row that is created."""
        self._before: save.LoadedValues

    @property
    def facts(self) -> Facts:
        """The loaded rows, as changed so far."""
        return self._world.ledger

    @property
    def importing(self) -> Import | None:
        """The import that is under way, if the batch has read the mark."""
        return None if self._world.imports is None else self._world.imports.mark

    def load(self) -> Plan[None]:
        """Lock and load what the keys name."""
        empty = self._world.ledger
        facts = yield from load.facts_load(self.keys, empty.standard_classes, empty.standard_traits)
        self._world.ledger = facts
        self.large = self.large or len(facts.providers) + len(facts.consumers) > LARGE

    def begin(self, when: When) -> None:
        """Set the time; keep the loaded values, before the first decision."""
        self.stamp = when.stamp
        self._before = save.before_of(self.facts)

    def apply(self, made: Changes) -> None:
        """Make changes visible to the next decision, to be saved with the batch."""
        self._world.ledger.apply(made)
        self.changes.update(made)
        self.stamp = Instant(self.stamp + made.instants)

    def part(self) -> save.LedgerPart:
        """Return what is to be saved."""
        return save.LedgerPart(self._before, self.changes)

    @property
    def leftovers(self) -> list[dict[object, object]]:
        """The large dicts to be freed slowly."""
        return [self._before.consumers, self.facts.consumers]  # type: ignore[list-item] # any dict
