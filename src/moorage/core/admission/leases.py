"""Tickets and leases: acquire, poll, renew, record, release, retry.

Each decision returns its changes and the id of its lease. Grants are made by `admit.py`, once for
all decisions of a batch; the one exception is a retry that keeps its units.
"""

from msgspec import Struct, structs

from moorage.core.admission import bookings, bounds, expiry
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
from moorage.core.admission.draft import Draft, grow
from moorage.core.admission.facts import Answer, Changes, Facts
from moorage.core.admission.model import (
    BOOKED_PRIORITY,
    Cause,
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
    NEVER,
    LeaseRequest,
    Proof,
    check_duration,
    check_proof,
    check_request,
    check_version,
    hold_of,
    in_order,
    known_to,
    lease_of,
    live_lease,
    pools_of,
    ttl_of,
)
from moorage.core.admission.units import is_over, limit_of, units_by_pool
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
    Raises KEY_REUSED, INVALID, POOL_UNKNOWN, UNITS_ABOVE_LIMIT, QUEUE_FULL, and as `bounds`.
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
    return draft.changes, enter(draft, request)


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
    bounds.check_hold(pools_of(facts, found.needs), moment, found, proof, wanted)
    if found.hold_until is not None and (until is None or until > found.hold_until):
        bookings.check_extension(facts, moment.at, found, until)
    held = structs.replace(found, hold=wanted, hold_until=until)
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
    facts: Facts, moment: Moment, lease: LeaseId, proof: Proof, result: Result, detail: str
) -> Answer:
    """Record the outcome of a start, in each of its pools.

    A lease has one outcome: the first report counts, and repeating it changes nothing. It may be
    reported as long as the lease is remembered, however that has ended (a start may outlast its
    hold, or a lost or revoked lease). It is evidence only, and neither frees nor takes units.
    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, INVALID: the lease was never granted,
    OUTCOME_TOLD: another outcome was reported before.
    """
    found = lease_of(facts, lease)
    check_proof(found, proof)
    if found.granted_at is None:
        raise Error(
            Code.INVALID, f"Lease '{lease}' was never granted, so it cannot have an outcome."
        )
    if found.outcome == result:
        return Changes(), lease
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
        )
        for name in units_by_pool(found.needs)
        if (pool := facts.pools.get(name)) is not None
    ]
    told = expiry.known(structs.replace(found, outcome=result), moment)
    return Changes(leases={lease: told}, outcomes=outcomes), lease


def enter(
    draft: Draft, request: LeaseRequest, place: Lease | None = None, before: Lease | None = None
) -> LeaseId:
    """Check a new request and add its ticket.

    Args:
        draft: of the decision; the key is not in use.
        request: the request.
        place: the lease or ticket whose place in line it takes; None: its own.
        before: the lease or ticket that it replaces; None: none.

    Raises as `acquire`, except KEY_REUSED.
    """
    pools = check_request(draft.facts, request)
    bounds.check_asker(pools, request)
    bounds.check_units(draft.facts, pools, request, draft.moment.at)
    if request.booking is not None:
        bookings.check_use(draft.facts, draft.moment.at, request)
    if not request.forced:
        for known in pools:
            pool = draft.pool(known.name)
            bounds.check_queue(draft, pool, request, before)
            bounds.check_labels_sought(pool, request)
    arrival = draft.arrive() if place is None else place.arrival
    ticket = ticket_of(draft, pools, request, arrival)
    if place is not None:
        ticket = placed(ticket, place)
    draft.put(ticket)
    draft.wait(ticket)
    grow(draft, ticket, pools)
    return request.id


def placed(ticket: Lease, old: Lease) -> Lease:
    """Return a ticket with the priority that an operator has given to the one that it replaces."""
    if ticket.booking is not None:
        return ticket
    return structs.replace(ticket, priority=old.priority, priority_asked=old.priority_asked)


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
        keep="keep" in [pool.spec.expire for pool in pools],
        asked_at=draft.moment.at,
        heard_until=request.heard_until,
        allocations=request.allocations,
        priority_asked=None if request.booking is None else request.priority,
        booking=request.booking,
        borrow=request.borrow,
    )
    if ticket.heard_until == draft.moment.alive + ticket.patience:  # no request waits for it
        until = kept_until(draft.moment, ticket)
        present = presence_of(ticket.patience) if ticket.attended and not ticket.pull else 0
        ticket = structs.replace(ticket, heard_until=Instant(until + present))
    return ticket


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
    """Have the lines of a ticket scanned that was passed over: from now on it may be granted."""
    if ticket.attended and not ticket.pull and is_silent(ticket, moment):
        changes.unfinished.update(need.pool for need in ticket.needs)


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
    granted before a request waits for it.

    Raises as `release` and `acquire`, and LEASE_ENDED. INVALID: the lease was made through Boskos
    or the lease proxy, so its holder could not learn of the new one; a forced one cannot be
    requeued.
    """
    new, old = how.new, lease_of(facts, lease)
    check_proof(old, proof)
    if is_foreign(old.owner):
        raise Error(
            Code.INVALID,
            f"Lease '{lease}' was made through Boskos or the lease proxy, and its holder would not"
            f" learn about a new lease: revoke this lease instead.",
        )
    if how.requeue and old.forced and not old.forced_by_operator:
        raise Error(Code.INVALID, f"Lease '{lease}' was forced, so it has no place in line.")
    draft = Draft(facts, moment, wall)
    same_key = how.requeue and new.key == old.key
    again = None if same_key else known_to(facts, new)
    if again is not None:
        return draft.changes, again
    old = live_lease(facts, lease, proof)
    check_version(old, how.version)
    pools = check_request(facts, new)
    bounds.check_asker(pools, new)
    keeps = old.needs == in_order(new.needs) and all(pool.spec.on_retry == "keep" for pool in pools)
    keeps_units = keeps and not how.requeue and old.state == "granted"
    keeps_units = keeps_units and all(pool.booked_until is None for pool in pools)
    held = [slot for slot in facts.slots_of(old.slots) if slot.lease == old.id]
    if keeps_units and _may_keep(facts, old, new, pools) and all(_suits(one, old) for one in held):
        draft.stop(old, "retried")
        ticket = placed(ticket_of(draft, pools, new, draft.arrive()), old)
        draft.pay(ticket)
        draft.start(ticket, held)
        return draft.changes, new.id
    ended = draft.end(old, "retried")
    if same_key:
        draft.put(key_left(ended))
    if new.pull and not how.requeue:
        draft.changes.polled.add(new.id)
    keeps_place = keeps or (how.requeue and old.owner == GOVERNORS)
    enter(draft, new, old if keeps_place else None, old)
    return draft.changes, new.id


def request_again(
    lease: Lease, fresh: LeaseId, key: str, roles: frozenset[str] = frozenset()
) -> LeaseRequest:
    """Return the request that a lease was made from, as a new attempt.

    What an operator has done to it since is not part of it: a move, or a forced grant.
    """
    return LeaseRequest(
        id=fresh,
        owner=lease.owner,
        key=key,
        digest=lease.digest,
        needs=lease.needs,
        priority=lease.priority if lease.priority_asked is None else lease.priority_asked,
        ttl=NEVER if lease.ttl is None else lease.ttl,
        hold=NEVER if lease.hold is None else lease.hold,
        patience=lease.patience,
        labels=lease.labels,
        forced=lease.forced and not lease.forced_by_operator,
        pull=lease.pull,
        attended=lease.attended,
        allocations=lease.allocations,
        roles=roles,
        booking=lease.booking,
        borrow=lease.borrow,
    )


def _suits(slot: Slot, lease: Lease) -> bool:
    """Would a slot be granted to this lease again? Not if it is drained, or has lost its labels."""
    own = (need for need in lease.needs if need.pool == slot.pool)
    return slot.drain is None and any(suits(slot.labels, need.wanted) for need in own)


def _may_keep(facts: Facts, old: Lease, new: LeaseRequest, pools: list[Pool]) -> bool:
    if (old.owner, old.allocations, new.allocations) != (new.owner, None, None) or new.forced:
        return False
    for pool in pools:
        if pool.paused or is_over(pool, limit_of(facts, pool)):
            return False
        left = quota_left(facts, pool, old.owner)
        if left is not None and left < 0:
            return False
    return True
