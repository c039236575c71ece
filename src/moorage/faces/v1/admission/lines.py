"""What operators do with waiting tickets."""

from moorage.core.errors import Code, Error
from moorage.faces.v1.admission.leases import lease_id, lease_shown
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.admission.lease_cases import OnBehalf, TicketForce, TicketMove
from moorage.wire import admission as wire
from moorage.wire.operations import leases as operations


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


HANDLERS: Handlers = {
    operations.MOVE_LEASE: move,
    operations.FORCE_LEASE: force,
}
