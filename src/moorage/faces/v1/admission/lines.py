"""What operators do with waiting tickets."""

from moorage.core.errors import Code, Error
from moorage.faces.v1.admission.leases import lease_id, lease_shown
from moorage.faces.v1.routing import Request, Route
from moorage.service.access.roles import Role
from moorage.service.admission.lease_cases import OnBehalf, TicketForce, TicketMove
from moorage.wire import admission as wire


async def move(request: Request[wire.MoveWanted, None]) -> wire.Lease:
    """Move a ticket in its lines."""
    wanted, lease = request.body, lease_id(request)
    if wanted.first == (wanted.priority is not None):
        raise Error(Code.INVALID, "Give either a priority, or first: true.")
    case = TicketMove(lease, wanted.priority, by=OnBehalf(request.actor))
    return lease_shown(await request.service.admission.change(case), mine=True)


async def force(request: Request[None, None]) -> wire.Lease:
    """Grant a waiting ticket at once."""
    case = TicketForce(lease_id(request), by=OnBehalf(request.actor))
    return lease_shown(await request.service.admission.change(case), mine=True)


ROUTES = (
    Route(
        method="POST",
        path="/v1/leases/{id}/move",
        role=Role.OPERATOR,
        summary="Give a ticket another priority, or make it the first in all its lines.",
        handler=move,
        body=wire.MoveWanted,
        answer=wire.Lease,
    ),
    Route(
        method="POST",
        path="/v1/leases/{id}/force",
        role=Role.OPERATOR,
        summary="Grant a waiting ticket at once, over the limit if necessary.",
        handler=force,
        answer=wire.Lease,
    ),
)
