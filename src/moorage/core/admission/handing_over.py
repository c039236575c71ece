"""Handing a lease over: its holder offers it to another owner, who accepts or declines.

Until the acceptance the giver holds it. The acceptance ends the lease of the giver and starts one
of the receiver in one decision: the units and slots stay occupied, so they are never free and never
counted twice. The new lease has its own id, key and token, so whatever the giver still sends about
its own lease is refused. Nothing starts by it, so it neither waits for pacing nor counts in it.
Source: docs/decisions/0067-handing-over.md.
"""

from msgspec import Struct, structs

from moorage.core.admission import bounds, expiry, leases, superseding
from moorage.core.admission.bars import quota_left
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Answer, Changes, Facts
from moorage.core.admission.model import Lease, Offer, Pool, stops_at, units_held_since
from moorage.core.admission.owners import is_reserved
from moorage.core.admission.requests import (
    LeaseRequest,
    Proof,
    check_request,
    known_to,
    lease_of,
    live_lease,
    request_again,
)
from moorage.core.admission.units import units_by_pool
from moorage.core.clock import SECOND, Instant
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import IDENTIFIER_LENGTH_MAX, OFFER_SECONDS_MAX
from moorage.core.service_time import Moment
from moorage.core.texts import check_plain


class Acceptance(Struct, frozen=True):
    """Who accepts a lease, and as what."""

    owner: str
    key: str
    fresh: LeaseId
    """The id of the new lease."""
    digest: str
    """Of the acceptance: the key stands for it from now on."""
    labels: dict[str, str] = {}
    roles: frozenset[str] = frozenset()
    """See `LeaseRequest.roles`."""


def offer(
    facts: Facts, moment: Moment, lease: LeaseId, proof: Proof, to: str, lasts: int
) -> Answer:
    """Offer a lease to another owner for some time (microseconds); it replaces an earlier offer.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED; INVALID: it waits, it has
    allocations, or it or the receiver belongs to callers that cannot learn of a new lease.
    """
    found = live_lease(facts, lease, proof)
    _check_giver(found)
    _check_receiver(found, to)
    if not 0 < lasts <= OFFER_SECONDS_MAX * SECOND:
        raise Error(Code.INVALID, f"lasts must be above 0 and at most {OFFER_SECONDS_MAX} s.")
    made = Offer(to, moment.at, Instant(moment.at + lasts))
    offered = structs.replace(found, offer=made)
    return Changes(leases={lease: expiry.known(offered, moment)}), lease


def withdraw(facts: Facts, moment: Moment, lease: LeaseId, proof: Proof) -> Answer:
    """Take an offer back; without one nothing changes.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED: also if it was accepted.
    """
    found = live_lease(facts, lease, proof)
    if found.offer is None:
        return Changes(), lease
    return Changes(leases={lease: structs.replace(found, offer=None)}), lease


def decline(facts: Facts, moment: Moment, lease: LeaseId, owner: str) -> Answer:
    """Refuse what is offered; the giver keeps it. Raises LEASE_NOT_FOUND, NOT_OFFERED."""
    found = _offered_to(lease_of(facts, lease), moment, owner)
    return Changes(leases={lease: structs.replace(found, offer=None)}), lease


def accept(facts: Facts, moment: Moment, wall: Instant, lease: LeaseId, how: Acceptance) -> Answer:
    """Take a lease over; the answer is the new lease of the receiver.

    It ends when the hold of the old one would have ended, and keeps its record, its outcome and its
    labels, unless the receiver gives others. It need not be confirmed: its units must not become
    free. A repeated key returns the same lease, and renews it, because the answer may have been
    lost. The pools may be paused or over their limits: nothing more is occupied than before.
    It stays in its group if that is the receiver's, too; see `_grouped`.

    Args:
        facts: with the lease, its pools, the lease of the receiver's key, and the units that the
            receiver has in pools with a quota.
        moment: now.
        wall: wall-clock time, stored in slots.
        lease: of the giver.
        how: who accepts it.

    Raises LEASE_NOT_FOUND, NOT_OFFERED, KEY_REUSED, INVALID, ASKER_REFUSED, QUOTA_EXCEEDED.
    """
    old = lease_of(facts, lease)
    new = _request_for(old, how)
    known = known_to(facts, new)
    if known is not None:
        return leases.repeat(facts, moment, known, Instant(moment.alive + old.patience))
    _offered_to(old, moment, how.owner)
    for pool in check_request(facts, new):
        bounds.check_may_have(pool, new)
        _check_quota(facts, pool, new)
    draft = Draft(facts, moment, wall)
    held = [slot for slot in facts.slots_of(old.slots) if slot.lease == old.id]
    draft.stop(structs.replace(old, offer=None), "handed_over", f"to {how.owner}")
    draft.start(draft.take_over(_taken(old, draft, how), old), held)
    started = draft.changes.leases[how.fresh]
    assert started is not None
    heard_until = started.heard_until if old.kept is None else None
    draft.put(structs.replace(started, hold_until=old.hold_until, heard_until=heard_until))
    return draft.changes, how.fresh


def is_offered(lease: Lease, at: Instant) -> bool:
    """May an offer of this lease be accepted at a service time? Not once its hold is over."""
    made, ends = lease.offer, lease.hold_until
    if made is None or lease.state != "granted":
        return False
    return at < made.until and (ends is None or at < ends)


def is_offered_to(lease: Lease, at: Instant, owner: str) -> bool:
    """May this owner accept a lease at a service time?"""
    return is_offered(lease, at) and lease.offer is not None and lease.offer.to == owner


def _request_for(old: Lease, how: Acceptance) -> LeaseRequest:
    """Return an acceptance as a request: for what the lease has, whatever else it was asked for."""
    again = request_again(old, how.fresh, how.key, how.roles)
    return structs.replace(
        again.only(old.needs),
        owner=how.owner,
        digest=how.digest,
        labels=how.labels,
        ttl=None,
        hold=None,
    )


def _taken(old: Lease, draft: Draft, how: Acceptance) -> Lease:
    """Return the new lease before its start: all that was the giver's own is gone."""
    return structs.replace(
        _grouped(old, how.owner),
        id=how.fresh,
        owner=how.owner,
        key=how.key,
        digest=how.digest,
        labels=how.labels,
        state="waiting",
        arrival=draft.arrive(),
        asked_at=draft.moment.at,
        attended=False,
        pull=False,
        confirm_by=None,
        offer=None,
        taken_from=old.id,
        held_since=units_held_since(old),
    )


def _grouped(lease: Lease, owner: str) -> Lease:
    """Return a lease as it is in the groups of another owner.

    It leaves its group if the group of this name is another one there: the receiver did not ask for
    that one. What was promised to a newer request stays: a lease whose holder is asked to stop ends
    in time, also in other hands.
    """
    if superseding.key_of(lease) == superseding.group_key(owner, lease.group):
        return lease
    promised = lease.stop_until is not None and lease.preempted_by is None
    newer = lease.superseded_by if promised else None
    return structs.replace(lease, group="", superseded_by=newer)


def _offered_to(lease: Lease, moment: Moment, owner: str) -> Lease:
    """Return a lease that is offered to this owner. Raises NOT_OFFERED.

    What should have ended by now is not: the new lease would live on until the next sweep.
    """
    stops = stops_at(lease, moment.at - moment.alive)
    if is_offered_to(lease, moment.at, owner) and (stops is None or moment.at < stops):
        return lease
    why = " any more" if lease.offer is not None and lease.offer.to == owner else ""
    raise Error(Code.NOT_OFFERED, f"Lease '{lease.id}' is not offered to '{owner}'{why}.")


def _check_giver(lease: Lease) -> None:
    if lease.state == "waiting":
        raise Error(
            Code.INVALID, f"Lease '{lease.id}' is not granted yet, so it cannot be handed over."
        )
    if is_reserved(lease.owner):
        raise Error(
            Code.INVALID,
            f"Lease '{lease.id}' was made through Boskos, the lease proxy or a governor, which"
            " would not learn that it was handed over: revoke it instead.",
        )
    if lease.allocations is not None:
        raise Error(
            Code.INVALID,
            f"Lease '{lease.id}' has allocations, which belong to its project, so it cannot be"
            " handed over.",
        )


def _check_receiver(lease: Lease, to: str) -> None:
    if not 1 <= len(to) <= 2 * IDENTIFIER_LENGTH_MAX + 1:
        raise Error(Code.INVALID, "to must name an owner.")
    check_plain("to", to)
    if is_reserved(to) or "*" in to:
        raise Error(Code.INVALID, f"'{to}' is not one owner who could accept a lease.")
    if to == lease.owner:
        raise Error(Code.INVALID, f"Lease '{lease.id}' belongs to '{to}' already.")


def _check_quota(facts: Facts, pool: Pool, new: LeaseRequest) -> None:
    left, units = quota_left(facts, pool, new.owner), units_by_pool(new.needs)[pool.name]
    if left is not None and units > left:
        raise Error(
            Code.QUOTA_EXCEEDED,
            f"'{new.owner}' may have only {counted(max(0, left), 'more unit')} of pool"
            f" '{pool.name}' (quota {pool.spec.quota}), and this lease has {units}.",
        )
