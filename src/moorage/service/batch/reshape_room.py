"""The part of a batch that keeps what a reshape has done; such a request is alone in its batch."""

from moorage.core.ids import ConsumerId
from moorage.core.ledger.reshape_records import ReshapeMade
from moorage.core.service_time import When
from moorage.service.batch.world import Changes, World
from moorage.store.admission.tenants import tenants_load
from moorage.store.api import Plan
from moorage.store.ledger.reshapes import ReshapePart, records_load


class ReshapeRoom:
    """The records of reshapes in one batch."""

    def __init__(self, world: World, ids: set[str], tenants: set[ConsumerId]) -> None:
        self._world = world
        self._ids = ids
        self._tenants = tenants
        self._made: ReshapeMade | None = None

    def load(self) -> Plan[None]:
        """Read the records, and whose the consumers are. Neither is locked.

        `ReshapePart` guards what it writes of records. No lease ends while its consumer is locked,
        or, if it is created again, while the ledger is.
        """
        self._world.reshapes = yield from records_load(self._ids)
        self._world.leases = yield from tenants_load(self._tenants)

    def begin(self, when: When) -> None:
        """Do nothing: a record has the time of its decision."""

    def decided(self, changes: Changes) -> None:
        """Take the reshape of a decision."""
        if changes.reshape is not None:
            self._made = changes.reshape

    def part(self) -> ReshapePart:
        """Return what is to be saved."""
        return ReshapePart(self._made)
