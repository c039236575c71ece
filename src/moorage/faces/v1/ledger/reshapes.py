"""Reshape plans: preview, commit, list, show and undo.

Plans, and what they do, may be long: they are decoded and encoded in threads.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from msgspec import Raw

from moorage.core.errors import Code
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.faces.json_decoding import decoded
from moorage.faces.v1.decoding import body_decode
from moorage.faces.v1.ledger import reshape_texts as texts
from moorage.faces.v1.problems import ProblemError, problem_of
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.ledger.reshapes import (
    Committed,
    ReshapeRefusal,
    Wish,
    request_of,
    reshape_id_new,
    task_of,
)
from moorage.service.values import uuid_of
from moorage.wire.operations import reshapes as operations
from moorage.wire.reshapes import (
    ReshapeAsked,
    ReshapeEffect,
    ReshapePage,
    ReshapesAsked,
    ReshapeWanted,
    UndoWanted,
)

T = TypeVar("T")


async def plan(request: Request[bytes, None]) -> Raw:
    """Return what a plan would do; nothing is written or locked."""

    def read() -> ReshapePlan:
        return texts.plan_of(body_decode(request.body, ReshapeAsked).plan)

    wanted = await decoded(request.body, read)
    preview = await request.service.reshapes.preview(task_of(wanted))
    return await asyncio.to_thread(texts.preview_text, preview)


async def commit(request: Request[bytes, None]) -> Raw:
    """Carry out a plan as a whole."""

    def read() -> tuple[ReshapePlan, Wish, Sequence[ReshapeEffect] | None]:
        wanted = body_decode(request.body, ReshapeWanted)
        plan = texts.plan_of(wanted.plan)
        return plan, _wish(wanted, request_of(plan)), wanted.effects

    plan, wish, seen = await decoded(request.body, read)
    done = await _done(request.service.reshapes.carry_out(plan, wish, request.actor), seen)
    return await asyncio.to_thread(texts.committed_text, done)


async def page(request: Request[None, ReshapesAsked]) -> ReshapePage:
    """Return reshapes, newest first."""
    asked, reshapes = request.parameters, request.service.reshapes
    if asked.tree is None:
        records, following = await reshapes.page(asked.cursor, asked.limit)
    else:
        tree = ProviderId(uuid_of(asked.tree, "A provider"))
        records, following = await reshapes.page_of_tree(asked.cursor, asked.limit, tree)
    return ReshapePage(reshapes=[*map(texts.entry_of, records)], next=following)


async def read(request: Request[None, None]) -> Raw:
    """Return one reshape with all that it has done."""
    done = await request.service.reshapes.read(_id(request.variables["id"]))
    return await asyncio.to_thread(texts.committed_text, done)


async def undo(request: Request[bytes, None]) -> Raw:
    """Undo a reshape, or return the plan of that."""
    undone = _id(request.variables["id"])

    def read() -> tuple[UndoWanted, frozenset[ConsumerId]]:
        wanted = body_decode(request.body, UndoWanted)
        return wanted, texts.left_out(wanted.leave_out)

    wanted, left_out = await decoded(request.body, read)
    reshapes = request.service.reshapes
    if wanted.dry_run:
        preview = await reshapes.undo_preview(undone, left_out)
        return await asyncio.to_thread(texts.undone_text, None, preview)
    wish = _wish(wanted, request_of(("undo", undone, *sorted(left_out))))
    done = await _done(reshapes.undo(undone, wish, request.actor, left_out), wanted.effects)
    return await asyncio.to_thread(texts.undone_text, done, None)


HANDLERS: Handlers = {
    operations.PLAN_RESHAPE: plan,
    operations.COMMIT_RESHAPE: commit,
    operations.LIST_RESHAPES: page,
    operations.GET_RESHAPE: read,
    operations.UNDO_RESHAPE: undo,
}


def _id(text: str) -> str:
    return uuid_of(text, "A reshape")


def _wish(wanted: ReshapeWanted | UndoWanted, asked: str) -> Wish:
    chosen = reshape_id_new() if wanted.id is None else _id(wanted.id)
    return Wish(chosen, asked, wanted.digest, wanted.reason)


async def _done(work: Awaitable[Committed], seen: Sequence[ReshapeEffect] | None) -> Committed:
    """Return what was committed. Raises ProblemError with the present plan, and what differs."""
    try:
        return await work
    except ReshapeRefusal as refusal:
        raise await asyncio.to_thread(_refused, refusal, seen) from None


def _refused(refusal: ReshapeRefusal, seen: Sequence[ReshapeEffect] | None) -> ProblemError:
    problem = problem_of(refusal)
    problem.more["plan"] = texts.planned_text(refusal.planned)
    if seen is not None and refusal.code is Code.RESHAPE_CHANGED:
        problem.more["differences"] = texts.differences_text(seen, refusal.planned)
    return problem
