"""The audit trail: administrative actions and who performed them."""

from moorage.faces.v1.routing import Handlers, Request
from moorage.service.access.audit import entry_shown
from moorage.wire.audit import AuditAsked, AuditPage
from moorage.wire.operations import admin as operations


async def page(request: Request[None, AuditAsked]) -> AuditPage:
    """Return audit entries, newest first."""
    asked = request.parameters
    rows, following = await request.service.audit.page(asked.cursor, asked.limit, asked.target)
    return AuditPage(entries=[entry_shown(row) for row in rows], next=following)


HANDLERS: Handlers = {
    operations.LIST_AUDIT: page,
}
