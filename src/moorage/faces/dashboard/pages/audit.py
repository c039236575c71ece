"""Who did what: the audit log."""

from collections.abc import Mapping
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.routing import ROOT, Answer, Data, Page, PageRequest
from moorage.wire.audit import AuditEntry

SHOWN = 100
EXPORTED = 1_000


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of actions, newest first."""
    cursor = request.query.get("cursor")
    return {"page": await request.get("/v1/audit", cursor=cursor, limit=SHOWN)}


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 actions, from the cursor on."""
    page = await request.get("/v1/audit", cursor=request.query.get("cursor"), limit=EXPORTED)
    return await exported(request, "audit", AuditEntry, page.entries, page.next)


ENTRIES = (
    Page(path=f"{ROOT}/audit", title="Audit", template="audit.html", show=show, needs="/v1/audit"),
    Data(path=f"{ROOT}/audit.csv", read=export),
    Data(path=f"{ROOT}/audit.json", read=export),
)
