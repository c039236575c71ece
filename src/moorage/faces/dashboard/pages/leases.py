"""Leases and tickets: a filtered list, and the whole story of one."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import Provider
from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.fields import ending, seconds_in, unreadable, whole
from moorage.faces.dashboard.forms import done
from moorage.faces.dashboard.routing import ROOT, Action, Answer, Data, Page, PageRequest, Trial
from moorage.wire.admission import Lease, LeasePage
from moorage.wire.audit import AuditEntry
from moorage.wire.labels import HOLDER, HOST, NODE
from moorage.wire.operations import admin, leases
from moorage.wire.operations.ledger import LIST_PROVIDERS
from moorage.wire.operations.pools import LIST_POOLS

SHOWN = 100
EXPORTED = 1_000
POOLS_NAMED = 200
"""Pools whose names the filter offers."""

FILTERS = ("pool", "owner", "label", "group")
STATES = {"granted": "granted", "waiting": "waiting", "ended": "ended", "all": "any"}
"""What an address may ask for, and what the choice is called; the first one by default.

The oldest come first, so with the ended ones a list would begin with what is long over.
"""
ACTIONS_READ = 100
"""Actions on a lease that its story has; older ones are only in the audit log."""

RELEASED = frozenset({"released", "withdrawn", "gave_up"})
"""How leases and tickets end that were released."""


class Event(NamedTuple):
    """Something that happened to a lease."""

    at: datetime
    text: str
    detail: str = ""


async def _page(request: PageRequest, limit: int) -> Any:
    filters = {name: request.query.get(name) or None for name in FILTERS}
    state = _state(request)
    return await request.get(
        leases.LIST_LEASES,
        cursor=request.query.get("cursor"),
        limit=limit,
        state=None if state == "all" else state,
        older=seconds_in(request.query, "older"),
        **filters,
    )


def _state(request: PageRequest) -> str:
    return request.query.get("state") or next(iter(STATES))


def _as_of(request: PageRequest, page: LeasePage) -> str | None:
    """Return the revision of all leases; None: with these filters the list takes several reads."""
    return None if request.query.get("label") or request.query.get("older") else page.as_of


async def show_all(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of leases and tickets."""
    page = await _page(request, SHOWN)
    pools = await request.recent(LIST_POOLS, limit=POOLS_NAMED)
    names, asked = [one.name for one in pools.pools], request.query.get("pool")
    return {
        "page": page,
        "pools": names,
        "unknown": bool(asked) and pools.next is None and asked not in names,
        "as_of": _as_of(request, page),
        "states": STATES,
        "state": _state(request),
    }


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 leases of the filtered list, from the cursor on."""
    page = await _page(request, EXPORTED)
    as_of = _as_of(request, page)
    return await exported(request, "leases", Lease, page.leases, page.next, as_of)


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return a lease or ticket, and what happened to it."""
    lease_id = request.variables["id"]
    # `until=ended`: looking at a ticket must not count as waiting for it.
    lease = await request.get(leases.GET_LEASE, lease_id, until="ended")
    actions: list[AuditEntry] = []
    unread: datetime | None = None
    if request.permits(admin.LIST_AUDIT):
        audit = await request.get(admin.LIST_AUDIT, target=lease.id, limit=ACTIONS_READ)
        actions = audit.entries
        if audit.next is not None:
            unread = actions[-1].at
    return {
        "title": f"{'Ticket' if lease.state == 'waiting' else 'Lease'} {lease.id[:18]}",
        "lease": lease,
        "machine": await _machine(request, lease),
        "reading": await _reading(request),
        # Stable: what happened at the same time stays in the order in which it happens.
        "events": sorted(_story(lease, actions), key=attrgetter("at")),
        "unread": unread,
    }


async def _reading(request: PageRequest) -> str | None:
    """Return the reader as an owner of leases; None: as none."""
    return (await request.get(admin.WHOAMI)).owner if request.permits(admin.WHOAMI) else None


async def _machine(request: PageRequest, lease: Lease) -> Provider | None:
    """Return the machine that a lease names as its node, holder or host; None: it is unknown."""
    if not request.permits(LIST_PROVIDERS):
        return None
    catalog = await request.service.index.current()
    for label in (NODE, HOLDER, HOST):
        text = lease.labels.get(label, "")
        for name in (text, text.rpartition("/")[2]):  # metal3: NAMESPACE/NAME
            found = catalog.record(ProviderId(catalog.named(name) or name))
            if found is not None:
                return found.provider
    return None


def _story(lease: Lease, actions: Iterable[AuditEntry]) -> Iterable[Event]:
    yield Event(lease.asked_at, f"Asked for by {lease.owner}")
    if lease.granted_at is not None:
        yield Event(lease.granted_at, _granted(lease))
    if lease.kept is not None:
        yield Event(lease.kept.since, "Kept for inspection", lease.kept.reason)
    if lease.ended_at is not None:
        yield Event(lease.ended_at, f"Ended: {_cause(lease)}", lease.detail)
    for entry in actions:
        yield Event(entry.at, f"{entry.action} by {entry.who}")


def _granted(lease: Lease) -> str:
    if lease.taken_from is not None:
        return "Taken over from another owner"
    return "Granted by force" if lease.forced else "Granted"


async def release(request: PageRequest) -> str:
    """Release a lease, or withdraw a ticket."""
    lease = request.variables["id"]
    ended = await request.ask(leases.RELEASE_LEASE, lease)
    notice = "released" if ended.cause in RELEASED else "ended-before"
    return done(f"{ROOT}/leases/{lease}", notice)


def revoke(request: PageRequest) -> Mapping[str, Any]:
    """Revoke a lease or ticket."""
    reason = request.form.get("reason", "")
    return {"action": "lease.revoke", "target": request.variables["id"], "reason": reason}


def hold(request: PageRequest) -> Mapping[str, Any]:
    """Set how long a lease lasts from now on."""
    seconds = seconds_in(request.form, "hold")
    if seconds is None:
        raise unreadable("Say how long it lasts from now on, such as 2h.")
    return {"action": "lease.hold", "target": request.variables["id"], "hold": seconds}


def keep(request: PageRequest) -> Mapping[str, Any]:
    """Keep a lease for inspection."""
    end = ending(request, "until")
    if not end:
        raise unreadable("Say for how long, such as 2h, or until when.")
    reason = request.form.get("reason", "")
    return {"action": "lease.keep", "target": request.variables["id"], "reason": reason, **end}


async def offer(request: PageRequest) -> str:
    """Offer a lease to another owner."""
    lease = request.variables["id"]
    lasts = seconds_in(request.form, "lasts")
    body = {"to": request.form.get("to", "").strip()} | ({"lasts": lasts} if lasts else {})
    await request.ask(leases.OFFER_LEASE, lease, body=body)
    return done(f"{ROOT}/leases/{lease}", "offered")


async def withdraw(request: PageRequest) -> str:
    """Take the offer of a lease back."""
    lease = request.variables["id"]
    await request.ask(leases.WITHDRAW_LEASE_OFFER, lease)
    return done(f"{ROOT}/leases/{lease}", "offer-withdrawn")


async def accept(request: PageRequest) -> str:
    """Take over a lease that is offered to the reader; the page shows the new one."""
    lease = request.variables["id"]
    new = await request.ask(leases.ACCEPT_LEASE, lease, body={"key": f"accepted/{lease}"})
    return done(f"{ROOT}/leases/{new.id}", "accepted")


async def decline(request: PageRequest) -> str:
    """Decline a lease that is offered to the reader."""
    lease = request.variables["id"]
    await request.ask(leases.DECLINE_LEASE, lease)
    return done(f"{ROOT}/leases/{lease}", "declined")


async def gone(request: PageRequest) -> str:
    """Revoke a lease whose holder is gone, or expect no late release of one that has ended."""
    lease = request.variables["id"]
    await request.ask(leases.REVOKE_LEASE, lease, body={"holder_is_gone": True})
    return done(f"{ROOT}/leases/{lease}", "holder-gone")


async def revoke_owner(request: PageRequest) -> str:
    """End the tickets and leases of an owner that the filtered list shows; 10,000 at most."""
    form = request.form
    body = {name: form.get(name) or None for name in ("state", "pool")}
    body |= {name: form.get(name, "") for name in ("owner", "reason")}
    await request.ask(leases.REVOKE_OWNER_LEASE, body=body)
    return done(f"{ROOT}/leases", "owner-revoked")


def _cause(lease: Lease) -> str:
    return (lease.cause or "ended").replace("_", " ")


def first(request: PageRequest) -> Mapping[str, Any]:
    """Make a ticket the first in its lines."""
    return {"action": "lease.move", "target": request.variables["id"]}


def priority(request: PageRequest) -> Mapping[str, Any]:
    """Give a ticket another priority."""
    wanted = whole("The priority", request.form.get("priority", ""))
    return {"action": "lease.move", "target": request.variables["id"], "priority": wanted}


def force(request: PageRequest) -> Mapping[str, Any]:
    """Grant a ticket at once."""
    return {"action": "lease.force", "target": request.variables["id"]}


ONE = f"{ROOT}/leases/{{id}}"
ENTRIES = (
    Page(
        path=f"{ROOT}/leases",
        title="Leases",
        template="leases.html",
        show=show_all,
        needs=leases.LIST_LEASES,
    ),
    Data(path=f"{ROOT}/leases.csv", read=export),
    Data(path=f"{ROOT}/leases.json", read=export),
    Page(path=ONE, title="Lease", template="lease.html", show=show_one, personal=True),
    Action(path=f"{ROOT}/owners/revoke", act=revoke_owner, asks="revoke_owner"),
    Action(path=f"{ONE}/release", act=release),
    Trial(path=f"{ONE}/revoke", title="Revoke", wanted=revoke),
    Trial(path=f"{ONE}/hold", title="Change the hold of", wanted=hold),
    Trial(path=f"{ONE}/keep", title="Keep for inspection", wanted=keep),
    Action(path=f"{ONE}/offer", act=offer),
    Action(path=f"{ONE}/withdraw", act=withdraw),
    Action(path=f"{ONE}/accept", act=accept),
    Action(path=f"{ONE}/decline", act=decline),
    Action(path=f"{ONE}/gone", act=gone, asks="gone"),
    Trial(path=f"{ONE}/first", title="Move to the front", wanted=first),
    Trial(path=f"{ONE}/priority", title="Change the priority of", wanted=priority),
    Trial(path=f"{ONE}/force", title="Grant over the limit", wanted=force),
)
