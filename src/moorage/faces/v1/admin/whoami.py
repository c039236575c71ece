"""Who the caller is."""

from moorage import __version__
from moorage.core.errors import Error
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.values import time_or_none
from moorage.wire.admin import WhoAmI
from moorage.wire.operations import admin as operations


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


HANDLERS: Handlers = {
    operations.WHOAMI: whoami,
}


def _owner(request: Request[None, None]) -> str | None:
    """Return the owner of the leases that the caller asks for; None: it cannot ask for any."""
    if request.role is None and not request.governs:
        return None
    try:
        return request.owner
    except Error:  # the name is reserved
        return None
