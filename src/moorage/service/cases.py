"""The use cases of admission: what the transactor is given, beside those of the ledger.

A case is decided in turn with the others of its batch; then whoever may start is granted, once for
the whole batch (`core/admission/admit.py`); then each case says what its caller is answered.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct

from moorage.core.admission.at_once import AtOnce
from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.model import Moment
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.store.audit import AuditRow

A = TypeVar("A")


class When(Struct, frozen=True):
    """The time of a batch: in admission's own reckonings, and by the wall clock."""

    moment: Moment
    wall: Instant


class AdmissionCase(Generic[A]):
    """A request that changes pools, leases or slots. The answer is drawn when all is decided."""

    __slots__ = ()

    alone: ClassVar[bool] = False
    """Must no other request be in the same batch?"""

    def keys(self) -> Keys:
        """Name what must be loaded before it can be decided."""
        raise NotImplementedError

    def ledger_keys(self) -> LedgerKeys:
        """Name what must be loaded of the ledger, too."""
        return LedgerKeys()

    def decide(self, facts: Facts, when: When) -> Changes:
        """Return the changes, or raise `Error`. Pure; may be called again after a conflict."""
        raise NotImplementedError

    def polled(self) -> frozenset[LeaseId]:
        """Return the pull tickets that are asked for by this request, once it is decided."""
        return frozenset()

    def at_once(self) -> tuple[AtOnce, ...]:
        """Return what this request takes of what nobody waits for, once it is decided."""
        return ()

    def conclude(self, facts: Facts, when: When) -> A:
        """Return the caller's answer, drawn from the facts after all grants of the batch.

        May raise `Error`; what was decided stands all the same.
        """
        raise NotImplementedError

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return the audit rows to be written with what was decided."""
        return []


@dataclass(slots=True)
class AuditedCase(AdmissionCase[A]):
    """A case whose decision may leave audit rows; each decision sets them anew."""

    rows: list[AuditRow] = field(default_factory=list, init=False)

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return what the decision has left."""
        return self.rows
