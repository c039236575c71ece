"""Acquiring exactly as in Boskos, including its flaws: to find out whether clients depend on them.

Source of the rules: Boskos' request queue, its code and its observed responses. The operator's own
rules still apply: quota, pacing, cooldown and pause.
"""

from collections.abc import Iterable

from msgspec import structs

from moorage.core.admission import pacing
from moorage.core.admission.admit import order
from moorage.core.admission.bars import bar_of, is_silent, quota_left, silence_ends
from moorage.core.admission.compat.boskos import (
    Acquired,
    AcquireRequest,
    Answer,
    arrive,
    check_owner,
    granted,
    heard,
    nothing,
    pool_of,
)
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import Lease, Pool, Slot
from moorage.core.admission.slots import free, slot_new
from moorage.core.admission.units import free_units, is_free, units_by_pool
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment

REQUEST_TTL = 30 * SECOND
"""A request id that is not polled for this long has no rank."""

GC_PERIOD = 60 * SECOND
"""At every multiple of this, requests without a rank also lose their place."""


def acquire_strict(facts: Facts, moment: Moment, wall: Instant, request: AcquireRequest) -> Answer:
    """Poll for a slot: a request with k-1 live requests before it gets the k-th free slot, if any.

    `facts` contain all tickets of the pool. Raises POOL_UNKNOWN, LIMIT_EXCEEDED.
    """
    pool = pool_of(facts, request)
    draft = Draft(facts, moment, wall)
    if not request.request_id:
        return draft.changes, _at_once(draft, request)
    known = _strict_ticket(facts, request)
    if known is not None and _is_collected(known, moment):
        draft.end(known, "unheard")
        known = None
    if known is None:
        ticket = arrive(draft, request, f"{request.key}/{request.fresh}", REQUEST_TTL + GC_PERIOD)
    elif known.owner == request.holder:
        ticket = heard(draft, known, request, Instant(moment.alive + known.patience))
    else:
        draft.end(known, "withdrawn", f"asked for by {request.holder} from now on")
        key = f"{request.key}/{request.fresh}"
        ticket = arrive(draft, request, key, REQUEST_TTL + GC_PERIOD, before=known)
    slot = _nth(facts, moment, request, _units_before(facts, moment, request, ticket))
    if slot is not None:
        draft.grant(ticket, [slot])
    elif known is None:
        _grow(draft, pool, request)
    return draft.changes, ticket.id


def acquired_strict(facts: Facts, request: AcquireRequest, ticket: LeaseId | None) -> Acquired:
    """Return the result of a poll. Raises NO_CAPACITY: not granted yet; POOL_UNKNOWN: no slots.

    A slot that was made for this very poll does not count.
    """
    found = granted(facts, request, ticket)
    if found is not None:
        return found
    slots = facts.slots[request.pool] if request.pool in facts.pools else {}
    if any(not slot.dynamic or name != request.slot_name for name, slot in slots.items()):
        raise nothing(request.pool)
    raise Error(Code.POOL_UNKNOWN, request.pool)


def take_named(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    request: AcquireRequest,
    names: Iterable[str],
    fresh: Iterable[LeaseId],
) -> tuple[Changes, list[tuple[str, str]] | None]:
    """Take slots by name as Boskos does, ahead of all waiting tickets; return the slots.

    If only some are available, those are granted and the answer is None. Quota, pacing and cooldown
    apply. Arguments are those of `named_or_never`. Raises LIMIT_EXCEEDED.
    """
    check_owner(request.owner)
    wanted = set(names)
    left: dict[str, int] = {}
    found = []
    for slot in free(facts.slots_of(list(facts.slots)), moment.at, request.state):
        if slot.name not in wanted or not is_free(slot, moment.at):
            continue
        units = left.get(slot.pool)
        if units is None:
            there = structs.replace(request, pool=slot.pool)
            units = _permitted(facts, moment, there, _allowed(facts, moment, there))
        if units > 0:
            found.append(slot)
        left[slot.pool] = units - 1
    draft = Draft(facts, moment, wall)
    for slot, lease in zip(found, fresh, strict=False):
        one = structs.replace(request, pool=slot.pool, fresh=lease)
        draft.grant(arrive(draft, one, str(lease), 0), [slot])
    taken = [(slot.pool, slot.name) for slot in found]
    return draft.changes, taken if {slot.name for slot in found} == wanted else None


def _strict_ticket(facts: Facts, request: AcquireRequest) -> Lease | None:
    """Find the ticket of a request id, of any owner."""
    for lease in facts.leases.values():
        if lease.pull and lease.state == "waiting" and lease.digest == request.key:
            return lease
    return None


def _is_collected(ticket: Lease, moment: Moment) -> bool:
    """Has a garbage collection run since a request's time was over?"""
    over = silence_ends(ticket, REQUEST_TTL) or 0
    return over // GC_PERIOD < moment.alive // GC_PERIOD


def _units_before(
    facts: Facts, moment: Moment, request: AcquireRequest, ticket: Lease | None
) -> int:
    """Return the units that live tickets before this one need in its pool and state; None: all."""
    place = None if ticket is None else order(ticket)
    return sum(
        need.units
        for lease in facts.leases.values()
        if lease.state == "waiting"
        and (place is None or order(lease) < place)
        and not (lease.pull and is_silent(lease, moment, REQUEST_TTL))
        and not _is_barred(facts, lease)
        for need in lease.needs
        if need.pool == request.pool and need.state == request.state
    )


def _is_barred(facts: Facts, ticket: Lease) -> bool:
    """Is a ticket passed over, as far as its pools are loaded?"""
    return not ticket.forced and any(
        bar_of(facts, facts.pools[name], ticket.owner, units) is not None
        for name, units in units_by_pool(ticket.needs).items()
        if name in facts.pools
    )


def _allowed(facts: Facts, moment: Moment, request: AcquireRequest) -> int:
    """Return how many slots in the wanted state are free and not in cooldown."""
    return free_units(facts, facts.pools[request.pool], moment.at).get(request.state, 0)


def _permitted(facts: Facts, moment: Moment, request: AcquireRequest, units: int) -> int:
    """Return how many of `units` slots the operator's rules permit, regardless of the line."""
    pool = facts.pools[request.pool]
    if pool.paused:
        return 0
    quota = quota_left(facts, pool, request.holder)
    if quota is not None:
        units = min(units, quota)
    return pacing.permitted(pool, moment.at, units) if units > 0 else 0


def _nth(facts: Facts, moment: Moment, request: AcquireRequest, before: int) -> Slot | None:
    """Return the free slot after `before` others; None: there is none."""
    allowed = _allowed(facts, moment, request)
    if not _permitted(facts, moment, request, allowed):
        return None
    found = free(facts.slots[request.pool].values(), moment.at, request.state)
    return found[before] if before < min(len(found), allowed) else None


def _at_once(draft: Draft, request: AcquireRequest) -> LeaseId | None:
    """Grant a slot that no ticket waits for, or none: a request without an id does not wait."""
    before = _units_before(draft.facts, draft.moment, request, None)
    slot = _nth(draft.facts, draft.moment, request, before)
    if slot is None:
        return None
    return draft.grant(arrive(draft, request, str(request.fresh), 0), [slot]).id


def _grow(draft: Draft, pool: Pool, request: AcquireRequest) -> None:
    """Make another slot for a new request, if the pool may have more."""
    growth, slots = pool.growth, draft.facts.slots[pool.name]
    if growth is not None and len(slots) < growth.most:
        slot = slot_new(pool.name, request.slot_name, growth.state, draft.wall, dynamic=True)
        draft.changes.slots[pool.name, slot.name] = slot
