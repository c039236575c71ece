"""The rooms of a batch, in the order of their locks: what a new room must provide, and its plug.

Rooms act on one another only through what is handed to them here: leases claim in the ledger
through a `LedgerShare`, and agents follow what clients write to their classes.
"""

from typing import Protocol

from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.import_mark import ImportKeys
from moorage.core.service_time import When
from moorage.service.batch.admission_room import AdmissionRoom
from moorage.service.batch.extra_loads import ExtraLoads
from moorage.service.batch.fleet_room import FleetRoom, check_unmanaged
from moorage.service.batch.import_room import ImportRoom
from moorage.service.batch.ledger_room import LedgerRoom
from moorage.service.batch.misfits import Misfits
from moorage.service.batch.reshape_room import ReshapeRoom
from moorage.service.batch.world import NO_ADMISSION, NO_FLEET, Changes, Keys, World
from moorage.store.api import Plan
from moorage.store.batch import RoomChanges


class Room(Protocol):
    """One room's part of one batch, from load to save."""

    def load(self) -> Plan[None]:
        """Lock and load what the requests of the batch name.

        A room that decides by service time also locks it, and sets `World.timeline`.
        """
        ...

    def begin(self, when: When) -> None:
        """Set the time of the batch, before the first decision."""
        ...

    def part(self) -> RoomChanges:
        """Return what is to be saved."""
        ...


class Rooms:
    """The rooms that a batch touches; `all` has them in the order of their locks.

    The order is the ledger's rows, admission's one lock, service time, groups, agents, reshapes,
    the revision.
    """

    def __init__(
        self, empty: Facts, keys: Keys, extra: ExtraLoads, misfits: Misfits, *, importing: bool
    ) -> None:
        """Create them; `importing`: an import may be under way, so the mark must be read."""
        self.world = World(empty, NO_ADMISSION, NO_FLEET)
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
        self.fleet: FleetRoom | None = None
        if keys.fleet is not None:
            self.fleet = FleetRoom(self.world, keys.fleet, self.ledger)
            self.all.append(self.fleet)
        self.reshapes: ReshapeRoom | None = None
        if keys.reshapes:
            self.reshapes = ReshapeRoom(self.world, keys.reshapes, keys.tenants)
            self.all.append(self.reshapes)
        self.imports: ImportRoom | None = None
        if importing or keys.imports is not None:
            self.imports = ImportRoom(self.world, keys.imports or ImportKeys())
            self.all.append(self.imports)

    def load(self) -> Plan[None]:
        """Lock and load what the requests of the batch name."""
        for room in self.all:
            yield from room.load()

    def begin(self, when: When) -> None:
        """Set the time of the batch, before the first decision."""
        for room in self.all:
            room.begin(when)

    @property
    def made(self) -> Changes:
        """The changes of the batch so far, by room; None: it does not touch the room."""
        admission = None if self.admission is None else self.admission.changes
        fleet = None if self.fleet is None else self.fleet.changes
        return Changes(self.ledger.changes, admission, fleet)

    def decided(self, changes: Changes) -> None:
        """Apply a decision, so that later ones see it. Raises Restart."""
        if self.imports is not None:
            self.imports.decided(changes)
        if changes.ledger is not None:
            self.ledger.apply(changes.ledger)
        if self.reshapes is not None:
            self.reshapes.decided(changes)
        if self.admission is not None:
            self.admission.decided(changes)
        if self.fleet is not None:
            self.fleet.decided(changes)
        elif changes.ledger is not None and changes.ledger.overwritten:
            check_unmanaged(self.ledger.facts, changes.ledger.overwritten)
