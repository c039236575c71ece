"""Requests to admission: for units, a holder's proof; their checks, and their leases."""

from collections.abc import Iterable, Sequence
from enum import Enum
from operator import attrgetter
from typing import Final, Literal

from msgspec import Struct, structs

from moorage.core.admission.alternatives import completed, lined_up
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import FREE, LEASED, Choice, FencingToken, Lease, Need, Pool
from moorage.core.admission.owners import is_reserved
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import BookingId, LeaseId
from moorage.core.labels import check_labels
from moorage.core.limits import (
    ASKED_BYTES_MAX,
    DURATION_SECONDS_MAX,
    GRACE_SECONDS_MAX,
    KEY_LENGTH_MAX,
    MAX_INT,
    NEEDS_MAX,
    PATIENCE_SECONDS_MAX,
    PRIORITY_MAX,
    TTL_SECONDS_MIN,
)
from moorage.core.texts import check_plain
from moorage.core.wishes import labels_of
from moorage.wire.defaults import PATIENCE_SECONDS

PATIENCE = round(PATIENCE_SECONDS * SECOND)
"""How long a ticket waits between two polls, unless the request says otherwise."""


class _Sentinel(Enum):
    NEVER = "never"


NEVER: Final = _Sentinel.NEVER
"""A TTL or hold: none at all, whatever the pools' defaults are."""

# Unlike generators and lambdas, these run without a frame: every request comes here.
_PLACE = attrgetter("pool", "state")
_STATES = attrgetter("state", "dest")
_WANTED = attrgetter("wanted")
_TTL = attrgetter("spec.ttl")
_EXPIRE = attrgetter("spec.expire")

Term = int | Literal[_Sentinel.NEVER] | None
"""Microseconds; None: the shortest of the pools' defaults."""


class LeaseRequest(Struct, frozen=True):
    """A request for units of one or more pools, all or none. Times are microseconds.

    With `alternatives` it is for all units of any one of them, and `needs` are its lines.
    """

    owner: str
    key: str
    needs: tuple[Need, ...]
    ttl: Term = None
    hold: Term = None
    priority: int = 0
    labels: dict[str, str] = {}
    patience: int = PATIENCE
    forced: bool = False
    pull: bool = False
    reopen: bool = False
    """If the lease of its key has ended, make a new one."""
    allocations: str | None = None
    """The allocations that its lease takes from the ledger; opaque here."""
    attended: bool = False
    """It is known whether its client is there, see `Lease.attended`."""
    heard_until: Instant | None = None
    """Alive time until which its ticket waits without a poll; None: for ever."""
    group: str = ""
    """The group of which only the newest request waits; empty: none."""
    cancel_running: bool = False
    """Also ask the holders of earlier leases of the group to stop."""
    roles: frozenset[str] = frozenset()
    """The roles whose rights the caller has, see `wire.enums.LadderRole`."""
    alternatives: tuple[tuple[Need, ...], ...] = ()
    in_order: bool = False
    """The first alternative that fits is granted; otherwise the least loaded one."""
    preemptible: int | None = None
    """The grace of a holder who may be asked to stop for other tickets; None: it may not."""
    booking: BookingId | None = None
    """The booking whose units it is for."""
    borrow: int | None = None
    """See `Lease.borrow`."""
    id: LeaseId = LeaseId("")
    """Of the lease, if a new one is made."""
    digest: str = ""
    """Of the request, without the labels that describe the caller (`wire.labels`)."""

    def heard(self, until: Instant) -> "LeaseRequest":
        """Return the same request with this `heard_until`."""
        return structs.replace(self, heard_until=until)

    def only(self, needs: tuple[Need, ...]) -> "LeaseRequest":
        """Return the same request for one of its alternatives."""
        return structs.replace(self, needs=needs, alternatives=())

    def any_of(
        self, alternatives: Sequence[Iterable[Need]], *, in_order: bool = False
    ) -> "LeaseRequest":
        """Return the same request for its needs together with any of these. Raises INVALID.

        A single alternative is no choice: its needs are added.
        """
        found = completed(self.needs, alternatives)
        if len(found) < 2:
            return structs.replace(self, needs=found[0]) if found else self
        return structs.replace(self, needs=lined_up(found), alternatives=found, in_order=in_order)


class Proof(Struct, frozen=True):
    """A caller's right to change a lease."""

    owner: str | None = None
    """The caller; None: an operator, who may change any lease."""
    token: FencingToken | str | None = None
    """The holder's token, or its text form; None: it is not checked."""


def check_proof(lease: Lease, proof: Proof) -> None:
    """Raise HOLDER_MISMATCH, TOKEN_STALE or LEASE_ENDED unless the proof matches the lease.

    LEASE_ENDED: the grant with this token was taken back, and its ticket waits again.
    """
    if proof.owner is not None and proof.owner != lease.owner:
        raise Error(Code.HOLDER_MISMATCH, f"Lease '{lease.id}' belongs to another owner.")
    if proof.token is not None and lease.state == "waiting":
        raise Error(
            Code.LEASE_ENDED,
            f"Ticket '{lease.id}' has no token while it waits: a grant that was not confirmed in"
            " time is taken back.",
        )
    if proof.token is not None and str(proof.token) != str(lease.token):
        raise Error(Code.TOKEN_STALE, f"'{proof.token}' is not the token of lease '{lease.id}'.")


def check_version(lease: Lease, version: int | None) -> None:
    """Raise RECORD_CHANGED unless a lease's record has this version; None: any will do."""
    if version is not None and version != lease.record_version:
        raise Error(
            Code.RECORD_CHANGED,
            f"The record of lease '{lease.id}' has version {lease.record_version}, not {version}:"
            " read it again.",
        )


def check_request(facts: Facts, request: LeaseRequest) -> list[Pool]:
    """Return the pools of a valid request. Raises INVALID, POOL_UNKNOWN."""
    _check_words(request)
    if request.alternatives:
        for needs in request.alternatives:
            _check_needs(facts, needs)
        pools = pools_of(facts, request.needs)
    else:
        pools = _check_needs(facts, request.needs)
    terms = (("ttl", request.ttl), ("hold", request.hold))
    for name, term in terms:
        if term is not None and term is not NEVER:
            check_duration(name, term)
    if request.ttl is not None and request.ttl is not NEVER:
        for pool in pools:
            _check_ttl(pool, request.ttl)
    return pools


def _check_ttl(pool: Pool, ttl: int) -> None:
    """Raise INVALID if a pool does not permit this TTL."""
    if ttl < TTL_SECONDS_MIN * SECOND:
        raise Error(Code.INVALID, f"ttl must be at least {TTL_SECONDS_MIN} s.")
    if ttl > pool.spec.ttl_max:
        most = pool.spec.ttl_max / SECOND
        raise Error(Code.INVALID, f"ttl must be at most {most:g} s in pool '{pool.name}'.")


def check_duration(name: str, microseconds: int, least: int = 1) -> None:
    """Raise INVALID unless a duration is within bounds."""
    if not least <= microseconds <= DURATION_SECONDS_MAX * SECOND:
        bound = "above 0 and at most" if least == 1 else f"from {least / SECOND:g} to"
        raise Error(Code.INVALID, f"{name} must be {bound} {DURATION_SECONDS_MAX} s.")


def in_order(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return needs in the order of `Lease.needs`."""
    return tuple(sorted(needs, key=_PLACE))


def pools_of(facts: Facts, needs: Iterable[Need]) -> list[Pool]:
    """Return each needed pool once. Raises POOL_UNKNOWN."""
    found = {}
    for need in needs:
        pool = facts.pools.get(need.pool)
        if pool is None:
            raise Error(
                Code.POOL_UNKNOWN,
                f"There is no pool '{need.pool}'. `moorage pool list` shows all; operators make one"
                " with `moorage pool create`.",
            )
        found[need.pool] = pool
    return list(found.values())


def ttl_of(pools: list[Pool], term: Term) -> int | None:
    """Return the TTL of a lease in these pools; None: it need not be renewed."""
    if term is NEVER:
        return None
    return min(map(_TTL, pools)) if term is None else term


def hold_of(pools: list[Pool], term: Term) -> int | None:
    """Return the hold of a lease in these pools; None: it has none."""
    if term is NEVER:
        return None
    if term is not None:
        return term
    return min([pool.spec.hold for pool in pools if pool.spec.hold is not None], default=None)


def settled(ticket: Lease, pools: list[Pool]) -> Lease:
    """Return a ticket with the terms of the pools of its granted alternative."""
    choice = ticket.choice or Choice()
    return structs.replace(
        ticket,
        ttl=ttl_of(pools, None) if choice.ttl_open else ticket.ttl,
        hold=hold_of(pools, None) if choice.hold_open else ticket.hold,
        keep=keeps(pools),
    )


def keeps(pools: Iterable[Pool]) -> bool:
    """Does a lease in these pools occupy its units also if it is not renewed?"""
    return "keep" in map(_EXPIRE, pools)


def request_again(
    lease: Lease, fresh: LeaseId, key: str, roles: frozenset[str] = frozenset()
) -> LeaseRequest:
    """Return the request that a lease was made from, as a new attempt.

    What an operator has done to it since is not part of it: a move, or a forced grant.
    """
    choice = lease.choice or Choice()
    return LeaseRequest(
        id=fresh,
        owner=lease.owner,
        key=key,
        digest=lease.digest,
        needs=lined_up(lease.alternatives) if lease.alternatives else lease.needs,
        alternatives=lease.alternatives,
        in_order=choice.in_order,
        priority=lease.priority if lease.priority_asked is None else lease.priority_asked,
        ttl=None if choice.ttl_open else NEVER if lease.ttl is None else lease.ttl,
        hold=None if choice.hold_open else NEVER if lease.hold is None else lease.hold,
        patience=lease.patience,
        labels=lease.labels,
        forced=lease.forced and not lease.forced_by_operator,
        pull=lease.pull,
        attended=lease.attended,
        allocations=lease.allocations,
        group=lease.group,
        preemptible=lease.preemptible,
        booking=lease.booking,
        borrow=lease.borrow,
        roles=roles,
    )


def check_key(owner: str, key: str) -> None:
    """Raise INVALID unless an owner and an idempotency key can be stored, and shown."""
    if not 1 <= len(key) <= KEY_LENGTH_MAX:
        raise Error(Code.INVALID, f"key must have 1 to {KEY_LENGTH_MAX} characters.")
    check_plain("key", key)
    check_plain("owner", owner)
    if len((owner + key).encode("utf-8", "surrogatepass")) > ASKED_BYTES_MAX:
        raise Error(
            Code.INVALID,
            f"owner and key together must have at most {ASKED_BYTES_MAX} bytes in UTF-8.",
        )


def _check_words(request: LeaseRequest) -> None:
    check_key(request.owner, request.key)
    if abs(request.priority) > PRIORITY_MAX:
        raise Error(Code.INVALID, f"priority must be from -{PRIORITY_MAX} to {PRIORITY_MAX}.")
    if not 0 < request.patience <= PATIENCE_SECONDS_MAX * SECOND:
        raise Error(Code.INVALID, f"patience must be above 0 and at most {PATIENCE_SECONDS_MAX} s.")
    if request.forced and request.allocations is not None:
        raise Error(
            Code.INVALID,
            "A forced lease cannot have allocations, because they might not fit: omit one of them.",
        )
    if request.forced and request.alternatives:
        raise Error(
            Code.INVALID,
            "A forced request is granted at once, so it cannot have any_of: choose one of them.",
        )
    if request.borrow is not None:
        check_duration("borrow", request.borrow)
    if request.booking is not None and request.alternatives:
        raise Error(Code.INVALID, "A booking says of which pools its units are: omit any_of.")
    check_labels(request.labels)
    grace = request.preemptible
    if grace is not None and not SECOND <= grace <= GRACE_SECONDS_MAX * SECOND:
        raise Error(Code.INVALID, f"preemptible must be from 1 to {GRACE_SECONDS_MAX} s of grace.")
    if grace is not None and is_reserved(request.owner):
        raise Error(
            Code.INVALID,
            f"Owner '{request.owner}' stands for many clients, which would not learn that they are"
            " asked to stop: omit preemptible.",
        )


def _check_needs(facts: Facts, needs: tuple[Need, ...]) -> list[Pool]:
    """Return the pools of valid needs."""
    if not 1 <= len(needs) <= NEEDS_MAX:
        raise Error(Code.INVALID, f"A request must have 1 to {NEEDS_MAX} needs.")
    if len(set(map(_PLACE, needs))) < len(needs):
        raise Error(Code.INVALID, "needs may name each pool only once: add up its units.")
    for need in needs:
        if not 1 <= need.units <= MAX_INT:
            raise Error(Code.INVALID, f"units must be from 1 to {MAX_INT}.")
        if need.wanted:
            check_labels(labels_of(need.wanted))
    pools = pools_of(facts, needs)
    for pool in pools:
        if pool.spec.limit is None:
            continue
        own = [need for need in needs if need.pool == pool.name]
        if any(map(_WANTED, own)):
            raise Error(
                Code.INVALID,
                f"Pool '{pool.name}' has no named slots, so none with labels: omit labels.",
            )
        if set(map(_STATES, own)) != {(FREE, LEASED)}:
            raise Error(Code.INVALID, f"pool {pool.name} has no slots, so none with a state")
    return pools


def lease_of(facts: Facts, lease: LeaseId) -> Lease:
    """Return a lease or ticket, which may have ended. Raises LEASE_NOT_FOUND."""
    found = facts.leases.get(lease)
    if found is None:
        raise Error(Code.LEASE_NOT_FOUND, unknown_message(lease))
    return found


def live_lease(facts: Facts, lease: LeaseId, proof: Proof) -> Lease:
    """Return a live lease or ticket. Raises LEASE_NOT_FOUND, LEASE_ENDED and as `check_proof`."""
    found = lease_of(facts, lease)
    check_proof(found, proof)
    if found.state == "ended":
        raise Error(Code.LEASE_ENDED, ended_message(found))
    return found


def known_to(facts: Facts, request: LeaseRequest) -> LeaseId | None:
    """Return the lease that the same request made before. Raises KEY_REUSED."""
    known = facts.asked.get((request.owner, request.key))
    if known is not None and facts.leases[known].digest != request.digest:
        raise Error(
            Code.KEY_REUSED,
            f"Key '{request.key}' was used for another request: a new attempt needs a new key.",
        )
    return known


def ended_message(lease: Lease) -> str:
    """Return the message that a lease has ended, and why."""
    why = (lease.cause or "").replace("_", " ")
    more = f" ({lease.detail})" if lease.detail else ""
    return f"Lease '{lease.id}' has ended: {why}{more}."


def unknown_message(lease: LeaseId) -> str:
    """Return the message that no lease with this id is remembered."""
    return (
        f"There is no lease '{lease}': it never existed here, or it ended longer ago than ended"
        " leases are kept."
    )
