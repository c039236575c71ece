"""The part of a batch that keeps what a reshape has done; such a request is alone in its batch."""

from moorage.core.ledger.reshape_records import ReshapeMade
from moorage.core.service_time import When
from moorage.service.batch.world import Changes, World
from moorage.store.api import Plan
from moorage.store.ledger.reshapes import ReshapePart, records_load


class ReshapeRoom:
    """The records of reshapes in one batch."""

    def __init__(self, world: World, ids: set[str]) -> None:
        self._world = world
        self._ids = ids
        self._made: ReshapeMade | None = None

    def load(self) -> Plan[None]:
        """Read the records. They are not locked: `ReshapePart` guards what it writes."""
        self._world.reshapes = yield from records_load(self._ids)

    def begin(self, when: When) -> None:
        """Do nothing: a record has the time of its decision."""

    def decided(self, changes: Changes) -> None:
        """Take the reshape of a decision."""
        if changes.reshape is not None:
            self._made = changes.reshape

    def part(self) -> ReshapePart:
        """Return what is to be saved."""
        return ReshapePart(self._made)
