"""Named slots: list, make, label, drain, resume, remove.

Names of pools have slashes, but no colons: so `:slots` is never a part of one. These routes stand
before those of pools, whose `{name+}` would match them too.
"""

from typing import Any

from moorage.core.admission.owners import project_of
from moorage.core.errors import Code, Error
from moorage.faces.v1 import roles
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.admission.slotted.slots import SlotView
from moorage.service.native.slots import shown
from moorage.wire import slots as wire
from moorage.wire.operations import pools as operations
from moorage.wire.pages import PageAsked


async def list_slots(request: Request[None, PageAsked]) -> wire.SlotPage:
    """Return a page of slots, by name; callers of a project see whole leases of it only."""
    asked, name, project = request.parameters, request.variables["name"], request.project
    roles.check_scope(request.scope, [name])
    found, following = await request.service.admission.slots.page(name, asked.cursor, asked.limit)
    return wire.SlotPage(
        slots=[shown(view, whole=_is_own(view, project)) for view in found], next=following
    )


async def add_slots(request: Request[wire.SlotsWanted, None]) -> None:
    """Make free slots."""
    name, wanted = request.variables["name"], request.body
    await request.service.admission.slots.add(name, wanted.names, wanted.labels, request.actor)


async def label_slot(request: Request[wire.SlotLabelsWanted, None]) -> wire.Slot:
    """Replace the labels of a slot."""
    pool, name = _named(request)
    await request.service.admission.slots.label(pool, name, request.body.labels, request.actor)
    return await _one(request)


async def drain_slot(request: Request[wire.DrainWanted, None]) -> wire.Drained:
    """Keep a slot from further grants."""
    (pool, name), wanted = _named(request), request.body
    slots = request.service.admission.slots
    await slots.drain(pool, name, request.actor, keep=wanted.keep, reason=wanted.reason)
    view = await slots.one(pool, name)
    return wire.Drained(slot=None if view is None else shown(view))


async def resume_slot(request: Request[None, None]) -> wire.Slot:
    """Let a drained slot be granted again."""
    pool, name = _named(request)
    await request.service.admission.slots.resume(pool, name, request.actor)
    return await _one(request)


async def remove_slot(request: Request[None, None]) -> None:
    """Remove a free slot."""
    pool, name = _named(request)
    await request.service.admission.slots.remove(pool, name, request.actor)


def _named(request: Request[Any, None]) -> tuple[str, str]:
    return request.variables["name"], request.variables["slot"]


async def _one(request: Request[Any, None]) -> wire.Slot:
    pool, name = _named(request)
    view = await request.service.admission.slots.one(pool, name)
    if view is None:  # it went in the meantime
        raise Error(Code.SLOT_NOT_FOUND, f"There is no slot '{name}' in pool '{pool}'.")
    return shown(view)


def _is_own(view: SlotView, project: str | None) -> bool:
    return project is None or project_of(view.slot.owner) == project


HANDLERS: Handlers = {
    operations.LIST_SLOTS: list_slots,
    operations.ADD_SLOTS: add_slots,
    operations.DRAIN_SLOT: drain_slot,
    operations.RESUME_SLOT: resume_slot,
    operations.LABEL_SLOT: label_slot,
    operations.REMOVE_SLOT: remove_slot,
}
