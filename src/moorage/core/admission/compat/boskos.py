"""Acquiring as in Boskos: by polling, with a request id that keeps the client's place.

A waiting client is a pull ticket in the pool's one line; a holder has a lease without renewals, as
in Boskos. There are two modes. *Safe*, here: `admit` grants a ticket like any other, when it is
polled, and a repeated request returns the slot of the first. *Strict*: exactly as Boskos, see
`boskos_strict.py`.
"""

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct, structs

from moorage.core.admission.bars import lives_on
from moorage.core.admission.bounds import is_full
from moorage.core.admission.draft import Draft, grow
from moorage.core.admission.facts import Changes, Facts, Immediate
from moorage.core.admission.model import Lease, Need, Pool, Slot, key_left
from moorage.core.admission.owners import BOSKOS
from moorage.core.admission.slots import free
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import IDENTIFIER_LENGTH_MAX, KEY_LENGTH_MAX
from moorage.core.service_time import Moment
from moorage.core.texts import check_plain

Answer = tuple[Changes, LeaseId | None]

SAFE_PATIENCE = 30 * SECOND
"""A ticket that is not polled for this long is withdrawn; it is passed over long before."""

RETRY_WINDOW = 60 * SECOND
"""For this long after a grant, the same owner and request id get the same slot: the answer may have
been lost. Later they are a new request."""

AGAIN_MAX = 4
"""Slots that one request id can occupy at the same time, except in strict mode."""


class AcquireRequest(Struct, frozen=True):
    """One call of acquire, and the identifiers of what it may create."""

    pool: str
    state: str
    dest: str
    owner: str
    request_id: str
    """Empty: the request is not remembered."""
    fresh: LeaseId
    slot_name: str
    """The name of a slot that its pool may make for it."""
    attended: bool = False
    """It will be known whether the answer was read, so a grant must be confirmed."""

    @property
    def key(self) -> str:
        """The identity of the request: Boskos has a queue for each type and state."""
        # All three come from the client and may contain slashes.
        parts = (self.pool, self.state, self.request_id)
        key = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)
        if len(key) <= KEY_LENGTH_MAX - 40:
            return key
        return blake2b(key.encode(), digest_size=32).hexdigest()

    @property
    def keys(self) -> list[str]:
        """The idempotency keys of its tickets.

        There are several: a request id may acquire again while it occupies earlier slots.
        """
        return [f"{self.key}/{n}" for n in range(AGAIN_MAX)] if self.request_id else []

    @property
    def asked(self) -> set[tuple[str, str]]:
        """The pairs that `Keys.asked` must contain."""
        return {(self.holder, key) for key in self.keys}

    @property
    def holder(self) -> str:
        """The owner of its lease."""
        return BOSKOS + self.owner


class Acquired(Struct, frozen=True):
    """A slot, and the microseconds from the request to its grant."""

    slot: Slot
    waited: int


def acquire_safe(facts: Facts, moment: Moment, wall: Instant, request: AcquireRequest) -> Answer:
    """Poll for a slot. Returns the ticket, which `admit` may grant; None: there is none.

    `facts` contain what `AcquireRequest.asked` names. Requests without an id use `now_or_never`.
    Raises POOL_UNKNOWN: there is no such type; LIMIT_EXCEEDED.
    """
    pool = pool_of(facts, request)
    draft = Draft(facts, moment, wall)
    asked = ((key, facts.asked.get((request.holder, key))) for key in request.keys)
    known = {key: facts.leases[lease] for key, lease in asked if lease is not None}
    # Check all keys first: an earlier one may have ended while a later one waits.
    for lease in known.values():
        if lease.state == "waiting":
            until = lives_on(moment, lease)
            return draft.changes, heard(draft, lease, request, until).id
        if lease.state == "granted" and _is_young(moment, lease, request):
            return draft.changes, lease.id
    for key in request.keys:
        before = known.get(key)
        if before is not None and before.state == "granted":
            continue
        if is_full(draft, pool):
            break
        if before is not None:  # it stays in the history under another key
            draft.put(key_left(before))
        ticket = arrive(draft, request, key, SAFE_PATIENCE)
        grow(draft, ticket, [pool])
        return draft.changes, ticket.id
    return draft.changes, None


def acquired(facts: Facts, request: AcquireRequest, ticket: LeaseId | None) -> Acquired:
    """Return the result of a poll, after all grants of its batch.

    Raises NO_CAPACITY: not granted yet; POOL_UNKNOWN: the type has no slots at all.
    """
    found = granted(facts, request, ticket)
    if found is not None:
        return found
    pool = facts.pools.get(request.pool)
    if pool is None:  # deleted later in the same batch
        raise Error(Code.POOL_UNKNOWN, request.pool)
    if facts.slots[request.pool] or (pool.growth is not None and pool.growth.most):
        raise nothing(request.pool)
    raise Error(Code.POOL_UNKNOWN, request.pool)


def granted(facts: Facts, request: AcquireRequest, ticket: LeaseId | None) -> Acquired | None:
    """Return what a poll got; None: nothing yet."""
    lease = None if ticket is None else facts.leases.get(ticket)
    if lease is not None and lease.state == "granted":
        (name,) = lease.slots[request.pool]
        waited = (lease.granted_at or lease.asked_at) - lease.asked_at
        return Acquired(facts.slots[request.pool][name], waited)
    return None


def now_or_never(facts: Facts, moment: Moment, request: AcquireRequest) -> Immediate:
    """Return the request for a slot without waiting: waiting needs a request id.

    Raises POOL_UNKNOWN, LIMIT_EXCEEDED.
    """
    pool_of(facts, request)
    return Immediate((_ticket(moment, request, str(request.fresh), 0),))


def named_or_never(
    facts: Facts,
    moment: Moment,
    request: AcquireRequest,
    names: Iterable[str],
    fresh: Iterable[LeaseId],
) -> Immediate:
    """Return the request for slots by name, all of them or none, each with a separate lease.

    Args:
        facts: with the pools of the slots.
        moment: now.
        request: the state they must be in, their new state, and the owner.
        names: of the slots.
        fresh: identifiers, one for each name.

    Raises NO_CAPACITY: one of them is not free; LIMIT_EXCEEDED.
    """
    check_owner(request.owner)
    found = _named(facts, moment, request, names)
    tickets = [
        _ticket(moment, structs.replace(request, pool=slot.pool, fresh=lease), str(lease), 0)
        for slot, lease in zip(found, fresh, strict=False)
    ]
    return Immediate(tuple(tickets), tuple(slot.name for slot in found))


def _named(
    facts: Facts, moment: Moment, request: AcquireRequest, names: Iterable[str]
) -> list[Slot]:
    """Return the slots with these names, the longest free first. Raises NO_CAPACITY."""
    wanted = set(names)
    idle = free(facts.slots_of(list(facts.slots)), moment.at, request.state)
    found = [slot for slot in idle if slot.name in wanted]
    if len(found) < len(wanted):
        raise nothing(request.state)
    return found


def nothing(what: str) -> Error:
    """Return the error for a client that is to ask again."""
    return Error(Code.NO_CAPACITY, f"no available resource {what}, try again later.")


def check_owner(owner: str) -> None:
    """Raise LIMIT_EXCEEDED for an owner's name that is too long, INVALID for control characters."""
    if len(owner) > IDENTIFIER_LENGTH_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED, f"an owner's name has at most {IDENTIFIER_LENGTH_MAX} characters"
        )
    check_plain("an owner's name", owner)


def pool_of(facts: Facts, request: AcquireRequest) -> Pool:
    """Return the pool of a type. Raises POOL_UNKNOWN, LIMIT_EXCEEDED."""
    check_owner(request.owner)
    pool = facts.pools.get(request.pool)
    if pool is None or pool.spec.limit is not None:
        raise Error(Code.POOL_UNKNOWN, request.pool)
    return pool


def arrive(
    draft: Draft, request: AcquireRequest, key: str, patience: int, before: Lease | None = None
) -> Lease:
    """Add a ticket at the end of the line, or in the place of an earlier ticket."""
    ticket = structs.replace(
        _ticket(draft.moment, request, key, patience),
        arrival=draft.arrive() if before is None else before.arrival,
        asked_at=draft.moment.at if before is None else before.asked_at,
    )
    return draft.join(ticket, None if before is None else before.place)


def _ticket(moment: Moment, request: AcquireRequest, key: str, patience: int) -> Lease:
    """Return a ticket that has not arrived yet."""
    return Lease(
        id=request.fresh,
        owner=request.holder,
        key=key,
        digest=request.key,
        needs=(Need(request.pool, 1, request.state, request.dest),),
        state="waiting",
        priority=0,
        arrival=0,
        ttl=None,
        hold=None,
        patience=patience,
        labels={},
        forced=False,
        pull=True,
        attended=request.attended,
        keep=True,
        asked_at=moment.at,
        heard_until=Instant(moment.alive + patience),
    )


def heard(draft: Draft, ticket: Lease, request: AcquireRequest, until: Instant | None) -> Lease:
    """Record a poll; the `dest` of the latest poll counts.

    `until` is the new deadline of the ticket; None: it stays the same.
    """
    needs = (Need(request.pool, 1, request.state, request.dest),)
    polled = structs.replace(ticket, needs=needs, heard_until=until or ticket.heard_until)
    if needs != ticket.needs:
        draft.put(polled)
    elif until is not None:
        draft.changes.heard[ticket.id] = until
    return polled


def _is_young(moment: Moment, lease: Lease, request: AcquireRequest) -> bool:
    """Is this the same request again, so soon that the first answer may have been lost?"""
    return (
        lease.needs == (Need(request.pool, 1, request.state, request.dest),)
        and lease.granted_at is not None
        and moment.at - lease.granted_at <= RETRY_WINDOW
    )
