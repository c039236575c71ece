"""Named slots: list, make, label, drain, resume, remove.

Names of pools have slashes, but no colons: so `:slots` is never a part of one. These routes stand
before those of pools, whose `{name+}` would match them too.
"""

from typing import Any

from moorage.core.admission.owners import project_of
from moorage.core.errors import Code, Error
from moorage.faces.v1 import authorization
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.admission import slots
from moorage.service.admission.slots import OwedView, SlotView
from moorage.service.values import time_of, time_or_none
from moorage.wire import slots as wire
from moorage.wire.operations import pools as operations
from moorage.wire.pages import PageAsked


async def list_slots(request: Request[None, PageAsked]) -> wire.SlotPage:
    """Return a page of slots, by name; callers of a project see whole leases of it only."""
    asked, name, project = request.parameters, request.variables["name"], request.project
    authorization.check_scope(request.caller.scope, [name])
    found, following = await request.service.admission.slots.page(name, asked.cursor, asked.limit)
    return wire.SlotPage(
        slots=[slot_shown(view, whole=_is_own(view, project)) for view in found], next=following
    )


async def add_slots(request: Request[wire.SlotsWanted, None]) -> None:
    """Make free slots."""
    name, wanted = request.variables["name"], request.body
    case = slots.SlotsAdd(name, wanted.names, wanted.labels, request.actor)
    await request.service.transactor.submit(case)


async def label_slot(request: Request[wire.SlotLabelsWanted, None]) -> wire.Slot:
    """Replace the labels of a slot."""
    case = slots.SlotLabel(*_named(request), request.actor, request.body.labels)
    await request.service.transactor.submit(case)
    return await _one(request)


async def drain_slot(request: Request[wire.DrainWanted, None]) -> wire.Drained:
    """Keep a slot from further grants."""
    wanted, service = request.body, request.service
    case = slots.SlotDrain(*_named(request), request.actor, wanted.keep, wanted.reason)
    await service.transactor.submit(case)
    view = await service.admission.slots.one(*_named(request))
    return wire.Drained(slot=None if view is None else slot_shown(view))


async def resume_slot(request: Request[None, None]) -> wire.Slot:
    """Let a drained slot be granted again."""
    await request.service.transactor.submit(slots.SlotResume(*_named(request), request.actor))
    return await _one(request)


async def remove_slot(request: Request[None, None]) -> None:
    """Remove a free slot."""
    await request.service.transactor.submit(slots.SlotRemove(*_named(request), request.actor))


def _named(request: Request[Any, None]) -> tuple[str, str]:
    return request.variables["name"], request.variables["slot"]


async def _one(request: Request[Any, None]) -> wire.Slot:
    pool, name = _named(request)
    view = await request.service.admission.slots.one(pool, name)
    if view is None:  # it went in the meantime
        raise Error(Code.SLOT_NOT_FOUND, f"There is no slot '{name}' in pool '{pool}'.")
    return slot_shown(view)


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


def slot_shown(view: SlotView, *, whole: bool = True) -> wire.Slot:
    """Convert a slot to its wire form; unless `whole`, of its lease only the owner is shown."""
    slot, lease = view.slot, view.lease if whole else None
    drain = slot.drain
    return wire.Slot(
        name=slot.name,
        state=view.state,
        raw_state=slot.state,
        labels=slot.labels,
        owner=slot.owner or None,
        lease=None if lease is None else lease.id,
        key=None if lease is None else lease.key,
        lease_labels={} if lease is None else lease.labels,
        since=time_of(view.since),
        drain=None
        if drain is None
        else wire.SlotDrain(goes=drain.goes, reason=drain.reason, since=time_of(drain.at)),
        late_releases=[late_shown(one) for one in view.owed] if whole else [],
    )


def late_shown(view: OwedView) -> wire.LateRelease:
    """Convert a release that counts as that of an earlier holder to its wire form."""
    return wire.LateRelease(
        pool=view.pool, slot=view.slot, leases=[*view.leases], until=time_or_none(view.until)
    )
