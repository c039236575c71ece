"""Leases and tickets: ask, wait, renew, release, and what operators may do to others'."""

from http import HTTPStatus
from typing import Any

from moorage.core.admission.leases import Proof
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId, is_normal
from moorage.core.limits import DETAIL_LENGTH_MAX
from moorage.faces.v1 import problems, roles
from moorage.faces.v1.bounds import check_text, check_wait, microseconds_or_none
from moorage.faces.v1.encoding import time_or_none
from moorage.faces.v1.lease_words import asked_of, shown
from moorage.faces.v1.problems import ProblemError
from moorage.faces.v1.routing import Answer, Request, Route
from moorage.service.access import Role
from moorage.service.views import LeaseView
from moorage.wire import admission as wire

STATUSES = {"granted": HTTPStatus.CREATED, "waiting": HTTPStatus.ACCEPTED, "ended": HTTPStatus.OK}
"""How asking is answered, by what became of it so far."""


async def create(
    request: Request[wire.LeaseWanted, wire.LeaseAsked],
) -> Answer[wire.Lease]:
    """Ask for units."""
    wanted = request.body
    if wanted.force:
        _need_role(request, Role.OPERATOR, "force")
    if wanted.allocations is not None:
        _need_role(request, Role.SERVICE, "allocations")
    view = await request.service.admission.ask(
        asked_of(wanted, request.owner),
        by=request.actor,
        seconds=check_wait(request.parameters.wait),
        gone=request.disconnected,
    )
    return Answer(STATUSES[view.lease.state], _told(request, view))


async def page(request: Request[None, wire.LeasesAsked]) -> wire.LeasePage:
    """Return leases and tickets."""
    asked = request.parameters
    views, following = await request.service.admission.leases(
        asked.cursor, asked.limit, asked.pool, asked.state, asked.owner
    )
    return wire.LeasePage(leases=[_told(request, view) for view in views], next=following)


async def read(request: Request[None, wire.LeaseLooked]) -> wire.Lease:
    """Return a lease; for its owner's ticket a sign of life, unless the end is waited for."""
    lease, wait = _lease_id(request), check_wait(request.parameters.wait)
    admission = request.service.admission
    view = await admission.lease(lease)
    mine = view.lease.owner == request.owner
    if wait and not (mine or _operates(request)):
        raise Error(Code.HOLDER_MISMATCH, "Only its owner may wait for a ticket or lease.")
    if request.parameters.until == "ended":
        if wait and view.lease.state != "ended":
            view = await admission.until_ended(lease, wait, request.disconnected)
    elif view.lease.state == "waiting" and (mine or wait):
        view = await admission.waited(lease, wait, request.disconnected)
    return _told(request, view)


async def renew(request: Request[wire.HolderProof, None]) -> wire.Lease:
    """Let a lease last for its TTL from now on."""
    admission = request.service.admission
    proof = _proof(request, request.body.token)
    return _told(request, await admission.renew(_lease_id(request), proof))


async def release(request: Request[None, wire.HolderProof]) -> wire.Lease:
    """Give a lease back."""
    admission = request.service.admission
    proof = _proof(request, request.parameters.token)
    return _told(request, await admission.release(_lease_id(request), proof))


async def change(request: Request[wire.HoldWanted, None]) -> wire.Lease:
    """Move the end of a hold."""
    wanted = request.body
    hold = microseconds_or_none("hold", wanted.hold)
    view = await request.service.admission.hold(
        _lease_id(request), _proof(request, wanted.token), hold
    )
    return _told(request, view)


async def retry(request: Request[wire.RetryWanted, None]) -> Answer[wire.Lease]:
    """Release and ask anew; what is to be forced anew needs an operator again."""
    wanted, admission, lease = request.body, request.service.admission, _lease_id(request)
    if (await admission.lease(lease)).lease.forced:
        _need_role(request, Role.OPERATOR, "the retry of what was forced")
    view = await admission.retry(lease, _proof(request, wanted.token), wanted.key, by=request.actor)
    return Answer(STATUSES[view.lease.state], _told(request, view))


async def revoke(request: Request[wire.RevokeWanted, None]) -> wire.Lease:
    """Take a lease away."""
    reason = check_text("reason", request.body.reason, DETAIL_LENGTH_MAX)
    admission = request.service.admission
    return _told(request, await admission.revoke(_lease_id(request), reason, by=request.actor))


async def outcome(request: Request[wire.OutcomeWanted, None]) -> wire.Lease:
    """Remember what became of a start."""
    told = request.body
    view = await request.service.admission.outcome(
        _lease_id(request),
        _proof(request, told.token),
        told.result,
        check_text("detail", told.detail, DETAIL_LENGTH_MAX),
    )
    return _told(request, view)


async def verify(request: Request[None, wire.VerifyAsked]) -> wire.Verified:
    """Tell whether a token is current."""
    asked = request.parameters
    view = await request.service.admission.verify(asked.pool, asked.token)
    if view is None:
        return wire.Verified(current=False, lease=None, expires_at=None)
    return wire.Verified(
        current=True, lease=view.lease.id, expires_at=time_or_none(view.expires_at)
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/leases",
        role=Role.USER,
        projects=True,
        summary="Ask for units of pools, all or none: a lease (201), or a ticket that waits (202).",
        handler=create,
        body=wire.LeaseWanted,
        parameters=wire.LeaseAsked,
        answer=wire.Lease,
        status=HTTPStatus.CREATED,
        also=(HTTPStatus.ACCEPTED, HTTPStatus.OK),
    ),
    Route(
        method="GET",
        path="/v1/leases",
        role=Role.READER,
        projects=True,
        summary="List leases and tickets in the order in which they were asked for.",
        handler=page,
        parameters=wire.LeasesAsked,
        answer=wire.LeasePage,
    ),
    Route(
        method="GET",
        path="/v1/leases/verify",
        role=Role.READER,
        projects=True,
        summary="Tell whether a fencing token is that of a lease that holds units of a pool now.",
        handler=verify,
        parameters=wire.VerifyAsked,
        answer=wire.Verified,
    ),
    Route(
        method="GET",
        path="/v1/leases/{id}",
        role=Role.READER,
        projects=True,
        summary="Tell of a lease or ticket; its owner may wait for the grant, or for the end.",
        handler=read,
        parameters=wire.LeaseLooked,
        answer=wire.Lease,
    ),
    Route(
        method="DELETE",
        path="/v1/leases/{id}",
        role=Role.USER,
        projects=True,
        summary="Give a lease back, or take a ticket out of its line; to repeat it is harmless.",
        handler=release,
        parameters=wire.HolderProof,
        answer=wire.Lease,
    ),
    Route(
        method="PATCH",
        path="/v1/leases/{id}",
        role=Role.USER,
        projects=True,
        summary="Let a lease end by itself so long from now, or not by itself.",
        handler=change,
        body=wire.HoldWanted,
        answer=wire.Lease,
    ),
    Route(
        method="POST",
        path="/v1/leases/{id}/renew",
        role=Role.USER,
        projects=True,
        summary="Let a lease last for its TTL from now on.",
        handler=renew,
        body=wire.HolderProof,
        answer=wire.Lease,
    ),
    Route(
        method="POST",
        path="/v1/leases/{id}/retry",
        role=Role.USER,
        projects=True,
        summary="Release a lease and ask for the same anew, in one step.",
        handler=retry,
        body=wire.RetryWanted,
        answer=wire.Lease,
        status=HTTPStatus.CREATED,
        also=(HTTPStatus.ACCEPTED, HTTPStatus.OK),
    ),
    Route(
        method="POST",
        path="/v1/leases/{id}/outcome",
        role=Role.USER,
        projects=True,
        summary="Tell what became of what was started; it is evidence for choosing a limit.",
        handler=outcome,
        body=wire.OutcomeWanted,
        answer=wire.Lease,
    ),
    Route(
        method="POST",
        path="/v1/leases/{id}/revoke",
        role=Role.OPERATOR,
        summary="Take a lease or ticket away from whoever has it.",
        handler=revoke,
        body=wire.RevokeWanted,
        answer=wire.Lease,
    ),
)


def _lease_id(request: Request[Any, Any]) -> LeaseId:
    lease = request.variables["id"].lower()
    if not is_normal(lease):
        raise Error(Code.LEASE_NOT_FOUND, f"There is no lease {lease}.")
    return LeaseId(lease)


def _operates(request: Request[Any, Any]) -> bool:
    return roles.permits(Role.OPERATOR, request.role)


def _proof(request: Request[Any, Any], token: str | None) -> Proof:
    """Return what shows that the caller may act for a lease: operators need no more than that."""
    return Proof(None if _operates(request) else request.owner, token)


def _told(request: Request[Any, Any], view: LeaseView) -> wire.Lease:
    return shown(view, _operates(request) or view.lease.owner == request.owner)


def _need_role(request: Request[Any, Any], least: Role, what: str) -> None:
    if not roles.permits(least, request.role):
        raise ProblemError(
            HTTPStatus.FORBIDDEN, problems.FORBIDDEN, f"{what} needs the role {least} or above."
        )
