"""The rooms of a batch, in the order of their locks: what a new room must provide, and its plug.

Rooms act on one another only through what is handed to them here: leases claim in the ledger
through a `LedgerShare`, and agents follow what clients write to their classes.
"""

from typing import Any, Protocol

from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.ledger.facts import Facts
from moorage.core.service_time import When
from moorage.service.batch.admission_room import AdmissionRoom
from moorage.service.batch.extra_loads import ExtraLoads
from moorage.service.batch.fleet_room import FleetRoom
from moorage.service.batch.ledger_room import LedgerRoom
from moorage.service.batch.misfits import Misfits
from moorage.service.batch.world import Changes, Keys, World
from moorage.store.api import Plan
from moorage.store.batch import RoomChanges


class Room(Protocol):
    """One room's part of one batch, from load to save."""

    @property
    def large(self) -> bool:
        """Whether its work belongs into a thread."""
        ...

    def load(self) -> Plan[None]:
        """Lock and load what the requests of the batch name.

        A room that decides by service time also locks it, and sets `World.timeline`.
        """
        ...

    def begin(self, when: When) -> None:
        """Set the time of the batch, before the first decision."""
        ...

    def decided(self, changes: Changes) -> None:
        """Apply a decision, so that later ones see it. Raises Restart."""
        ...

    def after(self) -> Plan[None]:
        """React to all decisions of the batch, of any room. Raises Restart."""
        ...

    def part(self) -> RoomChanges:
        """Return what is to be saved."""
        ...


class Rooms:
    """The rooms that a batch touches; `all` has them in the order of their locks.

    The order is the ledger's rows, admission's one lock, service time, groups, agents, the
    revision.
    """

    def __init__(self, empty: Facts, keys: Keys, extra: ExtraLoads, misfits: Misfits) -> None:
        self.world = World(empty)
        keys.ledger.update(extra.keys)
        self.ledger = LedgerRoom(self.world, keys.ledger)
        self.admission: AdmissionRoom | None = None
        self.all: list[Room] = [self.ledger]
        if keys.admission is not None:
            self.admission = AdmissionRoom(self.world, keys.admission, self.ledger, extra, misfits)
            self.all.append(self.admission)
        if extra.agents or extra.roots:
            more = FleetKeys(agents=set(extra.agents), roots=set(extra.roots))
            keys.update(Keys(fleet=more))
        self.fleet = FleetRoom(self.world, keys.fleet, self.ledger)
        self.all.append(self.fleet)

    @property
    def large(self) -> bool:
        """Whether the batch is to be decided in a thread."""
        return any(room.large for room in self.all)

    def decided(self, changes: Changes) -> None:
        """Apply a decision in all rooms. Raises Restart."""
        for room in self.all:
            room.decided(changes)

    def leftovers(self) -> list[dict[Any, Any]]:
        """Return the large dicts to be freed slowly."""
        return self.ledger.leftovers
