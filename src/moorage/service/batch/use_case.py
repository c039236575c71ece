"""Use cases: what callers submit to the transactor.

The use cases of a batch are decided one after another. Then each room reacts to all decisions once:
admission grants leases (`core/admission/admit.py`). Then each use case returns its answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.steps import Steps
from moorage.core.service_time import When
from moorage.service.batch.world import Changes, Keys, World
from moorage.store.access.audit import AuditRow
from moorage.store.api import Plan

A = TypeVar("A")


class UseCase(Generic[A]):
    """A request that changes something. `A` is the type of its answer."""

    __slots__ = ()

    alone: ClassVar[bool] = False
    """Whether no other request may be in the same batch."""

    patient: ClassVar[bool] = False
    """Whether it gives way to other requests: thousands of agents may ask at once."""

    imports: ClassVar[bool] = False
    """Whether it is a request of an import, which alone may change the ledger meanwhile."""

    is_followed: ClassVar[bool] = False
    """Whether the ledger only follows what it decides: during an import it is refused if the ledger
    would change, not for reading it."""

    @property
    def large(self) -> bool:
        """Whether computing its keys is work for a thread."""
        return False

    def keys(self) -> Keys:
        """Return what must be loaded before it can be decided."""
        raise NotImplementedError

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes, or raise `Error`. Pure; may be called again after a restart.

        May also raise `Restart`, if its search must be repeated.
        """
        raise NotImplementedError

    def review(self, made: Changes, world: World, when: When) -> bool:
        """Return whether to save what the whole batch has made; only for those that are `alone`.

        Called after the grants. May raise `Error`; then nothing is saved either.
        """
        return True

    def conclude(self, world: World, when: When) -> A:
        """Return the answer, after all decisions and grants of the batch.

        May raise `Error`; what was decided is saved all the same.
        """
        raise NotImplementedError

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return the audit rows to write with the changes that were decided."""
        return []


class SearchingUseCase(UseCase[A]):
    """A use case that searches the catalog when its batch begins.

    Its batch decides it before all others: only others of its kind can take what it has found.
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


class RunPlan(UseCase[A]):
    """A rare plan that runs in a transaction of its own, in turn with the batches.

    `plan` returns a new plan for each try. Nobody is notified of what it changes.
    """

    __slots__ = ("plan",)

    alone: ClassVar[bool] = True

    def __init__(self, plan: Callable[[], Plan[A]]) -> None:
        self.plan = plan

    def keys(self) -> Keys:
        """Return no keys: the plan loads what it needs."""
        return Keys()


@dataclass(slots=True)
class AuditedUseCase(UseCase[A]):
    """A use case whose decision may leave audit rows; each decision replaces them."""

    rows: list[AuditRow] = field(default_factory=list, init=False)

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return what the decision has left."""
        return self.rows


@dataclass(slots=True)
class LedgerUseCase(UseCase[A]):
    """A change of the ledger alone: its answer is known when it is decided."""

    answer: A = field(init=False, repr=False, compare=False)

    def decided(self, made: LedgerChanges, answer: A) -> Changes:
        """Keep the answer of a decision; return its changes."""
        self.answer = answer
        return Changes(ledger=made)

    def conclude(self, world: World, when: When) -> A:
        """Return the answer of the decision."""
        return self.answer
