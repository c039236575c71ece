"""The keys that a batch loads, the facts of its decisions, and their changes: by room.

Each room has its own keys, facts and changes (`core/<room>/facts.py`). A room that no request of a
batch names is neither locked nor read; its facts are empty then.
"""

from dataclasses import dataclass, field

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Facts as AdmissionFacts
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Facts as FleetFacts
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.ids import ConsumerId
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.import_mark import ImportChange, ImportFacts, ImportKeys
from moorage.core.ledger.reshape_records import ReshapeMade, ReshapeRecord
from moorage.core.ledger.reshaping.tenants import Leases
from moorage.core.service_time import Timeline


@dataclass(slots=True)
class Keys:
    """The keys to load."""

    ledger: LedgerKeys = field(default_factory=LedgerKeys)
    admission: AdmissionKeys | None = None
    """None: nothing, and admission is not locked."""
    fleet: FleetKeys | None = None
    """None: nothing, and no agent is locked."""
    imports: ImportKeys | None = None
    """None: it is not part of an import."""
    reshapes: set[str] = field(default_factory=set)
    """Ids of reshapes whose records are needed."""
    tenants: set[ConsumerId] = field(default_factory=set)
    """Consumers whose granted leases a reshape must know."""

    def update(self, other: "Keys") -> None:
        """Add the keys of another request of the same batch."""
        self.ledger.update(other.ledger)
        if other.admission is not None:
            if self.admission is None:
                self.admission = AdmissionKeys()
            self.admission.update(other.admission)
        if other.fleet is not None:
            if self.fleet is None:
                self.fleet = FleetKeys()
            self.fleet.update(other.fleet)
        if other.imports is not None:
            self.imports = other.imports
        self.reshapes |= other.reshapes
        self.tenants |= other.tenants


NO_ADMISSION = AdmissionFacts()
NO_FLEET = FleetFacts()
"""The facts of rooms that a batch does not touch. They are never changed, so all batches share
them."""


@dataclass(slots=True)
class World:
    """The loaded rows, as changed by the decisions of the batch so far."""

    ledger: LedgerFacts
    admission: AdmissionFacts = field(default_factory=AdmissionFacts)
    fleet: FleetFacts = field(default_factory=FleetFacts)
    imports: ImportFacts | None = None
    """None: whether the ledger is imported was not read."""
    reshapes: dict[str, ReshapeRecord] = field(default_factory=dict)
    """The records of reshapes by id."""
    leases: Leases = field(default_factory=dict)
    """The granted leases of `Keys.tenants`."""
    timeline: Timeline | None = None
    """Of service time. None: no room of the batch decides by it, so it is not locked."""


@dataclass(slots=True)
class Changes:
    """The changes of one decision; None: none in this room."""

    ledger: LedgerChanges | None = None
    admission: AdmissionChanges | None = None
    fleet: FleetChanges | None = None
    imports: ImportChange | None = None
    reshape: ReshapeMade | None = None
