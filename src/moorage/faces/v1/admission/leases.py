"""Leases and tickets: of their owners, of others on their behalf, and all that an owner has."""

from dataclasses import replace
from http import HTTPStatus
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import structs

from moorage.core.admission.alternatives import pools_named
from moorage.core.admission.forecast.booked import notice_of
from moorage.core.admission.forecast.why import Standing
from moorage.core.admission.handing_over import is_offered
from moorage.core.admission.model import (
    Kept,
    Need,
    Offer,
    is_unconfirmed,
    record_age,
)
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.ids import BookingId, ConsumerId, LeaseId, ProviderId, is_normal
from moorage.core.labels import check_labels
from moorage.core.ledger.vocabulary import check_consumer_type
from moorage.core.limits import (
    CAUSE_LENGTH_MAX,
    DETAIL_LENGTH_MAX,
    IDENTIFIER_LENGTH_MAX,
    KEY_LENGTH_MAX,
    LABELS_MAX,
    MAX_INT,
)
from moorage.core.texts import check_plain, check_reason, is_name
from moorage.core.wildcards import is_entry
from moorage.core.wishes import labels_of, wanted_of
from moorage.faces.v1 import authorization
from moorage.faces.v1.admission.shares import share_shown
from moorage.faces.v1.admission.slots import late_shown
from moorage.faces.v1.routing import Handlers, Request, StatusAnswer
from moorage.service.access.roles import Role, from_role
from moorage.service.admission.ending import Clearing, HolderGone, LeaseRevoke
from moorage.service.admission.lease_cases import (
    LeaseCase,
    LeaseHold,
    LeaseOutcome,
    LeaseRecord,
    LeaseRelease,
    LeaseRenew,
    LeaseRetry,
    OnBehalf,
    TicketForce,
    TicketMove,
)
from moorage.service.admission.queries import LeaseFilter
from moorage.service.admission.views import LeaseView
from moorage.service.batch.ledger_share import LeaseAllocations, text_of
from moorage.service.token_ends import BOTH
from moorage.service.values import (
    check_text,
    check_wait,
    microseconds,
    microseconds_or_none,
    name_of,
    time_of,
    time_or_none,
    times_or_none,
    uuid_of,
)
from moorage.wire import admission as wire
from moorage.wire.admin import OwnerRevoked, OwnerRevokeWanted
from moorage.wire.enums import Choose
from moorage.wire.operations import leases as operations
from moorage.wire.pools import lease_changes

STATUSES = {"granted": HTTPStatus.CREATED, "waiting": HTTPStatus.ACCEPTED, "ended": HTTPStatus.OK}
"""HTTP status of the answer to a request for units, by the state of the lease."""

OPERATORS = from_role(Role.OPERATOR)

OWNER_LENGTH_MAX = 2 * IDENTIFIER_LENGTH_MAX + 1


async def create(
    request: Request[wire.LeaseWanted, wire.LeaseAsked],
) -> StatusAnswer[wire.Lease]:
    """Request units."""
    wanted = request.body
    if request.caller.scope is not None:
        named = {need.pool for needs in (wanted.needs, *wanted.any_of) for need in needs}
        authorization.check_scope(request.caller.scope, named)
    if wanted.force and not request.governs:
        authorization.check_role(request.role, Role.OPERATOR, "force")
    if wanted.allocations is not None:
        authorization.check_role(request.role, Role.SERVICE, "allocations")
    view = await request.service.admission.acquire(
        request_of(wanted, request.owner, attended=request.delivery.watch is not None),
        by=request.actor,
        seconds=check_wait(request.parameters.wait),
        gone=request.disconnected,
    )
    view = _told(request, view)
    return StatusAnswer(STATUSES[view.lease.state], shown_to(request, view))


async def page(request: Request[None, wire.LeasesAsked]) -> wire.LeasePage:
    """Return a page of leases and tickets."""
    asked, scope = request.parameters, request.caller.scope
    owner = request.owner if asked.mine else asked.owner
    state = asked.state
    if asked.offered:
        if state not in (None, "granted"):
            raise Error(Code.INVALID, "Only granted leases are offered: omit state.")
        state = "granted"
    if asked.mine and asked.owner not in (None, owner):
        raise Error(Code.INVALID, f"mine means the owner '{owner}': omit either owner or mine.")
    if request.governs and (asked.pool is None or asked.key_prefix is not None):
        owner = owner or request.owner
    if asked.pool is not None:
        authorization.check_scope(scope, [asked.pool])
    elif scope is not None and not request.governs:
        raise Error(Code.INVALID, "This token must name a pool of its scope: ?pool=NAME.")
    if asked.consumer is not None:
        authorization.check_places(request.caller, request.project, "consumer")
    views, following, as_of = await request.service.admission.queries.leases(
        asked.cursor,
        asked.limit,
        asked.pool,
        state,
        owner,
        asked.key_prefix,
        asked.id_prefix,
        LeaseFilter(
            labels_parse(asked.label),
            microseconds_or_none("older", asked.older),
            consumer=(
                None
                if asked.consumer is None
                else ConsumerId(uuid_of(asked.consumer, "A consumer"))
            ),
            machine=machine_of(asked.machine),
            placed=authorization.sees_places(request.caller, request.project),
            offered_to=request.owner if asked.offered else None,
        ),
        asked.group,
    )
    if scope is not None:
        views = [view for view in views if any(map(scope.covers, _pools(view)))]
    shown_leases = [shown_to(request, view) for view in views]
    return wire.LeasePage(leases=shown_leases, next=following, as_of=str(as_of))


async def read(request: Request[None, wire.LeaseLooked]) -> wire.Lease:
    """Return a lease or ticket, and wait for its grant or its end if asked to.

    With `until=granted`, a read of a ticket counts as a poll if its owner reads or if it waits.
    """
    lease, wait = lease_id(request), check_wait(request.parameters.wait)
    admission = request.service.admission
    view = await admission.queries.lease(lease)
    authorization.check_scope(request.caller.scope, _pools(view), every=False)
    mine = _is_owner(request, view)
    if wait and not (mine or _operates(request)):
        raise Error(Code.HOLDER_MISMATCH, "Only the owner of a ticket or lease may wait for it.")
    until = request.parameters.until
    if until != "granted":
        if wait and view.lease.state != "ended":
            stop = until == "asked_to_stop"
            view = await admission.until_ended(lease, wait, request.disconnected, or_stop=stop)
    elif view.lease.state == "waiting" and (mine or wait):
        scan = view.lease.pull or view.lease.forced
        view = await admission.waited(lease, wait, request.disconnected, scan=scan)
    return await _alone(request, _told(request, view))


async def renew(request: Request[lease_changes.HolderProof, None]) -> wire.Lease:
    """Renew a lease: it lasts for its TTL from now on."""
    lease = await lease_in_scope(request)
    owner = None if _stands_in(request) else request.owner
    return await changed(request, LeaseRenew(lease, Proof(owner, request.body.token)))


async def release(request: Request[None, lease_changes.ReleaseWanted]) -> wire.Lease:
    """Release a lease, or withdraw a ticket."""
    lease, wanted = await lease_in_scope(request), request.parameters
    proof, by = standing_of(request, wanted.token)
    who = request.caller.user_id
    case = LeaseRelease(lease, proof, who, wanted.record_version, wanted.gave_up, by=by)
    return await _alone(request, await request.service.admission.change(case))


async def record(request: Request[lease_changes.RecordWanted, None]) -> wire.Lease:
    """Replace a lease's record."""
    lease, wanted = await lease_in_scope(request), request.body
    proof, by = standing_of(request, wanted.token)
    case = LeaseRecord(lease, proof, record_text(wanted.record), wanted.version, by=by)
    return await changed(request, case)


async def change(request: Request[lease_changes.HoldWanted, None]) -> wire.Lease:
    """Change when a lease's hold ends."""
    wanted, hold = request.body, microseconds_or_none("hold", request.body.hold)
    lease, (proof, by) = lease_id(request), standing_of(request, wanted.token)
    case = LeaseHold(lease, proof, hold, wanted.at_most, by=by)
    return await changed(request, case)


async def retry(request: Request[lease_changes.RetryWanted, None]) -> StatusAnswer[wire.Lease]:
    """Release a lease and request the same again; retrying a forced lease needs an operator."""
    wanted, admission, lease = (
        request.body,
        request.service.admission,
        await lease_in_scope(request),
    )
    old = (await admission.queries.lease(lease)).lease
    if old.forced and not (old.forced_by_operator or request.governs):
        authorization.check_role(request.role, Role.OPERATOR, "retrying a forced lease")
    proof, by = standing_of(request, wanted.token)
    case = LeaseRetry(
        lease,
        old.owner,
        proof,
        wanted.key,
        request.actor,
        wanted.requeue,
        wanted.record_version,
        by=by,
    )
    view = _told(request, await admission.change(case))
    return StatusAnswer(STATUSES[view.lease.state], shown_to(request, view))


async def revoke(request: Request[lease_changes.RevokeWanted, None]) -> wire.Lease:
    """Revoke a lease or ticket."""
    reason = request.body.reason
    check_reason(reason)
    lease, admission, by = (
        await lease_in_scope(request),
        request.service.admission,
        OnBehalf(request.actor),
    )
    case: LeaseCase = LeaseRevoke(lease, reason, by=by)
    if request.body.holder_is_gone:
        pools = _pools(await admission.queries.lease(lease))
        case = HolderGone(lease, reason, frozenset(pools), by=by)
    return await _alone(request, await admission.change(case))


async def outcome(request: Request[lease_changes.OutcomeWanted, None]) -> wire.Lease:
    """Record the outcome of what the holder started."""
    lease, outcome = await lease_in_scope(request), request.body
    proof, by = standing_of(request, outcome.token)
    detail = check_text("detail", outcome.detail, DETAIL_LENGTH_MAX)
    cause = check_text("cause", outcome.cause, CAUSE_LENGTH_MAX)
    check_plain("cause", cause)
    case = LeaseOutcome(lease, proof, outcome.result, detail, cause, by=by)
    return await changed(request, case)


async def verify(request: Request[None, lease_changes.VerifyAsked]) -> lease_changes.Verified:
    """Return whether a fencing token is current."""
    asked = request.parameters
    view = await request.service.admission.queries.holder(asked.pool, asked.token)
    if view is None:
        return lease_changes.Verified(current=False, lease=None, expires_at=None)
    return lease_changes.Verified(
        current=True, lease=view.lease.id, expires_at=time_or_none(view.times().expires_at)
    )


async def move(request: Request[lease_changes.MoveWanted, None]) -> wire.Lease:
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


async def revoke_owner(request: Request[OwnerRevokeWanted, None]) -> OwnerRevoked:
    """End all tickets and leases of an owner."""
    wanted, service = request.body, request.service
    if not is_entry(wanted.owner, OWNER_LENGTH_MAX):
        raise Error(Code.INVALID, f"{wanted.owner!r} is not an owner, or PROJECT/*.")
    own = not _operates(request)
    if own and wanted.owner != request.owner:
        authorization.check_role(request.role, Role.OPERATOR, "ending leases of other owners")
    if wanted.pool is not None:
        await service.admission.queries.pool(wanted.pool)  # raises if there is no such pool
    states = BOTH if wanted.state is None else (wanted.state,)
    check_reason(wanted.reason)
    what = Clearing(wanted.owner, states, wanted.reason, request.actor, own=own)
    found = await service.admission.owners.clear(what, wanted.pool)
    return OwnerRevoked(
        owner=wanted.owner, tickets=found.tickets, leases=found.leases, more=found.more
    )


HANDLERS: Handlers = {
    operations.CREATE_LEASE: create,
    operations.LIST_LEASES: page,
    operations.VERIFY_LEASE: verify,
    operations.GET_LEASE: read,
    operations.RELEASE_LEASE: release,
    operations.PUT_LEASE_RECORD: record,
    operations.SET_LEASE_HOLD: change,
    operations.RENEW_LEASE: renew,
    operations.RETRY_LEASE: retry,
    operations.REPORT_LEASE_OUTCOME: outcome,
    operations.REVOKE_LEASE: revoke,
    operations.MOVE_LEASE: move,
    operations.FORCE_LEASE: force,
    operations.REVOKE_OWNER_LEASE: revoke_owner,
}


def lease_id(request: Request[Any, Any]) -> LeaseId:
    """Return the id in a request's address. Raises `Error`: LEASE_NOT_FOUND."""
    return lease_id_of(request.variables["id"])


def lease_id_of(text: str) -> LeaseId:
    """Return the id of a lease or ticket. Raises `Error`: LEASE_NOT_FOUND."""
    lease = text.lower()
    if not is_normal(lease):
        raise Error(Code.LEASE_NOT_FOUND, f"There is no lease '{lease}': this is not a valid id.")
    return LeaseId(lease)


async def lease_in_scope(request: Request[Any, Any]) -> LeaseId:
    """Return the lease's id. It gains no pool, so it stays in scope. Raises ProblemError: 403."""
    lease, scope = lease_id(request), request.caller.scope
    if scope is not None:
        view = await request.service.admission.queries.lease(lease)
        authorization.check_scope(scope, _pools(view))
    return lease


def _pools(view: LeaseView) -> set[str]:
    return pools_named(view.lease)


def _operates(request: Request[Any, Any]) -> bool:
    return request.role in OPERATORS


def _stands_in(request: Request[Any, Any]) -> bool:
    """Return whether the caller may act on behalf of a lease's holder."""
    return (request.caller.scope is not None and not request.governs) or _operates(request)


def standing_of(request: Request[Any, Any], token: str | None) -> tuple[Proof, OnBehalf | None]:
    """Return the caller's proof, and the caller as one who acts on behalf of holders.

    The proof is for its own leases, or for all if it may act for holders; None: it may not.
    """
    if not _stands_in(request):
        return Proof(request.owner, token), None
    own = None if request.caller.scope is not None else request.owner
    return Proof(None, token), OnBehalf(request.actor, own)


def _is_owner(request: Request[Any, Any], view: LeaseView) -> bool:
    """Return whether it is the caller's own lease: a governor's only if all its pools are."""
    scope = request.caller.scope
    if scope is not None and not (request.governs and all(map(scope.covers, _pools(view)))):
        return False
    return view.lease.owner == request.owner


async def changed(request: Request[Any, Any], case: LeaseCase) -> wire.Lease:
    """Execute a case of a lease, and show the lease."""
    return shown_to(request, await request.service.admission.change(case))


async def _alone(request: Request[Any, Any], view: LeaseView) -> wire.Lease:
    """Convert a lease to its wire form, with the releases by name that may still be its own."""
    owed = await request.service.admission.slots.owed(view.lease)
    found = shown_to(request, view)
    return replace(found, late_releases=[late_shown(one) for one in owed]) if owed else found


def _told(request: Request[Any, Any], view: LeaseView) -> LeaseView:
    """Note that an answer tells the holder of a grant that it has it; return what it tells.

    Reading the answer gives the lease its TTL, or none.
    """
    lease = view.lease
    is_seen = request.delivery.watch is not None
    if not (is_unconfirmed(lease) and is_seen and _is_owner(request, view)):
        return view
    request.delivery.tells_of(lease.id)
    return structs.replace(view, confirmed=True)


def shown_to(request: Request[Any, Any], view: LeaseView) -> wire.Lease:
    """Convert a lease to its wire form: with its token and record for its owner and operators."""
    return lease_shown(view, _operates(request) or _is_owner(request, view))


def request_of(wanted: wire.LeaseWanted, owner: str, *, attended: bool = False) -> LeaseRequest:
    """Convert an owner's request to the core's type. Raises `Error`: INVALID."""
    if wanted.supersede is not None and not wanted.supersede.group:
        raise Error(Code.INVALID, f"A group must have 1 to {KEY_LENGTH_MAX} characters.")
    asked = LeaseRequest(
        owner=owner,
        key=wanted.key,
        needs=tuple(sorted(map(_need_of, wanted.needs), key=attrgetter("pool"))),
        ttl=microseconds_or_none("ttl", wanted.ttl),
        hold=microseconds_or_none("hold", wanted.hold),
        priority=wanted.priority,
        labels=wanted.labels,
        patience=microseconds("patience", wanted.patience),
        forced=wanted.force,
        pull=wanted.pull,
        reopen=wanted.reopen,
        attended=attended,
        group="" if wanted.supersede is None else wanted.supersede.group,
        cancel_running=wanted.supersede is not None and wanted.supersede.cancel_running,
        preemptible=microseconds_or_none("preemptible", wanted.preemptible),
        allocations=None if wanted.allocations is None else text_of(_holding(wanted.allocations)),
        booking=None if wanted.booking is None else BookingId(uuid_of(wanted.booking, "booking")),
        borrow=None if wanted.borrow is None else microseconds("borrow", wanted.borrow),
    )
    if not wanted.any_of:
        return asked
    alternatives = map(_needs_of, wanted.any_of)
    return asked.any_of([*alternatives], in_order=wanted.choose == "order")


def _needs_of(wanted: list[wire.NeedWanted]) -> tuple[Need, ...]:
    return tuple(sorted(map(_need_of, wanted), key=attrgetter("pool")))


def _need_of(wanted: wire.NeedWanted) -> Need:
    return Need(wanted.pool, wanted.units, wanted=wanted_of(wanted.labels))


def _holding(wanted: wire.AllocationsWanted) -> LeaseAllocations:
    for provider, amounts in wanted.allocations.items():
        for name, amount in amounts.items():
            if not is_name(name):
                raise Error(
                    Code.INVALID,
                    f"{name!r} in allocations of provider '{provider}' is not a resource class.",
                )
            if not 1 <= amount <= MAX_INT:
                raise Error(
                    Code.INVALID,
                    f"The amount of {name!r} of provider '{provider}' must be from 1 to {MAX_INT},"
                    f" not {amount}.",
                )
    if not wanted.allocations or not all(wanted.allocations.values()):
        raise Error(
            Code.INVALID, "allocations must name at least one provider, and an amount for each."
        )
    if wanted.consumer_type is not None:
        check_consumer_type(wanted.consumer_type)
    allocations = {
        ProviderId(uuid_of(provider, "A provider")): amounts
        for provider, amounts in wanted.allocations.items()
    }
    if len(allocations) != len(wanted.allocations):
        raise Error(Code.INVALID, "allocations name a provider twice, in upper and in lower case.")
    return LeaseAllocations(
        consumer=ConsumerId(uuid_of(wanted.consumer, "consumer")),
        allocations=allocations,
        project_id=name_of("project_id", wanted.project_id),
        user_id=name_of("user_id", wanted.user_id),
        consumer_type=wanted.consumer_type,
    )


def machine_of(names: list[str]) -> frozenset[str]:
    """Return the names of a machine. Raises LIMIT_EXCEEDED."""
    if len(names) > LABELS_MAX:
        raise Error(Code.LIMIT_EXCEEDED, f"At most {LABELS_MAX} values of machine.")
    return frozenset(filter(None, names))


def labels_parse(texts: list[str]) -> dict[str, str]:
    """Return the labels of texts NAME=VALUE; a name may stand once. Raises `Error`: INVALID."""
    labels: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals) or name in labels:
            raise Error(Code.INVALID, f"label must be NAME=VALUE, each name once, not {text!r}.")
        labels[name] = value
    check_labels(labels)
    return labels


def record_text(record: dict[str, Any]) -> str:
    """Return a record as it is stored: without blanks, equal records alike."""
    return msgspec.json.encode(record, order="deterministic").decode()


CHOOSE: tuple[Choose, Choose] = ("least_loaded", "order")


def lease_shown(view: LeaseView, mine: bool) -> wire.Lease:
    """Convert a lease to its wire form.

    `mine`: include its token and its record (for its owner and operators only).
    """
    lease, times, age = view.lease, view.times(), record_age(view.lease, view.when.moment.at)
    granted_at, expires_at, hold_until, ended_at, stop_until = times_or_none(times[1:])
    return wire.Lease(
        id=lease.id,
        key=lease.key,
        owner=lease.owner,
        state=lease.state,
        needs=list(map(_need_shown, lease.needs)),
        any_of=[list(map(_need_shown, needs)) for needs in lease.alternatives]
        if lease.alternatives
        else [],
        choose=None if lease.choice is None else CHOOSE[lease.choice.in_order],
        slots={pool: list(names) for pool, names in lease.slots.items()} if lease.slots else {},
        labels=lease.labels,
        priority=lease.priority,
        forced=lease.forced,
        ttl=None if lease.ttl is None else lease.ttl / SECOND,
        hold=None if lease.hold is None else lease.hold / SECOND,
        asked_at=time_of(times.asked_at),
        granted_at=granted_at,
        expires_at=expires_at,
        hold_until=hold_until,
        ended_at=ended_at,
        cause=lease.cause,
        detail=lease.detail,
        outcome=lease.outcome,
        unheard=view.unheard,
        token=str(lease.token) if mine and lease.token is not None else None,
        record=_record_shown(lease.record) if mine and lease.record else None,
        record_version=lease.record_version,
        record_age=None if age is None else age / SECOND,
        waiting=None if view.standing is None else _standing_shown(view.standing),
        group=lease.group,
        superseded_by=lease.superseded_by,
        stop_until=stop_until,
        preemptible=None if lease.preemptible is None else lease.preemptible / SECOND,
        preempted_by=lease.preempted_by,
        offer=None if lease.offer is None else _offer_shown(lease.offer, view),
        taken_from=lease.taken_from,
        kept=None if lease.kept is None else _kept_shown(lease.kept, view),
        booking=lease.booking,
        yields_to=lease.yields_to,
        notice="" if lease.yields_to is None else notice_of(lease),
    )


def _offer_shown(made: Offer, view: LeaseView) -> wire.Offer | None:
    if not is_offered(view.lease, view.when.moment.at):
        return None
    return wire.Offer(to=made.to, until=time_of(view.wall(made.until)))


def _kept_shown(kept: Kept, view: LeaseView) -> wire.Kept:
    since = time_of(view.wall(kept.since))
    return wire.Kept(reason=kept.reason, since=since, waiting=view.awaited)


def _record_shown(text: str) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.json.decode(text)
    return record


def _standing_shown(standing: Standing) -> wire.Waiting:
    return wire.Waiting(
        position=standing.position,
        eta_seconds=standing.eta_seconds,
        overdue=standing.overdue,
        code=standing.code,
        reason=standing.reason,
        alternatives=[
            wire.WaitingFor(
                needs=list(map(_need_shown, one.needs)),
                position=one.standing.position,
                eta_seconds=one.standing.eta_seconds,
                overdue=one.standing.overdue,
                code=one.standing.code,
                reason=one.standing.reason,
            )
            for one in standing.alternatives
        ],
        share=None if standing.share is None else share_shown(standing.share),
    )


def _need_shown(need: Need) -> wire.NeedWanted:
    return wire.NeedWanted(pool=need.pool, units=need.units, labels=dict(labels_of(need.wanted)))
