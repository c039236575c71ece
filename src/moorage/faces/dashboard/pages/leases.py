"""Leases and tickets: a filtered list, and the whole story of one."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.routing import ROOT, Action, Answer, Data, Page, PageRequest, done
from moorage.faces.native_api import RefusedError
from moorage.wire.admission import Lease
from moorage.wire.audit import AuditEntry

SHOWN = 100
EXPORTED = 1_000
FILTERS = ("pool", "owner", "label", "older")
STATES = {"granted": "granted", "waiting": "waiting", "ended": "ended", "all": "any"}
"""What an address may ask for, and what the choice is called; the first one by default.

The oldest come first, so with the ended ones a list would begin with what is long over.
"""
PRIORITY = re.compile(r"-?[0-9]{1,9}")
ACTIONS_READ = 1_000
"""The newest actions among which those on a lease are searched."""


class Event(NamedTuple):
    """Something that happened to a lease."""

    at: datetime
    text: str
    detail: str = ""


async def _page(request: PageRequest, limit: int) -> Any:
    filters = {name: request.query.get(name) or None for name in FILTERS}
    state = _state(request)
    return await request.get(
        "/v1/leases",
        cursor=request.query.get("cursor"),
        limit=limit,
        state=None if state == "all" else state,
        **filters,
    )


def _state(request: PageRequest) -> str:
    return request.query.get("state") or next(iter(STATES))


async def show_all(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of leases and tickets."""
    return {
        "page": await _page(request, SHOWN),
        "states": STATES,
        "state": _state(request),
    }


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 leases of the filtered list, from the cursor on."""
    page = await _page(request, EXPORTED)
    return exported(request, "leases", Lease, page.leases, page.next)


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return a lease or ticket, and what happened to it."""
    lease_id = request.variables["id"]
    # `until=ended`: looking at a ticket must not count as waiting for it.
    lease = await request.get(f"/v1/leases/{lease_id}", until="ended")
    actions: list[AuditEntry] = []
    if request.permits("GET", "/v1/audit"):
        audit = await request.get("/v1/audit", limit=ACTIONS_READ)
        actions = [entry for entry in audit.entries if entry.target == lease_id]
    return {
        "title": f"{'Ticket' if lease.state == 'waiting' else 'Lease'} {lease.id[:18]}",
        "lease": lease,
        "events": sorted(_story(lease, actions)),
    }


def _story(lease: Lease, actions: Iterable[AuditEntry]) -> Iterable[Event]:
    yield Event(lease.asked_at, f"Asked for by {lease.owner}")
    if lease.granted_at is not None:
        yield Event(lease.granted_at, "Granted over the limit" if lease.forced else "Granted")
    if lease.ended_at is not None:
        cause = (lease.cause or "ended").replace("_", " ")
        yield Event(lease.ended_at, f"Ended: {cause}", lease.detail)
    for entry in actions:
        yield Event(entry.at, f"{entry.action} by {entry.who}")


async def release(request: PageRequest) -> str:
    """Release a lease, or withdraw a ticket."""
    lease = request.variables["id"]
    await request.ask("DELETE", f"/v1/leases/{lease}")
    return done(f"{ROOT}/leases/{lease}", "Released.")


async def revoke(request: PageRequest) -> str:
    """Revoke a lease or ticket."""
    lease = request.variables["id"]
    reason = request.form.get("reason", "")
    await request.ask("POST", f"/v1/leases/{lease}/revoke", body={"reason": reason})
    return done(f"{ROOT}/leases/{lease}", "Revoked.")


async def first(request: PageRequest) -> str:
    """Make a ticket the first in its lines."""
    lease = request.variables["id"]
    await request.ask("POST", f"/v1/leases/{lease}/move", body={"first": True})
    return done(f"{ROOT}/leases/{lease}", "Moved to the front of the line.")


async def priority(request: PageRequest) -> str:
    """Give a ticket another priority."""
    lease, text = request.variables["id"], request.form.get("priority", "")
    if not PRIORITY.fullmatch(text):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "invalid", "A priority is a number, such as 5.")
    await request.ask("POST", f"/v1/leases/{lease}/move", body={"priority": int(text)})
    return done(f"{ROOT}/leases/{lease}", f"Its priority is {int(text)}.")


async def force(request: PageRequest) -> str:
    """Grant a ticket at once."""
    lease = request.variables["id"]
    await request.ask("POST", f"/v1/leases/{lease}/force")
    return done(f"{ROOT}/leases/{lease}", "Granted.")


ONE = f"{ROOT}/leases/{{id}}"
ENTRIES = (
    Page(
        path=f"{ROOT}/leases",
        title="Leases",
        template="leases.html",
        show=show_all,
        needs="/v1/leases",
    ),
    Data(path=f"{ROOT}/leases.csv", read=export),
    Data(path=f"{ROOT}/leases.json", read=export),
    Page(path=ONE, title="Lease", template="lease.html", show=show_one),
    Action(path=f"{ONE}/release", act=release),
    Action(path=f"{ONE}/revoke", act=revoke),
    Action(path=f"{ONE}/first", act=first),
    Action(path=f"{ONE}/priority", act=priority),
    Action(path=f"{ONE}/force", act=force),
)
