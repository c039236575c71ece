"""Operations on tickets and leases: ask, poll, renew, release, retry.

Each decision returns its changes and the id of its lease. Grants are made by `admit.py`, once for
all decisions of a batch; the one exception is a `retry` that keeps its units.
"""

from msgspec import structs

from moorage.core.admission import bounds
from moorage.core.admission.bars import lives_on, quota_left
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.late_releases import OWNER
from moorage.core.admission.model import Cause, Lease, Outcome, Pool, Result
from moorage.core.admission.requests import (
    NEVER,
    Ask,
    Proof,
    check_ask,
    check_duration,
    check_proof,
    check_units,
    hold_of,
    in_order,
    pools_of,
    ttl_of,
)
from moorage.core.admission.slot_growth import grow
from moorage.core.admission.slots import is_reserved
from moorage.core.admission.units import is_over, limit_of, units_by_pool
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import DETAIL_LENGTH_MAX, LEASES_KEPT_HOURS
from moorage.core.service_time import Moment

__all__ = [
    "Ask",
    "Proof",
    "ask",
    "ask_again",
    "hold",
    "leave",
    "outcome",
    "poll",
    "release",
    "renew",
    "repeat",
    "retry",
]

Answer = tuple[Changes, LeaseId]


def ask(facts: Facts, moment: Moment, wish: Ask, wall: Instant | None = None) -> Answer:
    """Add a ticket to its lines; `admit` decides whether it is granted at once.

    A repeated key and digest returns the existing lease, ended or not. `wall` is the wall-clock
    time, stored in slots that are made for the ticket; None: it does not matter.
    Raises KEY_REUSED, INVALID, POOL_UNKNOWN, UNITS_ABOVE_LIMIT, QUEUE_FULL, and as `bounds`.
    """
    draft = Draft(facts, moment, moment.at if wall is None else wall)
    return draft.changes, _ask(draft, wish)


def poll(facts: Facts, moment: Moment, lease: LeaseId, until: Instant) -> Answer:
    """Record a poll of a ticket, which is kept until then (alive time).

    A withdrawn ticket stays withdrawn. Raises LEASE_NOT_FOUND.
    """
    found, changes = _found(facts, lease), Changes()
    if found.state != "waiting" or found.heard_until is None:
        return changes, lease
    if until <= moment.alive + found.patience:  # a short poll: the client asks repeatedly
        _live_on(changes, moment, found)
    elif until > found.heard_until:
        changes.heard[lease] = until
    return changes, lease


def repeat(facts: Facts, moment: Moment, lease: LeaseId, until: Instant) -> Answer:
    """Record a repeated request: its ticket is polled, or its lease renewed.

    The first answer may have been lost, and the client counts its TTL from the one that it gets.
    Raises LEASE_NOT_FOUND.
    """
    found = _found(facts, lease)
    if found.state == "granted":
        return _renewed(moment, found), lease
    return poll(facts, moment, lease, until)


def leave(facts: Facts, moment: Moment, lease: LeaseId) -> Answer:
    """Record that a waiting client has disconnected: its ticket has its patience left.

    Raises LEASE_NOT_FOUND.
    """
    found, changes = _found(facts, lease), Changes()
    until = Instant(moment.alive + found.patience)
    if found.state == "waiting" and found.heard_until is not None and until < found.heard_until:
        changes.heard[lease] = until
    return changes, lease


def renew(facts: Facts, moment: Moment, lease: LeaseId, proof: Proof) -> Answer:
    """Renew a lease; a ticket is polled.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED.
    """
    return _renewed(moment, _live(facts, lease, proof)), lease


def release(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    lease: LeaseId,
    proof: Proof,
    cause: Cause = "released",
    detail: str = "",
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
        detail: who or what, for people.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE.
    """
    found = _found(facts, lease)
    check_proof(found, proof)
    draft = Draft(facts, moment, wall)
    if found.state != "ended":
        if cause == "released" and found.state == "waiting":
            cause = "withdrawn"
        elif cause == "released" and found.owner == OWNER and proof.owner is None:
            cause = "revoked"
        draft.end(found, cause, detail[:DETAIL_LENGTH_MAX])
    return draft.changes, lease


def hold(facts: Facts, moment: Moment, lease: LeaseId, proof: Proof, wanted: int | None) -> Answer:
    """Set the time from now after which a lease ends (microseconds); None: no such end.

    A ticket's hold starts with its grant.
    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED, INVALID, HOLD_ABOVE_MAX.
    """
    found = _live(facts, lease, proof)
    if wanted is not None:
        check_duration("hold", wanted)
    bounds.check_hold(pools_of(facts, found.needs), moment, found, proof, wanted)
    until = None
    if wanted is not None and found.state == "granted":
        until = Instant(moment.at + wanted)
    return Changes(leases={lease: structs.replace(found, hold=wanted, hold_until=until)}), lease


def retry(
    facts: Facts, moment: Moment, wall: Instant, lease: LeaseId, proof: Proof, new: Ask
) -> Answer:
    """Release and ask again in one step; the answer is the new lease.

    If the needs are the same and every pool has `on_retry: keep`, a ticket keeps its place in line,
    and a lease keeps its units and slots; it does not wait for pacing, but counts in it. A lease
    goes back to its old place in line if it has `allocations`, a pool is paused, or a limit or
    quota is exceeded. In all other cases the retry goes to the end of the line.
    Raises as `release` and `ask`, and LEASE_ENDED. INVALID: the lease was made through Boskos or
    the lease proxy, so its holder could not learn of the new one.
    """
    old = _found(facts, lease)
    check_proof(old, proof)
    if is_reserved(old.owner):
        raise Error(
            Code.INVALID,
            f"Lease '{lease}' was made through Boskos or the lease proxy, and its holder would not"
            " learn about a new one: revoke it instead.",
        )
    draft = Draft(facts, moment, wall)
    again = _known(facts, new)
    if again is not None:
        return draft.changes, again
    old = _live(facts, lease, proof)
    check_ask(facts, new)
    pools = pools_of(facts, new.needs)
    bounds.check_asker(pools, new)
    keeps = old.needs == in_order(new.needs) and all(pool.spec.on_retry == "keep" for pool in pools)
    if keeps and old.state == "granted" and _may_keep(facts, old, new, pools):
        draft.stop(old, "retried")
        ticket = _ticket(draft, new, draft.arrive())
        held = [slot for slot in facts.slots_of(old.slots) if slot.lease == old.id]
        draft.start(ticket, held, paying=True)
        return draft.changes, new.id
    draft.end(old, "retried")
    _ask(draft, new, old.arrival if keeps else None, old)
    return draft.changes, new.id


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
    found = _found(facts, lease)
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
        Outcome(
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
    return Changes(leases={lease: structs.replace(found, outcome=result)}, outcomes=outcomes), lease


def ask_again(lease: Lease, fresh: LeaseId, key: str, roles: frozenset[str] = frozenset()) -> Ask:
    """Return the request that a lease was made from, as a new attempt."""
    return Ask(
        id=fresh,
        owner=lease.owner,
        key=key,
        digest=lease.digest,
        needs=lease.needs,
        priority=lease.priority,
        ttl=NEVER if lease.ttl is None else lease.ttl,
        hold=NEVER if lease.hold is None else lease.hold,
        patience=lease.patience,
        labels=lease.labels,
        forced=lease.forced,
        pull=lease.pull,
        allocations=lease.allocations,
        roles=roles,
    )


def _ask(
    draft: Draft, wish: Ask, arrival: int | None = None, before: Lease | None = None
) -> LeaseId:
    known = _known(draft.facts, wish)
    if known is not None:
        return known
    check_ask(draft.facts, wish)
    bounds.check_asker(pools_of(draft.facts, wish.needs), wish)
    check_units(draft.facts, wish, draft.moment.at)
    if not wish.forced:
        for name in units_by_pool(wish.needs):
            bounds.check_queue(draft, draft.pool(name), wish, before)
    ticket = _ticket(draft, wish, draft.arrive() if arrival is None else arrival)
    draft.put(ticket)
    draft.wait(ticket)
    grow(draft, ticket)
    return wish.id


def _known(facts: Facts, wish: Ask) -> LeaseId | None:
    """Return the lease that the same request made before. Raises KEY_REUSED."""
    known = facts.asked.get((wish.owner, wish.key))
    if known is not None and facts.leases[known].digest != wish.digest:
        raise Error(
            Code.KEY_REUSED,
            f"Key '{wish.key}' was used for another request: a new attempt needs a new key.",
        )
    return known


def _ticket(draft: Draft, wish: Ask, arrival: int) -> Lease:
    pools = pools_of(draft.facts, wish.needs)
    return Lease(
        id=wish.id,
        owner=wish.owner,
        key=wish.key,
        digest=wish.digest,
        needs=in_order(wish.needs),
        state="waiting",
        priority=wish.priority,
        arrival=arrival,
        ttl=ttl_of(pools, wish.ttl),
        hold=hold_of(pools, wish.hold),
        patience=wish.patience,
        labels=wish.labels,
        forced=wish.forced,
        pull=wish.pull,
        # A lease of the lease proxy must end with its TTL until its caller knows of it.
        keep=wish.owner != OWNER and any(pool.spec.expire == "keep" for pool in pools),
        asked_at=draft.moment.at,
        heard_until=wish.heard_until,
        allocations=wish.allocations,
    )


def _may_keep(facts: Facts, old: Lease, new: Ask, pools: list[Pool]) -> bool:
    if (old.owner, old.allocations, new.allocations) != (new.owner, None, None) or new.forced:
        return False
    for pool in pools:
        if pool.paused or is_over(pool, limit_of(facts, pool)):
            return False
        left = quota_left(facts, pool, old.owner)
        if left is not None and left < 0:
            return False
    return True


def _renewed(moment: Moment, lease: Lease) -> Changes:
    """Extend a lease to its TTL from now, or a ticket to its patience."""
    changes = Changes()
    if lease.state == "waiting":
        _live_on(changes, moment, lease)
    elif lease.ttl is not None and lease.heard_until is not None:
        until = max(lease.heard_until, moment.alive + lease.ttl)
        changes.heard[lease.id] = Instant(until)
    return changes


def _live_on(changes: Changes, moment: Moment, ticket: Lease) -> None:
    until = lives_on(moment, ticket)
    if until is not None:
        changes.heard[ticket.id] = until


def _found(facts: Facts, lease: LeaseId) -> Lease:
    found = facts.leases.get(lease)
    if found is None:
        raise Error(Code.LEASE_NOT_FOUND, unknown_message(lease))
    return found


def _live(facts: Facts, lease: LeaseId, proof: Proof) -> Lease:
    """Return a live lease or ticket. Raises LEASE_NOT_FOUND, LEASE_ENDED and as `check_proof`."""
    found = _found(facts, lease)
    check_proof(found, proof)
    if found.state == "ended":
        raise Error(Code.LEASE_ENDED, ended_message(found))
    return found


def ended_message(lease: Lease) -> str:
    """Return the message that a lease has ended, and why."""
    why = (lease.cause or "").replace("_", " ")
    more = f" ({lease.detail})" if lease.detail else ""
    return f"Lease '{lease.id}' has ended: {why}{more}."


def unknown_message(lease: LeaseId) -> str:
    """Return the message that no lease with this id is remembered."""
    return (
        f"There is no lease '{lease}': it never existed here,"
        f" or it ended more than {LEASES_KEPT_HOURS} hours ago."
    )
