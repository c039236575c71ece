"""Reshapes: a list, one as two trees, what undoing it would do, and the button that does it."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any
from uuid import uuid4

from moorage.core.errors import Code
from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.forms import done, noticed
from moorage.faces.dashboard.pages.fleet_data import NEEDS
from moorage.faces.dashboard.pages.reshape_view import View, returning_of, view_of
from moorage.faces.dashboard.routing import ROOT, Action, Answer, Data, Entry, Page, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.operations import reshapes
from moorage.wire.reshapes import (
    Reshape,
    ReshapeDelta,
    ReshapeEntry,
    ReshapePage,
    ReshapePlaceChange,
    ReshapeUndone,
)

SHOWN = 100
EXPORTED = 1_000

RESHAPES = f"{ROOT}/reshapes"

LEAVE_OUT = "leave_out"
"""The field with consumers that an undo does not create again."""


async def _page(request: PageRequest, limit: int) -> ReshapePage:
    cursor = request.query.get("cursor") or None
    return await request.get(reshapes.LIST_RESHAPES, cursor=cursor, limit=limit)


async def show_all(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of reshapes, newest first."""
    return {"page": await _page(request, SHOWN)}


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 reshapes, from the cursor on."""
    page = await _page(request, EXPORTED)
    return await exported(request, "reshapes", ReshapeEntry, page.reshapes, page.next)


async def _read(request: PageRequest) -> Reshape:
    return await request.get(reshapes.GET_RESHAPE, request.variables["id"])


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return one reshape."""

    async def shown() -> tuple[ReshapeEntry, View]:
        whole = await _read(request)
        return await asyncio.to_thread(_drawn, whole)

    # Only what is drawn is kept for open pages: a whole reshape may have many megabytes.
    key = (request.reader_key, reshapes.GET_RESHAPE, request.variables["id"])
    entry, view = await request.answers.of(key, shown, fresh=not request.streamed)
    return {
        "title": f"Reshape {entry.id[:8]}",
        "reshape": entry,
        "view": view,
        "machines": request.permits(NEEDS),
    }


def _drawn(whole: Reshape) -> tuple[ReshapeEntry, View]:
    entry = ReshapeEntry(**{one.name: getattr(whole, one.name) for one in fields(ReshapeEntry)})
    return entry, view_of(whole.summary, whole.effects)


async def export_consumers(request: PageRequest) -> Answer:
    """Return by how much the units of consumers have changed: all of them."""
    rows = (await _read(request)).summary.consumers
    return await exported(request, "consumers", ReshapeDelta, rows, None)


async def export_places(request: PageRequest) -> Answer:
    """Return the amounts of all places before and after."""
    rows = (await _read(request)).summary.places
    return await exported(request, "places", ReshapePlaceChange, rows, None)


async def show_undo(request: PageRequest) -> Mapping[str, Any]:
    """Return what undoing a reshape would do, or why it cannot be undone; nothing is done."""
    reshape_id = request.variables["id"]
    title = f"Undo reshape {reshape_id[:8]}"
    variables = {"title": title, "id": reshape_id, "plan": None, "view": None, "refused": ""}
    left_out = _left_out(value for name, value in request.pairs if name == LEAVE_OUT)
    try:
        shown = await _undone(request, {"dry_run": True, LEAVE_OUT: left_out})
    except RefusedError as refused:
        if refused.code != Code.RESHAPE_UNDONE:
            raise
        return {**variables, "refused": refused.message}
    plan = shown.plan
    assert plan is not None
    view = await asyncio.to_thread(view_of, plan.summary, plan.effects, plan.violations)
    # The id that the undoing gets makes a second click a repetition of the first one.
    return {
        **variables,
        "plan": plan,
        "view": view,
        "new_id": str(uuid4()),
        "returning": await asyncio.to_thread(returning_of, plan, left_out),
        "left_out": " ".join(left_out),
    }


def _left_out(values: Iterable[str]) -> list[str]:
    """Return the consumers in fields of a form, each once; a field may have several."""
    return [*dict.fromkeys(uuid for value in values for uuid in value.lower().split())]


async def undo(request: PageRequest) -> str:
    """Undo a reshape, if that still does what the page has shown."""
    reshape_id, form = request.variables["id"], request.form
    if not form.get("digest"):
        raise RefusedError(400, "invalid", "Look at what undoing it would do first.")
    left_out = _left_out([form.get(LEAVE_OUT, "")])
    wanted: dict[str, Any] = {
        "digest": form["digest"],
        "reason": form.get("reason", ""),
        LEAVE_OUT: left_out,
    }
    if form.get("id"):
        wanted["id"] = form["id"]
    try:
        undone = await _undone(request, wanted)
    except RefusedError as refused:
        if refused.code == Code.RESHAPE_UNDONE:
            return done(f"{RESHAPES}/{reshape_id}", "undone-before")
        if refused.code in (Code.RESHAPE_CHANGED, Code.RESHAPE_REFUSED):
            again = {LEAVE_OUT: " ".join(left_out)}
            return noticed(f"{RESHAPES}/{reshape_id}/undo", again, "undo-differs")
        raise
    assert undone.reshape is not None
    return done(f"{RESHAPES}/{undone.reshape.id}", "reshape-undone")


async def _undone(request: PageRequest, wanted: Mapping[str, Any]) -> ReshapeUndone:
    return await request.ask(reshapes.UNDO_RESHAPE, request.variables["id"], body=wanted)


def _exports(path: str, read: Any) -> Sequence[Data]:
    return [Data(path=f"{path}.{ending}", read=read) for ending in ("csv", "json")]


ONE = f"{RESHAPES}/{{id}}"
ENTRIES: tuple[Entry, ...] = (
    Page(
        path=RESHAPES,
        title="Reshapes",
        template="reshapes/list.html",
        show=show_all,
        needs=reshapes.LIST_RESHAPES,
    ),
    *_exports(RESHAPES, export),
    Page(
        path=ONE,
        title="Reshape",
        template="reshapes/one.html",
        show=show_one,
        needs=reshapes.GET_RESHAPE,
    ),
    *_exports(f"{ONE}/places", export_places),
    *_exports(f"{ONE}/consumers", export_consumers),
    # Planning takes processor time, so the page is made when somebody asks for it, not again.
    Page(
        path=f"{ONE}/undo",
        title="Undo a reshape",
        template="reshapes/undo.html",
        show=show_undo,
        live=False,
        needs=reshapes.UNDO_RESHAPE,
    ),
    Action(path=f"{ONE}/undo", act=undo, asks="undo"),
)
