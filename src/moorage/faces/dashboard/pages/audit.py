"""Who did what: the audit log."""

from collections.abc import Mapping
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.routing import ROOT, Answer, Data, Page, PageRequest
from moorage.wire.audit import AuditEntry, AuditPage

SHOWN = 100
EXPORTED = 1_000


async def _page(request: PageRequest, limit: int) -> AuditPage:
    """Return a page of the actions that the address asks for."""
    cursor, target = request.query.get("cursor"), request.query.get("target") or None
    page: AuditPage = await request.get("/v1/audit", cursor=cursor, target=target, limit=limit)
    return page


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of actions, newest first."""
    return {"page": await _page(request, SHOWN)}


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 actions of the filtered list, from the cursor on."""
    page = await _page(request, EXPORTED)
    return await exported(request, "audit", AuditEntry, page.entries, page.next)


ENTRIES = (
    Page(path=f"{ROOT}/audit", title="Audit", template="audit.html", show=show, needs="/v1/audit"),
    Data(path=f"{ROOT}/audit.csv", read=export),
    Data(path=f"{ROOT}/audit.json", read=export),
)
