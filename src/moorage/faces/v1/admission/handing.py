"""Leases that change hands, and leases that are kept for inspection."""

from moorage.core.errors import Code, Error
from moorage.core.limits import LABELS_MAX
from moorage.faces.v1.admission.leases import (
    STATUSES,
    changed,
    lease_id,
    shown_to,
    standing_of,
)
from moorage.faces.v1.routing import Handlers, Request, StatusAnswer
from moorage.service.admission.handing_cases import (
    LeaseAccept,
    LeaseDecline,
    LeaseKeep,
    LeaseOffer,
    LeaseOfferWithdraw,
)
from moorage.service.values import end_of, microseconds
from moorage.wire import admission as wire
from moorage.wire.operations import leases as operations
from moorage.wire.pools import lease_changes


async def offer(request: Request[lease_changes.OfferWanted, None]) -> wire.Lease:
    """Offer a lease to another owner."""
    wanted, (proof, _) = request.body, standing_of(request, request.body.token)
    lasts = microseconds("lasts", wanted.lasts)
    case = LeaseOffer(lease_id(request), request.actor, proof, wanted.to, lasts)
    return await changed(request, case)


async def withdraw(request: Request[None, lease_changes.HolderProof]) -> wire.Lease:
    """Take an offer back."""
    proof, _ = standing_of(request, request.parameters.token)
    case = LeaseOfferWithdraw(lease_id(request), request.actor, proof)
    return await changed(request, case)


async def accept(request: Request[lease_changes.AcceptWanted, None]) -> StatusAnswer[wire.Lease]:
    """Take over a lease that is offered to the caller."""
    wanted = request.body
    if len(wanted.labels) > LABELS_MAX:
        raise Error(Code.LIMIT_EXCEEDED, f"At most {LABELS_MAX} labels.")
    lease = lease_id(request)
    case = LeaseAccept(lease, request.actor, request.owner, wanted.key, wanted.labels)
    view = await request.service.admission.change(case)
    return StatusAnswer(STATUSES[view.lease.state], shown_to(request, view))


async def decline(request: Request[None, None]) -> wire.Lease:
    """Decline a lease that is offered to the caller."""
    return await changed(request, LeaseDecline(lease_id(request), request.actor, request.owner))


async def keep(request: Request[lease_changes.KeepWanted, None]) -> wire.Lease:
    """Keep a lease for inspection."""
    wanted, (proof, by) = request.body, standing_of(request, request.body.token)
    until, lasts = end_of("A lease that is kept", wanted.until, wanted.lasts)
    lease = lease_id(request)
    case = LeaseKeep(lease, proof, until, lasts, wanted.reason, wanted.at_most, by=by)
    return await changed(request, case)


HANDLERS: Handlers = {
    operations.OFFER_LEASE: offer,
    operations.WITHDRAW_LEASE_OFFER: withdraw,
    operations.ACCEPT_LEASE: accept,
    operations.DECLINE_LEASE: decline,
    operations.KEEP_LEASE: keep,
}
