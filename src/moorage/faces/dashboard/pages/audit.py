"""The audit log: actions and their authors."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from moorage.core.ids import meant_by
from moorage.core.limits import FIND_LIMIT_MAX
from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.fields import time_asked
from moorage.faces.dashboard.routing import ROOT, Answer, Data, Page, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.audit import AuditEntry, AuditPage
from moorage.wire.finding import Found
from moorage.wire.operations import admin, finding

SHOWN = 100
EXPORTED = 1_000
FILTERS = ("target", "who", "action")
TIMES = ("since", "until")


async def _page(request: PageRequest, limit: int) -> AuditPage:
    """Return a page of the actions that the address asks for."""
    texts = {name: request.query.get(name) or None for name in ("cursor", *FILTERS)}
    times = {name: time_asked(request, name) for name in TIMES}
    return await request.get(admin.LIST_AUDIT, limit=limit, **texts, **times)


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of actions, newest first."""
    filtered = any(request.query.get(name) for name in (*FILTERS, *TIMES))
    page = await _page(request, SHOWN)
    target = request.query.get("target", "")
    meant = () if page.entries or page.next else await _meant(request, target)
    return {"page": page, "filtered": filtered, "meant": meant}


async def _meant(request: PageRequest, target: str) -> Sequence[Found]:
    """Return what a target names that is recorded by its id, such as a machine."""
    if not target:
        return ()
    try:
        answer = await request.get(finding.FIND, text=target, limit=FIND_LIMIT_MAX)
    except RefusedError as refused:
        if refused.status != HTTPStatus.BAD_REQUEST:  # too short, too long
            raise
        return ()
    found = {one.id: one for one in answer.found}
    meant = meant_by(target, ((one.id, one.name) for one in answer.found))
    return [found[one] for one in meant if one != target]


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 actions of the filtered list, from the cursor on."""
    page = await _page(request, EXPORTED)
    return await exported(request, "audit", AuditEntry, page.entries, page.next)


ENTRIES = (
    Page(
        path=f"{ROOT}/audit",
        title="Audit",
        template="audit.html",
        show=show,
        needs=admin.LIST_AUDIT,
    ),
    Data(path=f"{ROOT}/audit.csv", read=export),
    Data(path=f"{ROOT}/audit.json", read=export),
)
