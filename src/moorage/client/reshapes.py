"""The typed native API of reshape plans: preview, commit, list, undo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar
from uuid import uuid4

from moorage.client.calling import Room
from moorage.client.decoding import decode
from moorage.client.transport import RefusedError, UnreachableError
from moorage.wire.operations import reshapes
from moorage.wire.operations.operation import Operation
from moorage.wire.pages import PAGE_MAX
from moorage.wire.reshapes import (
    Reshape,
    ReshapeAsked,
    ReshapeDifferences,
    ReshapeEntry,
    ReshapePage,
    ReshapePlan,
    ReshapePlanned,
    ReshapeWanted,
    UndoWanted,
)

A = TypeVar("A")

SECONDS_MAX = 300.0
"""The longest wait for an answer: plans of thousands of consumers wait for one another."""

TRIES = 3
"""How often a commit is sent whose answer is lost; its id makes that harmless."""


class PlanRefusedError(RefusedError):
    """A plan cannot be carried out, or would no longer do what its author has seen.

    Its code is `reshape_refused`: see the violations of `plan`; or `reshape_changed`: `plan` is
    what it would do now. `differences` has what differs, if the seen effects were sent.
    """

    plan: ReshapePlanned
    differences: ReshapeDifferences | None = None


class Reshapes(Room):
    """The reshapes of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    def plan(self, plan: ReshapePlan) -> ReshapePlanned:
        """Return what a plan would do, and all that speaks against it; nothing is changed."""
        return self._asked(reshapes.PLAN_RESHAPE, body=ReshapeAsked(plan=plan))

    def carry_out(self, wanted: ReshapeWanted) -> Reshape:
        """Carry out a plan as a whole. Raises PlanRefusedError.

        If the answer is lost, the same request is sent again; it is carried out once.
        """
        body = wanted if wanted.id else replace(wanted, id=str(uuid4()))
        return self._asked(reshapes.COMMIT_RESHAPE, body=body)

    def page(self, cursor: str | None = None, limit: int = PAGE_MAX) -> ReshapePage:
        """Return one page of reshapes, newest first."""
        return self._call(reshapes.LIST_RESHAPES, query={"limit": limit, "cursor": cursor})

    def all(self) -> Iterator[ReshapeEntry]:
        """Yield all reshapes, newest first."""
        for page in self._pages(reshapes.LIST_RESHAPES):
            yield from page.reshapes

    def show(self, reshape_id: str) -> Reshape:
        """Return a reshape with all that it has done."""
        return self._asked(reshapes.GET_RESHAPE, reshape_id)

    def undo_plan(self, reshape_id: str, leave_out: Iterable[str] = ()) -> ReshapePlanned:
        """Return what undoing a reshape would do, without some consumers; nothing is changed."""
        body = UndoWanted(dry_run=True, leave_out=[*leave_out])
        planned = self._asked(reshapes.UNDO_RESHAPE, reshape_id, body=body).plan
        assert planned is not None
        return planned

    def undo(self, reshape_id: str, wanted: UndoWanted | None = None) -> Reshape:
        """Undo a reshape; otherwise as `carry_out`."""
        wanted = wanted or UndoWanted()
        body = replace(wanted, dry_run=False, id=wanted.id or str(uuid4()))
        done = self._asked(reshapes.UNDO_RESHAPE, reshape_id, body=body).reshape
        assert done is not None
        return done

    def _asked(self, operation: Operation[A], *variables: str, body: Any = None) -> A:
        """Call an operation, again if its answer is lost. Raises PlanRefusedError."""
        for _ in range(TRIES - 1):
            try:
                return self._once(operation, *variables, body=body)
            except UnreachableError:
                continue
        return self._once(operation, *variables, body=body)

    def _once(self, operation: Operation[A], *variables: str, body: Any) -> A:
        try:
            return self._call(operation, *variables, body=body, seconds_max=SECONDS_MAX)
        except RefusedError as refusal:
            if "plan" not in refusal.problem:
                raise
            raise _refused(refusal) from None


def _refused(refusal: RefusedError) -> PlanRefusedError:
    found = PlanRefusedError(refusal.status, refusal.code, str(refusal), refusal.request_id)
    found.problem = refusal.problem
    found.plan = decode(ReshapePlanned, refusal.problem["plan"])
    if refusal.problem.get("differences") is not None:
        found.differences = decode(ReshapeDifferences, refusal.problem["differences"])
    return found
