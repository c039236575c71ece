"""What is in a pool: its leases and its line, as of one revision."""

from moorage.faces.v1 import roles
from moorage.faces.v1.admission.leases import shown_to
from moorage.faces.v1.admission.pools import pool_shown
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.pages import check_limit
from moorage.wire.operations import pools as operations
from moorage.wire.pool_reports import PoolContents, PoolContentsAsked


async def contents(request: Request[None, PoolContentsAsked]) -> PoolContents:
    """Return a pool with its leases and its line."""
    name, asked = request.variables["name"], request.parameters
    roles.check_scope(request.scope, [name])
    check_limit(asked.leases)
    check_limit(asked.tickets)
    view = await request.service.admission.queries.contents(name, asked.leases, asked.tickets)
    return PoolContents(
        as_of=str(view.as_of),
        pool=pool_shown(view.pool),
        leases=[shown_to(request, one) for one in view.leases],
        tickets=[shown_to(request, one) for one in view.tickets],
        granted=view.granted.number,
        granted_units=view.granted.units,
        waiting=view.waiting.number,
        waiting_units=view.waiting.units,
    )


HANDLERS: Handlers = {
    operations.GET_POOL_CONTENTS: contents,
}
