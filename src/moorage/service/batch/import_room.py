"""The import's part of a batch: whether one is under way, and who may still use the ledger."""

from moorage.core.errors import Error
from moorage.core.ledger.import_mark import ImportFacts, ImportKeys, refusal
from moorage.core.ledger.model import Import
from moorage.core.service_time import When
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.store import import_mark
from moorage.store.api import Plan


def check_imported(world: World) -> None:
    """Raise IMPORTING while an import is under way: what is asked for needs the whole ledger."""
    if world.imports is not None and world.imports.mark is not None:
        raise refusal()


class ImportRoom:
    """The mark of an import in one batch: of a request of the import, or while there may be one."""

    def __init__(self, world: World, keys: ImportKeys) -> None:
        self._world = world
        self._keys = keys
        self._before: Import | None = None

    @property
    def mark(self) -> Import | None:
        """The import that is under way, after the decisions so far."""
        return None if self._world.imports is None else self._world.imports.mark

    def load(self) -> Plan[None]:
        """Read the mark; with the number of rows, lock the clock."""
        self._before, counts = yield from import_mark.marked_load(alone=self._keys.alone)
        self._world.imports = ImportFacts(self._before, counts)

    def begin(self, when: When) -> None:
        """Do nothing: the mark has no time but its own."""

    def refusal(self, work: UseCase[object], keys: Keys) -> Error | None:
        """Return why a request is refused before it is decided: it needs the ledger."""
        if self.mark is None or work.imports or work.is_followed or not len(keys.ledger):
            return None
        return refusal()

    def check(self, work: UseCase[object], changes: Changes) -> None:
        """Refuse a decision that changes the ledger. Raises IMPORTING."""
        if self.mark is not None and changes.ledger and not work.imports:
            raise refusal()

    def decided(self, changes: Changes) -> None:
        """Apply a decision."""
        if changes.imports is not None:
            self._world.imports = ImportFacts(changes.imports.after)

    def part(self) -> import_mark.MarkPart:
        """Return what is to be saved."""
        return import_mark.MarkPart(self._before, self.mark)
