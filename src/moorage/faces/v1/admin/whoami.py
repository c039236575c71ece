"""Who the caller is."""

from moorage import __version__
from moorage.core.errors import Error
from moorage.faces.v1.routing import Request, Route
from moorage.service.access.roles import Role, ScopedRole
from moorage.service.values import time_or_none
from moorage.wire.admin import WhoAmI


async def whoami(request: Request[None, None]) -> WhoAmI:
    """Return the caller."""
    caller, scope = request.caller, request.scope
    return WhoAmI(
        name=caller.user_id,
        role=request.actor.role,
        project_id=caller.project_id,
        scope={} if scope is None else {scope.field: [*scope.names]},
        owner=_owner(request),
        token_id=caller.token_id,
        expires_at=time_or_none(caller.expires_at),
        version=__version__,
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/whoami",
        role=Role.READER,
        scopes=tuple(ScopedRole),
        projects=True,
        summary="Return the caller's name, role, project, scope and expiry; the server's version.",
        handler=whoami,
        answer=WhoAmI,
    ),
)


def _owner(request: Request[None, None]) -> str | None:
    """Return the owner of the leases that the caller asks for; None: it cannot ask for any."""
    if request.role is None and not request.governs:
        return None
    try:
        return request.owner
    except Error:  # the name is reserved
        return None
