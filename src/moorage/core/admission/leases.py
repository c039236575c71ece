"""Tickets and leases: acquire, poll, renew, record, release, retry.

Each decision returns its changes and the id of its lease. Grants are made by `admit.py`, once for
all decisions of a batch; the one exception is a retry that keeps its units.
"""

from msgspec import Struct, structs

from moorage.core.admission import bounds, expiry, keeping, templates
from moorage.core.admission.adaptive import rule as adaptive
from moorage.core.admission.alternatives import asked, lined_up, remaining
from moorage.core.admission.bars import (
    is_silent,
    is_waited_for,
    is_watched,
    kept_until,
    left_until,
    lives_on,
    presence_of,
    quota_left,
)
from moorage.core.admission.booking_model import BOOKED_PRIORITY
from moorage.core.admission.calendar import bookings
from moorage.core.admission.draft import Draft, by, grow
from moorage.core.admission.facts import Answer, Changes, Facts
from moorage.core.admission.model import (
    Cause,
    Choice,
    Lease,
    Pool,
    Result,
    Slot,
    StartOutcome,
    confirmed_until,
    is_unconfirmed,
    key_left,
)
from moorage.core.admission.owners import GOVERNORS, LEASE_PROXY, is_foreign
from moorage.core.admission.requests import (
    LeaseRequest,
    Proof,
    check_duration,
    check_proof,
    check_request,
    check_version,
    hold_of,
    in_order,
    keeps,
    known_to,
    lease_of,
    live_lease,
    pools_of,
    settled,
    ttl_of,
)
from moorage.core.admission.sharing import cohorts, fair_share
from moorage.core.admission.superseding import supersede
from moorage.core.admission.units import limit_of, units_by_pool
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import DETAIL_LENGTH_MAX, MAX_INT, RECORD_BYTES_MAX
from moorage.core.service_time import Moment
from moorage.core.wishes import suits


def acquire(
    facts: Facts, moment: Moment, request: LeaseRequest, wall: Instant | None = None
) -> Answer:
    """Add a ticket to its lines; `admit` decides whether it is granted at once.

    A repeated key and digest returns the existing lease, ended or not; with `reopen`, one that has
    ended leaves its key to a new ticket. `wall` is the wall-clock time, stored in slots that
    are made for the ticket; None: it does not matter.
    If it is in a group, it ends what waits in the group, see `superseding`. A pool that does not
    exist may be made, see `templates`.
    Raises KEY_REUSED, TEMPLATE_FULL, INVALID, POOL_UNKNOWN, UNITS_ABOVE_LIMIT, QUEUE_FULL, and as
    `bounds`.
    """
    draft = Draft(facts, moment, moment.at if wall is None else wall)
    before = facts.asked.get((request.owner, request.key))
    if before is not None and request.reopen and facts.leases[before].state == "ended":
        draft.put(key_left(facts.leases[before]))
    else:
        known = known_to(facts, request)
        if known is not None:
            return draft.changes, known
    if request.pull:
        draft.changes.polled.add(request.id)
    for need in request.needs:
        if need.pool not in facts.pools:
            draft.make(templates.missing(facts, request, moment, draft.wall))
            break
    pools = check_request(draft.facts, request)
    if len(pools) > 1:
        bounds.check_order(pools)
    place = supersede(draft, request) if request.group else None
    if place is not None and bounds.order_of(pools) == "newest":
        place = None  # its own place is the better one
    return draft.changes, enter(draft, request, pools, place).id


def poll(facts: Facts, moment: Moment, lease: LeaseId, until: Instant) -> Answer:
    """Record a poll of a ticket, which is kept until then (alive time).

    A withdrawn ticket stays withdrawn. The deadline of a pull ticket is always set: it tells until
    when a request waits. An attended ticket that was passed over may be granted from now on, so its
    pools are to be scanned. Raises LEASE_NOT_FOUND.
    """
    found, changes = lease_of(facts, lease), Changes()
    if found.state != "waiting" or found.heard_until is None:
        return changes, lease
    _note_return(changes, moment, found)
    if is_waited_for(found):
        changes.polled.add(lease)
        if until == moment.alive + found.patience:  # no request waits for it
            until = kept_until(moment, found)
        if until != found.heard_until:
            changes.heard[lease] = until
    elif until <= moment.alive + found.patience:  # a short poll: the client asks repeatedly
        _live_on(changes, moment, found)
    elif until > found.heard_until:
        changes.heard[lease] = until
    return changes, lease


def repeat(facts: Facts, moment: Moment, lease: LeaseId, until: Instant) -> Answer:
    """Record a repeated request: its ticket is polled, or its lease renewed.

    The first answer may have been lost, and the client counts its TTL from the one that it gets.
    This does not confirm the lease: the client may be gone before it reads the answer.
    Raises LEASE_NOT_FOUND.
    """
    found = lease_of(facts, lease)
    if is_unconfirmed(found):
        return Changes(), lease
    if found.state == "granted":
        return _renewed(moment, found), lease
    return poll(facts, moment, lease, until)


def leave(facts: Facts, moment: Moment, lease: LeaseId, others: Instant | None = None) -> Answer:
    """Record that a waiting client has disconnected: its ticket has its patience left.

    It is passed over from now on if it is a pull ticket or attended.

    `others` is the deadline because of those who still wait for it; None: nobody does.
    Raises LEASE_NOT_FOUND.
    """
    found, changes = lease_of(facts, lease), Changes()
    until = max(left_until(moment, found), others or Instant(0))
    if found.state == "waiting" and found.heard_until is not None and until < found.heard_until:
        changes.heard[lease] = until
    return changes, lease


def left_at_restart(facts: Facts, moment: Moment, lease: LeaseId) -> Changes:
    """Record that the requests that waited for a ticket ended with the process that held them.

    An attended ticket is present for a moment, so that its client can ask again; the pools are to
    be scanned, because what is set aside for it may be free after that.
    """
    found, changes = facts.leases.get(lease), Changes()
    if found is None or found.state != "waiting" or not is_watched(found):
        return changes
    until = left_until(moment, found)
    if not found.pull:
        until = Instant(until + presence_of(found.patience))
    if found.heard_until is not None and until < found.heard_until:
        changes.heard[lease] = until
        changes.unfinished.update(need.pool for need in found.needs)
    return changes


def renew(facts: Facts, moment: Moment, lease: LeaseId, proof: Proof) -> Answer:
    """Renew a lease; a ticket keeps its place, but no request waits for it because of this.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED.
    """
    return _renewed(moment, live_lease(facts, lease, proof)), lease


def release(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    lease: LeaseId,
    proof: Proof,
    cause: Cause = "released",
    detail: str = "",
    *,
    version: int | None = None,
) -> Answer:
    """Release a lease, or withdraw a ticket; if it has ended, nothing changes.

    Args:
        facts: with the lease and its pools.
        moment: now.
        wall: wall-clock time, stored in slots.
        lease: to end.
        proof: of the caller's right.
        cause: why. `released` becomes `withdrawn` for a ticket, and `revoked` for a lease of the
            lease proxy unless the proxy itself releases it: the proxy's caller does not notice.
            `gave_up` is only for tickets; a lease that was granted meanwhile is `released`.
        detail: who or what, for people.
        version: that the record must have if the lease is live; None: any.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, RECORD_CHANGED.
    """
    found = lease_of(facts, lease)
    # The holder of a grant that was taken back withdraws its ticket.
    check_proof(found, proof if found.state != "waiting" else Proof(proof.owner))
    draft = Draft(facts, moment, wall)
    if found.state != "ended":
        check_version(found, version)
        if cause == "gave_up" and found.state == "granted":
            cause = "released"
        if cause == "released" and found.state == "waiting":
            cause = "withdrawn"
        elif cause == "released" and found.owner == LEASE_PROXY and proof.owner is None:
            cause = "revoked"
        draft.end(found, cause, detail[:DETAIL_LENGTH_MAX])
    return draft.changes, lease


def hold(
    facts: Facts,
    moment: Moment,
    lease: LeaseId,
    proof: Proof,
    wanted: int | None,
    *,
    at_most: bool = False,
) -> Answer:
    """Set the time from now after which a lease ends (microseconds); None: no such end.

    A ticket's hold starts with its grant. `at_most`: an end that comes earlier stays as it is.
    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED, INVALID, HOLD_ABOVE_MAX,
    BOOKED.
    """
    found = live_lease(facts, lease, proof)
    if wanted is not None:
        check_duration("hold", wanted)
    elif at_most:
        raise Error(Code.INVALID, "at_most needs a hold: null means that there is no end.")
    until = None
    if wanted is not None and found.state == "granted":
        until = Instant(moment.at + wanted)
    if at_most and _ends_by(found, wanted, until):
        return Changes(), lease
    pools = pools_of(facts, found.needs)
    check = bounds.check_hold if found.kept is None else keeping.check_end
    check(pools, moment, found, proof, wanted)
    if facts.holding:
        bookings.check_extension(facts, moment.at, found, until)
    held = structs.replace(found, hold=wanted, hold_until=until)
    if found.choice is not None:
        held = structs.replace(held, choice=structs.replace(found.choice, hold_open=False))
    return Changes(leases={lease: expiry.known(held, moment)}), lease


def record(
    facts: Facts, moment: Moment, lease: LeaseId, proof: Proof, text: str, version: int
) -> Answer:
    """Replace the record of a granted lease: what its holder writes for others who share it.

    Nothing here reads it. A write names the version that it replaces, so two writers cannot
    overwrite each other. Source: docs/decisions/0028-governors-share-a-lease.md.
    If exactly this write was made before, nothing changes: its answer may have been lost.

    Args:
        facts: with the lease.
        moment: now.
        lease: whose record it is.
        proof: of the caller's right.
        text: the record, a JSON object, always spelled alike.
        version: that it replaces; the first record replaces 0.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED, RECORD_CHANGED; INVALID: the
    lease is not granted yet, or the record is too long.
    """
    found = live_lease(facts, lease, proof)
    if found.state == "waiting":
        raise Error(Code.INVALID, f"Lease '{lease}' is not granted yet, so it has no record.")
    if not 0 <= version < MAX_INT:
        raise Error(Code.INVALID, f"version must be from 0 to {MAX_INT - 1}.")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > RECORD_BYTES_MAX:
        raise Error(
            Code.INVALID, f"A record must have at most {RECORD_BYTES_MAX} bytes, not {size}."
        )
    if (found.record_version, found.record) == (version + 1, text):
        return expiry.confirm(facts, moment, lease), lease
    check_version(found, version)
    written = structs.replace(found, record=text, record_version=version + 1, recorded_at=moment.at)
    return Changes(leases={lease: expiry.known(written, moment)}), lease


def outcome(
    facts: Facts,
    moment: Moment,
    lease: LeaseId,
    proof: Proof,
    result: Result,
    detail: str,
    *,
    cause: str = "",
) -> Answer:
    """Record the outcome of a start, in each of its pools.

    A lease has one outcome: the first report counts, and repeating it changes nothing. It may be
    reported as long as the lease is remembered, however that has ended (a start may outlast its
    hold, or a lost or revoked lease). It is evidence, and neither frees nor takes units; an
    adaptive limit may change by it, see `adaptive/rule.py`. `cause`: the same for failures that
    belong together.
    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, INVALID: the lease was never granted,
    OUTCOME_TOLD: another outcome was reported before, LEASE_ENDED: it was handed over.
    """
    found = lease_of(facts, lease)
    check_proof(found, proof)
    if found.granted_at is None:
        raise Error(
            Code.INVALID, f"Lease '{lease}' was never granted, so it cannot have an outcome."
        )
    if found.outcome == result:
        return Changes(), lease
    if found.cause == "handed_over":
        raise Error(
            Code.LEASE_ENDED,
            f"Lease '{lease}' was handed over {found.detail}: the new holder reports the outcome.",
        )
    if found.outcome is not None:
        raise Error(
            Code.OUTCOME_TOLD,
            f"Lease '{lease}' has the outcome '{found.outcome}' already, and the first counts.",
        )
    outcomes = [
        StartOutcome(
            lease=lease,
            pool=pool.name,
            at=moment.at,
            result=result,
            detail=detail[:DETAIL_LENGTH_MAX],
            limit=limit_of(facts, pool),
            occupied=pool.occupied,
            cause=cause,
        )
        for name in units_by_pool(found.needs)
        if (pool := facts.pools.get(name)) is not None
    ]
    told = expiry.known(structs.replace(found, outcome=result), moment)
    pools = {
        one.pool: adaptive.reported(pool, found, moment.at, result, cause)
        for one in outcomes
        if (pool := facts.pools[one.pool]).adaptation is not None
    }
    return Changes(leases={lease: told}, outcomes=outcomes, pools={**pools}), lease


def enter(
    draft: Draft, request: LeaseRequest, pools: list[Pool], place: Lease | None = None
) -> Lease:
    """Check a new request, add its ticket, and return it.

    Args:
        draft: of the decision; the key is not in use, and what the request replaces has ended.
        request: the request, which `check_request` has found valid.
        pools: that it needs.
        place: the lease or ticket whose place in line it takes; None: its own.

    Raises as `acquire`, except KEY_REUSED.
    """
    bounds.check_asker(pools, request)
    bounds.check_units(draft.facts, pools, request, draft.moment.at)
    if len(pools) > 1:
        fair_share.check_alone(pools)
        cohorts.check_alone(pools)
    if request.booking is not None:
        bookings.check_use(draft.facts, draft.moment.at, request)
    if not request.forced:
        for known in pools:
            pool = draft.pool(known.name)
            bounds.check_queue(draft, pool, request)
            bounds.check_labels_sought(pool, request)
    arrival = draft.arrive() if place is None else place.arrival
    ticket = ticket_of(draft, pools, request, arrival)
    if place is not None:
        ticket = placed(ticket, place)
    ticket = draft.join(ticket, None if place is None else place.place)
    grow(draft, ticket, pools)
    return ticket


def placed(ticket: Lease, old: Lease) -> Lease:
    """Return a ticket with the order and the priority, perhaps an operator's, of the old one."""
    placed_so = structs.replace(ticket, newest=old.newest)
    if ticket.booking is not None:
        return placed_so  # its priority follows from its booking
    asked = None if ticket.priority == old.priority else ticket.priority
    return structs.replace(placed_so, priority=old.priority, priority_asked=asked)


def ticket_of(draft: Draft, pools: list[Pool], request: LeaseRequest, arrival: int) -> Lease:
    """Return the ticket of a request for units of these pools, which is not stored yet."""
    ticket = Lease(
        id=request.id,
        owner=request.owner,
        key=request.key,
        digest=request.digest,
        needs=in_order(request.needs),
        state="waiting",
        priority=request.priority if request.booking is None else BOOKED_PRIORITY,
        arrival=arrival,
        ttl=None if request.owner == LEASE_PROXY else ttl_of(pools, request.ttl),
        hold=hold_of(pools, request.hold),
        patience=request.patience,
        labels=request.labels,
        forced=request.forced,
        pull=request.pull,
        attended=request.attended,
        keep=keeps(pools),
        asked_at=draft.moment.at,
        heard_until=request.heard_until,
        allocations=request.allocations,
        newest=bounds.order_of(pools) == "newest",
        group=request.group,
        preemptible=request.preemptible,
        alternatives=request.alternatives,
        choice=_choice_of(request) if request.alternatives else None,
        priority_asked=None if request.booking is None else request.priority,
        booking=request.booking,
        borrow=request.borrow,
    )
    if ticket.heard_until == draft.moment.alive + ticket.patience:  # no request waits for it
        until = kept_until(draft.moment, ticket)
        present = presence_of(ticket.patience) if ticket.attended and not ticket.pull else 0
        ticket = structs.replace(ticket, heard_until=Instant(until + present))
    return ticket


def _choice_of(request: LeaseRequest) -> Choice:
    return Choice(request.in_order, ttl_open=request.ttl is None, hold_open=request.hold is None)


def _ends_by(lease: Lease, hold: int | None, until: Instant | None) -> bool:
    """Does a lease end by then anyway, or a ticket's hold not last longer than this one?"""
    if until is None:
        return hold is not None and lease.hold is not None and lease.hold <= hold
    return lease.hold_until is not None and lease.hold_until <= until


def _renewed(moment: Moment, lease: Lease) -> Changes:
    """Extend a lease to its TTL from now, or a ticket to its patience."""
    changes = Changes()
    if is_unconfirmed(lease):
        changes.heard[lease.id] = confirmed_until(lease, moment)
    elif lease.state == "waiting":
        _note_return(changes, moment, lease)
        _live_on(changes, moment, lease)
    elif lease.ttl is not None and lease.heard_until is not None:
        until = max(lease.heard_until, moment.alive + lease.ttl)
        changes.heard[lease.id] = Instant(until)
    return changes


def _note_return(changes: Changes, moment: Moment, ticket: Lease) -> None:
    """Have the lines of a ticket scanned that was passed over; nothing tells of it later."""
    if ticket.attended and not ticket.pull and is_silent(ticket, moment):
        changes.returned.update(need.pool for need in ticket.needs)


def _live_on(changes: Changes, moment: Moment, ticket: Lease) -> None:
    until = lives_on(moment, ticket)
    if until is not None:
        changes.heard[ticket.id] = until


class Retry(Struct, frozen=True):
    """How to ask again."""

    new: LeaseRequest
    """See `request_again`."""
    requeue: bool = False
    """Give the units back, and wait again: at the old place, see `retry`."""
    version: int | None = None
    """The version that the record must have; None: any."""


def retry(
    facts: Facts, moment: Moment, wall: Instant, lease: LeaseId, proof: Proof, how: Retry
) -> Answer:
    """Release and ask again in one step; the answer is the new lease.

    If the needs are the same and every pool has `on_retry: keep`, a ticket keeps its place in line,
    and a lease keeps its units and slots; it does not wait for pacing, but counts in it. A lease
    goes back to its old place in line if it has `allocations`, a pool is paused or has bookings, or
    a limit or quota is exceeded. In all other cases the retry goes to the end of the line.

    With `requeue` the units are always given back. The place is kept in pools with `on_retry: keep`
    and, in all pools, for governors: others could be the first in line for ever where retries go to
    the end. The new ticket may have the key of the old lease, which leaves it. A pull ticket is not
    granted before a request waits for it. If a later request of its group has superseded the old
    lease, a new ticket ends at once: only the newest waits.

    Raises as `release` and `acquire`, and LEASE_ENDED. INVALID: the lease was made through Boskos
    or the lease proxy, so its holder could not learn of the new one; a forced one cannot be
    requeued.
    """
    new, old = _possible(facts, how.new), lease_of(facts, lease)
    check_proof(old, proof)
    _check_retried(old, how)
    draft = Draft(facts, moment, wall)
    same_key = how.requeue and new.key == old.key
    again = None if same_key else known_to(facts, new)
    if again is not None:
        return draft.changes, again
    old = live_lease(facts, lease, proof)
    check_version(old, how.version)
    pools = check_request(facts, new)
    bounds.check_asker(pools, new)
    had = pools_of(facts, old.needs)
    # Alternatives whose pools are gone do not matter: to ask for fewer of them is no advantage.
    same = asked(old.needs, old.alternatives) == asked(
        in_order(how.new.needs), how.new.alternatives
    )
    keeps_units = same and _keep_on_retry(had) and not how.requeue and old.state == "granted"
    booked = new.booking is not None or any(pool.booked_until is not None for pool in had)
    keeps_units = keeps_units and not booked
    held = [slot for slot in facts.slots_of(old.slots) if slot.lease == old.id]
    if keeps_units and _may_keep(facts, old, new, had) and all(_suits(one, old) for one in held):
        draft.stop(old, "retried")
        _start_again(draft, old, ticket_of(draft, pools, new, draft.arrive()), had, held)
        return draft.changes, new.id
    ended = draft.end(old, "retried")
    if same_key:
        draft.put(key_left(ended))
    if new.pull and not how.requeue:
        draft.changes.polled.add(new.id)
    keeps_place = (same and _keep_on_retry(pools)) or (how.requeue and old.owner == GOVERNORS)
    if old.preempted_by is not None and pools[0].spec.fair_share is not None:
        keeps_place = False  # it would take what it gives up: its old tag is a low one
    ticket = enter(draft, new, pools, old if keeps_place else None)
    if old.superseded_by is not None:
        late = structs.replace(ticket, superseded_by=old.superseded_by)
        draft.end(late, "superseded", by(old.superseded_by))
    return draft.changes, new.id


def _check_retried(old: Lease, how: Retry) -> None:
    if is_foreign(old.owner):
        raise Error(
            Code.INVALID,
            f"Lease '{old.id}' was made through Boskos or the lease proxy, and its holder would not"
            f" learn about a new lease: revoke this lease instead.",
        )
    if how.requeue and old.forced and not old.forced_by_operator:
        raise Error(Code.INVALID, f"Lease '{old.id}' was forced, so it has no place in line.")


def _start_again(
    draft: Draft, old: Lease, ticket: Lease, pools: list[Pool], held: list[Slot]
) -> None:
    """Grant the ticket of a retry the units of the old lease, which are in these pools."""
    ticket = structs.replace(placed(ticket, old), superseded_by=old.superseded_by)
    if ticket.alternatives:
        ticket = settled(structs.replace(ticket, needs=old.needs), pools)
    draft.start(draft.pay(ticket, old), held)


def _keep_on_retry(pools: list[Pool]) -> bool:
    return all(pool.spec.on_retry == "keep" for pool in pools)


def _possible(facts: Facts, request: LeaseRequest) -> LeaseRequest:
    """Return a request without the alternatives whose pools were deleted since it was made."""
    left = remaining(request.alternatives, facts.pools)
    if not left or len(left) == len(request.alternatives):
        return request
    return structs.replace(request, needs=lined_up(left), alternatives=left)


def _suits(slot: Slot, lease: Lease) -> bool:
    """Would a slot be granted to this lease again? Not if it is drained, or has lost its labels."""
    own = (need for need in lease.needs if need.pool == slot.pool)
    return slot.drain is None and any(suits(slot.labels, need.wanted) for need in own)


def _may_keep(facts: Facts, old: Lease, new: LeaseRequest, pools: list[Pool]) -> bool:
    if (old.owner, old.allocations, new.allocations) != (new.owner, None, None) or new.forced:
        return False
    if old.stop_until is not None:
        return False  # its holder is asked to stop
    for pool in pools:
        if pool.paused or pool.occupied > limit_of(facts, pool):  # what was borrowed goes back
            return False
        left = quota_left(facts, pool, old.owner)
        if left is not None and left < 0:
            return False
    return True
