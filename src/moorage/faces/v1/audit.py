"""Who did what to Moorage itself."""

from msgspec import json

from moorage.faces.v1.encoding import time_of
from moorage.faces.v1.routing import Request, Route
from moorage.service.access import Role
from moorage.service.audit import AuditRow
from moorage.wire.audit import AuditEntry, AuditPage
from moorage.wire.pages import PageAsked


async def page(request: Request[None, PageAsked]) -> AuditPage:
    """Return audit entries, newest first."""
    asked = request.parameters
    rows, following = await request.service.audit.page(asked.cursor, asked.limit)
    return AuditPage(entries=[shown(row) for row in rows], next=following)


ROUTES = (
    Route(
        method="GET",
        path="/v1/audit",
        role=Role.ADMIN,
        summary="List who did what to Moorage itself, newest first.",
        handler=page,
        parameters=PageAsked,
        answer=AuditPage,
    ),
)


def shown(row: AuditRow) -> AuditEntry:
    """Return a row as it is shown."""
    return AuditEntry(
        at=time_of(row.at),
        id=row.id,
        who=row.who,
        token_id=row.token_id,
        role=row.role,
        action=row.action,
        target=row.target,
        before=None if row.before is None else json.decode(row.before),
        after=None if row.after is None else json.decode(row.after),
    )
