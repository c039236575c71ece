"""Use cases: what the transactor is given.

Each is decided in turn with the others of its batch. Then admission grants leases, once for the
whole batch (`core/admission/admit.py`); then each of its cases draws its answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.immediate import AtOnce
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.steps import Steps
from moorage.core.service_time import When
from moorage.store.access.audit import AuditRow

A = TypeVar("A")
B = TypeVar("B", covariant=True)


class UseCase(Protocol[B]):
    """A request that changes the ledger."""

    __slots__ = ()

    alone: ClassVar[bool] = False
    """Must no other request be in the same batch?"""

    @property
    def large(self) -> bool:
        """Is so much asked for that naming it is work for a thread?"""
        return False

    def keys(self) -> LedgerKeys:
        """Name what must be loaded before it can be decided."""
        ...

    def decide(self, facts: LedgerFacts, now: Instant) -> tuple[LedgerChanges, B]:
        """Return the changes and the caller's answer, or raise `Error`. Pure."""
        ...

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return the audit rows to be written with the changes that were decided."""
        return []


class SearchingUseCase(UseCase[B]):
    """A use case that chooses: the catalog is searched for it when its batch is taken.

    What it has found is decided first in its batch: nothing but others of its kind can change it.
    """

    __slots__ = ()

    @staticmethod
    def prepare(
        batch: Sequence["SearchingUseCase[Any]"],
        catalog: Catalog,
        given_up: Callable[[bytes], None],
    ) -> Steps[list["SearchingUseCase[Any]"]]:
        """Search for all of a batch, in pieces; return those for which there is no time left.

        Args:
            batch: all of one class.
            catalog: as of the last commit.
            given_up: called with the query of each search that ran out of steps.
        """
        raise NotImplementedError


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
        """Return the free units that this request takes at once, after it is decided."""
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
    """A case whose decision may leave audit rows; each decision replaces them."""

    rows: list[AuditRow] = field(default_factory=list, init=False)

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return what the decision has left."""
        return self.rows
