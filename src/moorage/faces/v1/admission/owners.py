"""All tickets and leases of an owner, ended with one call."""

from moorage.core.errors import Code, Error
from moorage.core.limits import DETAIL_LENGTH_MAX, IDENTIFIER_LENGTH_MAX
from moorage.core.wildcards import is_entry
from moorage.faces.v1 import roles
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.access.roles import Role, permits
from moorage.service.admission.ending import Clearing
from moorage.service.token_ends import BOTH
from moorage.service.values import check_text
from moorage.wire.admin import OwnerRevoked, OwnerRevokeWanted
from moorage.wire.operations import leases as operations

OWNER_LENGTH_MAX = 2 * IDENTIFIER_LENGTH_MAX + 1


async def revoke_owner(request: Request[OwnerRevokeWanted, None]) -> OwnerRevoked:
    """End all tickets and leases of an owner."""
    wanted, service = request.body, request.service
    if not is_entry(wanted.owner, OWNER_LENGTH_MAX):
        raise Error(Code.INVALID, f"{wanted.owner!r} is not an owner, or PROJECT/*.")
    own = not permits(Role.OPERATOR, request.role)
    if own and wanted.owner != request.owner:
        roles.check_role(request.role, Role.OPERATOR, "ending what others own")
    if wanted.pool is not None:
        await service.admission.queries.pool(wanted.pool)  # raises if there is no such pool
    states = BOTH if wanted.state is None else (wanted.state,)
    reason = check_text("reason", wanted.reason, DETAIL_LENGTH_MAX)
    what = Clearing(wanted.owner, states, reason, request.actor, own=own)
    found = await service.admission.owners.clear(what, wanted.pool)
    return OwnerRevoked(
        owner=wanted.owner, tickets=found.tickets, leases=found.leases, more=found.more
    )


HANDLERS: Handlers = {
    operations.REVOKE_OWNER_LEASE: revoke_owner,
}
