"""The audit trail: administrative actions and who performed them."""

from moorage.faces.v1.routing import Request, Route
from moorage.service.access.audit import entry_shown
from moorage.service.access.roles import Role
from moorage.wire.audit import AuditAsked, AuditPage


async def page(request: Request[None, AuditAsked]) -> AuditPage:
    """Return audit entries, newest first."""
    asked = request.parameters
    rows, following = await request.service.audit.page(asked.cursor, asked.limit, asked.target)
    return AuditPage(entries=[entry_shown(row) for row in rows], next=following)


ROUTES = (
    Route(
        method="GET",
        path="/v1/audit",
        role=Role.ADMIN,
        summary="List the audit log, newest first.",
        handler=page,
        parameters=AuditAsked,
        answer=AuditPage,
    ),
)
