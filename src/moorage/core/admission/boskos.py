"""Acquiring as Boskos does it: by polling, with a request id that keeps one's place.

A waiting client is a pull ticket in the pool's one line; who holds a slot has a lease that nobody
need renew, as in Boskos. There are two ways. *Safe*: a ticket is granted by `admit` like any other,
in a poll of its own, and a repeated request gets what the first one got. *Strict*: to the letter of
Boskos. Source of its rules: Boskos' request queue, by its code and by what was seen on the wire.
"""

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct, structs

from moorage.core.admission import pacing
from moorage.core.admission.admit import order
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.growing import grow
from moorage.core.admission.model import SECOND, Lease, Moment, Need, Pool, Slot
from moorage.core.admission.roster import slot_new
from moorage.core.admission.rules import (
    PULL_SILENCE,
    bar_of,
    is_silent,
    quota_left,
    silence_ends,
)
from moorage.core.admission.slots import BOSKOS, free
from moorage.core.admission.units import free_units, units_by_pool
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import KEY_LENGTH_MAX, VOCABLE_LENGTH_MAX

Answer = tuple[Changes, LeaseId | None]

SAFE_PATIENCE = 30 * SECOND
"""A ticket that is not polled for so long is withdrawn; it is passed over long before."""

RETRY_WINDOW = 60 * SECOND
"""So long after its grant the same owner and request id are told the same slot: the answer may have
been lost. Later they are a new request."""

REQUEST_TTL = 30 * SECOND
"""A request id that is not polled for so long has no rank."""

AGAIN_MAX = 4
"""Slots that one request id can hold at the same time, unless strict."""

GC_PERIOD = 60 * SECOND
"""At every multiple of it requests without a rank lose their place, too."""


class Wish(Struct, frozen=True):
    """One call of acquire, and the identifiers for what it may make."""

    pool: str
    state: str
    dest: str
    owner: str
    request_id: str
    """Empty: it is not remembered."""
    fresh: LeaseId
    slot_name: str
    """Of a slot that its pool may make for it."""

    @property
    def key(self) -> str:
        """Which request it is: Boskos keeps a queue for each type and state."""
        # All three come from the client, and may contain a slash.
        parts = (self.pool, self.state, self.request_id)
        key = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)
        if len(key) <= KEY_LENGTH_MAX - 40:
            return key
        return blake2b(key.encode(), digest_size=32).hexdigest()

    @property
    def keys(self) -> list[str]:
        """The idempotency keys of its tickets.

        More than one: a request id that was served may ask again while it holds what it got.
        """
        return [f"{self.key}/{n}" for n in range(AGAIN_MAX)] if self.request_id else []

    @property
    def asked(self) -> set[tuple[str, str]]:
        """What `Keys.asked` must name."""
        return {(self.holder, key) for key in self.keys}

    @property
    def holder(self) -> str:
        """The owner of its lease."""
        return BOSKOS + self.owner


class Acquired(Struct, frozen=True):
    """A slot, and for how many microseconds it was waited for."""

    slot: Slot
    waited: int


def acquire_safe(facts: Facts, moment: Moment, wall: Instant, wish: Wish) -> Answer:
    """Poll for a slot. The answer is the ticket, which `admit` may grant; None: there is none.

    `facts` have what `Wish.asked` names; without a request id everything that waits in the pool.
    Raises POOL_UNKNOWN: there is no such type; LIMIT_EXCEEDED.
    """
    pool = _pool(facts, wish)
    draft = Draft(facts, moment, wall)
    if not wish.request_id:
        return draft.changes, _at_once(draft, wish, PULL_SILENCE)
    for key in wish.keys:
        known = facts.asked.get((wish.holder, key))
        lease = None if known is None else facts.leases[known]
        if lease is not None and lease.state == "waiting":
            return draft.changes, _heard(draft, lease, wish).id
        if lease is not None and lease.state == "granted":
            if _is_young(moment, lease, wish):
                return draft.changes, lease.id
            continue
        if pool.waiting >= pool.spec.queue_max:
            break
        if lease is not None:
            draft.changes.leases[lease.id] = None
        ticket = _arrive(draft, wish, key, SAFE_PATIENCE)
        grow(draft, ticket)
        return draft.changes, ticket.id
    return draft.changes, None


def acquire_strict(facts: Facts, moment: Moment, wall: Instant, wish: Wish) -> Answer:
    """Poll for a slot: the k-th free one for whom k-1 live requests come before, or none.

    `facts` have everything that waits in the pool. Raises POOL_UNKNOWN, LIMIT_EXCEEDED.
    """
    pool = _pool(facts, wish)
    draft = Draft(facts, moment, wall)
    if not wish.request_id:
        return draft.changes, _at_once(draft, wish, REQUEST_TTL)
    known = _strict_ticket(facts, wish)
    if known is not None and _is_collected(known, moment):
        draft.end(known, "unheard")
        known = None
    if known is None:
        ticket = _arrive(draft, wish, f"{wish.key}/{wish.fresh}", REQUEST_TTL + GC_PERIOD)
    elif known.owner == wish.holder:
        ticket = _heard(draft, known, wish)
    else:
        draft.end(known, "withdrawn", f"asked for by {wish.holder} from now on")
        key = f"{wish.key}/{wish.fresh}"
        ticket = _arrive(draft, wish, key, REQUEST_TTL + GC_PERIOD, before=known)
    slot = _nth(facts, moment, wish, _units_before(facts, moment, wish, ticket, REQUEST_TTL))
    if slot is not None:
        draft.grant(ticket, [slot])
    elif known is None:
        _grow(draft, pool, wish)
    return draft.changes, ticket.id


def acquired(facts: Facts, wish: Wish, ticket: LeaseId | None, *, strict: bool) -> Acquired:
    """Return what became of a poll, after all grants of its batch.

    Raises NO_CAPACITY: nothing yet; POOL_UNKNOWN: the type has no slots at all.
    """
    lease = None if ticket is None else facts.leases[ticket]
    if lease is not None and lease.state == "granted":
        (name,) = lease.slots[wish.pool]
        waited = (lease.granted_at or lease.asked_at) - lease.asked_at
        return Acquired(facts.slots[wish.pool][name], waited)
    growth = facts.pools[wish.pool].growth
    there = [
        name
        for name, slot in facts.slots[wish.pool].items()
        if not (strict and slot.dynamic and name == wish.slot_name)
    ]
    if there or (growth is not None and growth.most and not strict):
        raise _nothing(wish.pool)
    raise Error(Code.POOL_UNKNOWN, wish.pool)


def acquire_named(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    wish: Wish,
    names: Iterable[str],
    fresh: Iterable[LeaseId],
    *,
    strict: bool,
) -> tuple[Changes, list[tuple[str, str]] | None]:
    """Take slots by their names, each by a lease of its own; the answer are the slots.

    Strict keeps what could be had when something could not, and then answers None.

    Args:
        facts: with the pools of the slots.
        moment: now.
        wall: the time that slots are told in.
        wish: the state they must be in, what they become, and who asks. Quota, pacing and cooldown
            hold for it as for any other.
        names: of the slots.
        fresh: identifiers, one for each name.
        strict: as above.

    Raises:
        Error: NO_CAPACITY: not all of them could be had; nothing was taken. LIMIT_EXCEEDED.
    """
    check_owner(wish.owner)
    wanted = set(names)
    left: dict[str, int] = {}
    found = []
    for slot in free(facts.slots_of(list(facts.slots)), wish.state):
        if slot.name not in wanted:
            continue
        units = left.get(slot.pool)
        if units is None:
            there = structs.replace(wish, pool=slot.pool)
            units = _permitted(facts, moment, there, _allowed(facts, moment, there))
        if units > 0:
            found.append(slot)
        left[slot.pool] = units - 1
    short = {slot.name for slot in found} != wanted
    if short and not strict:
        raise _nothing(wish.state)
    draft = Draft(facts, moment, wall)
    for slot, lease in zip(found, fresh, strict=False):
        one = structs.replace(wish, pool=slot.pool, fresh=lease)
        draft.grant(_arrive(draft, one, str(lease), 0), [slot])
    taken = [(slot.pool, slot.name) for slot in found]
    return draft.changes, None if short else taken


def _nothing(what: str) -> Error:
    return Error(Code.NO_CAPACITY, f"no available resource {what}, try again later.")


def check_owner(owner: str) -> None:
    """Raise LIMIT_EXCEEDED if an owner's name is longer than any that can be kept."""
    if len(owner) > VOCABLE_LENGTH_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED, f"an owner's name has at most {VOCABLE_LENGTH_MAX} characters"
        )


def _pool(facts: Facts, wish: Wish) -> Pool:
    check_owner(wish.owner)
    pool = facts.pools.get(wish.pool)
    if pool is None or pool.spec.limit is not None:
        raise Error(Code.POOL_UNKNOWN, wish.pool)
    return pool


def _arrive(
    draft: Draft, wish: Wish, key: str, patience: int, before: Lease | None = None
) -> Lease:
    """Let a ticket stand at the end of the line, or in the place of one that was there before."""
    moment = draft.moment
    ticket = Lease(
        id=wish.fresh,
        owner=wish.holder,
        key=key,
        digest=wish.key,
        needs=(Need(wish.pool, 1, wish.state, wish.dest),),
        state="waiting",
        priority=0,
        arrival=draft.arrive() if before is None else before.arrival,
        ttl=None,
        hold=None,
        patience=patience,
        labels={},
        forced=False,
        pull=True,
        keep=True,
        asked_at=moment.at if before is None else before.asked_at,
        heard_until=Instant(moment.alive + patience),
    )
    draft.put(ticket)
    draft.wait(ticket)
    return ticket


def _heard(draft: Draft, ticket: Lease, wish: Wish) -> Lease:
    """Note that a client polls; what its slot becomes is what it said last."""
    until = Instant(draft.moment.alive + ticket.patience)
    needs = (Need(wish.pool, 1, wish.state, wish.dest),)
    heard = structs.replace(ticket, needs=needs, heard_until=until)
    if needs == ticket.needs:
        draft.changes.heard[ticket.id] = until
    else:
        draft.put(heard)
    return heard


def _is_young(moment: Moment, lease: Lease, wish: Wish) -> bool:
    """May the answer that granted this lease have been lost, and is this the same request again?"""
    return (
        lease.needs == (Need(wish.pool, 1, wish.state, wish.dest),)
        and lease.granted_at is not None
        and moment.at - lease.granted_at <= RETRY_WINDOW
    )


def _strict_ticket(facts: Facts, wish: Wish) -> Lease | None:
    """Find the ticket of a request id, whoever asked first."""
    for lease in facts.leases.values():
        if lease.pull and lease.state == "waiting" and lease.digest == wish.key:
            return lease
    return None


def _is_collected(ticket: Lease, moment: Moment) -> bool:
    """Has a round of the collection come by since a request's time was over?"""
    over = silence_ends(ticket, REQUEST_TTL) or 0
    return over // GC_PERIOD < moment.alive // GC_PERIOD


def _units_before(
    facts: Facts, moment: Moment, wish: Wish, ticket: Lease | None, silence: int
) -> int:
    """Return what live waiters before a ticket want of its pool and state; None: all of them."""
    place = None if ticket is None else order(ticket)
    return sum(
        need.units
        for lease in facts.leases.values()
        if lease.state == "waiting"
        and (place is None or order(lease) < place)
        and not (lease.pull and is_silent(lease, moment, silence))
        and not _is_barred(facts, lease)
        for need in lease.needs
        if need.pool == wish.pool and need.state == wish.state
    )


def _is_barred(facts: Facts, ticket: Lease) -> bool:
    """Is a ticket passed over, as far as its pools are known here?"""
    return not ticket.forced and any(
        bar_of(facts, facts.pools[name], ticket, units) is not None
        for name, units in units_by_pool(ticket.needs).items()
        if name in facts.pools
    )


def _allowed(facts: Facts, moment: Moment, wish: Wish) -> int:
    """Return how many slots limit and cooldown leave in the state that is wanted."""
    return free_units(facts, facts.pools[wish.pool], moment.at).get(wish.state, 0)


def _permitted(facts: Facts, moment: Moment, wish: Wish, units: int) -> int:
    """Return how many of so many slots an operator's rules leave to who asks, whoever waits."""
    pool = facts.pools[wish.pool]
    if pool.paused:
        return 0
    quota = quota_left(facts, pool, wish.holder)
    if quota is not None:
        units = min(units, quota)
    return pacing.permitted(pool, moment.at, units) if units > 0 else 0


def _nth(facts: Facts, moment: Moment, wish: Wish, before: int) -> Slot | None:
    """Return the slot that is left when so many others are spoken for; None: there is none."""
    allowed = _allowed(facts, moment, wish)
    if not _permitted(facts, moment, wish, allowed):
        return None
    found = free(facts.slots[wish.pool].values(), wish.state)
    return found[before] if before < min(len(found), allowed) else None


def _at_once(draft: Draft, wish: Wish, silence: int) -> LeaseId | None:
    """Grant a slot that nobody waits for, or nothing: who has no request id does not wait."""
    before = _units_before(draft.facts, draft.moment, wish, None, silence)
    slot = _nth(draft.facts, draft.moment, wish, before)
    if slot is None:
        return None
    return draft.grant(_arrive(draft, wish, str(wish.fresh), 0), [slot]).id


def _grow(draft: Draft, pool: Pool, wish: Wish) -> None:
    """Make one more slot for a new request, if the pool may have more."""
    growth, slots = pool.growth, draft.facts.slots[pool.name]
    if growth is not None and len(slots) < growth.most:
        slot = slot_new(pool.name, wish.slot_name, growth.state, draft.wall, dynamic=True)
        draft.changes.slots[pool.name, slot.name] = slot
