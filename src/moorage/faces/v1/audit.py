"""Who did what to Moorage itself."""

from typing import Any

from msgspec import json

from moorage.faces.v1.change_words import pool_spec_of
from moorage.faces.v1.encoding import time_of
from moorage.faces.v1.routing import Request, Route
from moorage.service.audit import AuditRow
from moorage.service.roles import Role
from moorage.wire.audit import AuditEntry, AuditPage
from moorage.wire.pages import PageAsked

OF_SPECS = ("pool.put", "pool.delete")
"""Actions whose rows tell what an operator said of a pool."""


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
        before=_told(row.action, row.before),
        after=_told(row.action, row.after),
    )


def _told(action: str, kept: str | None) -> Any:
    value = None if kept is None else json.decode(kept)
    return pool_spec_of(value) if action in OF_SPECS else value
