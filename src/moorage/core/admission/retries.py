"""Retries: release a lease and ask for the same again, in one step."""

from msgspec import Struct

from moorage.core.admission import bounds
from moorage.core.admission.bars import quota_left
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.leases import enter, placed, ticket_of
from moorage.core.admission.model import Lease, Pool, Slot, key_left
from moorage.core.admission.owners import GOVERNORS, is_foreign
from moorage.core.admission.requests import (
    NEVER,
    LeaseRequest,
    Proof,
    check_proof,
    check_request,
    check_version,
    in_order,
    known_to,
    lease_of,
    live_lease,
    pools_of,
)
from moorage.core.admission.units import is_over, limit_of
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.labels import cut_to_fit
from moorage.core.service_time import Moment
from moorage.core.wishes import suits

Answer = tuple[Changes, LeaseId]


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
    goes back to its old place in line if it has `allocations`, a pool is paused, or a limit or
    quota is exceeded. In all other cases the retry goes to the end of the line.

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
            " learn about a new one: revoke it instead.",
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
    check_request(facts, new)
    pools = pools_of(facts, new.needs)
    bounds.check_asker(pools, new)
    keeps = old.needs == in_order(new.needs) and all(pool.spec.on_retry == "keep" for pool in pools)
    keeps_units = keeps and not how.requeue and old.state == "granted"
    held = [slot for slot in facts.slots_of(old.slots) if slot.lease == old.id]
    if keeps_units and _may_keep(facts, old, new, pools) and all(_suits(one, old) for one in held):
        draft.stop(old, "retried")
        ticket = placed(ticket_of(draft, new, draft.arrive()), old)
        draft.start(ticket, held, paying=True)
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
        labels=cut_to_fit(lease.labels),  # leases of earlier builds may have more
        forced=lease.forced and not lease.forced_by_operator,
        pull=lease.pull,
        attended=lease.attended,
        allocations=lease.allocations,
        roles=roles,
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
