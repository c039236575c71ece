"""Bounds of a pool on requests: what it can grant at all, and what its users may ask for.

Operators are exempt from the latter: they could change the pool. `ttl_max`, which is checked
elsewhere, binds operators too: an abandoned lease must end.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import get_args

from moorage.core.admission import pacing
from moorage.core.admission.alternatives import Needs
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import (
    Lease,
    Need,
    Pool,
    PoolSpec,
    units_held_since,
)
from moorage.core.admission.owners import is_reserved, project_of
from moorage.core.admission.requests import NEVER, LeaseRequest, Proof, pools_of
from moorage.core.admission.slots import free
from moorage.core.admission.units import fitting, free_units, units_by_pool, units_of
from moorage.core.clock import SECOND, Instant
from moorage.core.counting import are, counted
from moorage.core.errors import Code, Error
from moorage.core.limits import ASKERS_MAX, IDENTIFIER_LENGTH_MAX, PRIORITY_MAX, WISHES_MAX
from moorage.core.service_time import Moment
from moorage.core.wildcards import BELOW, is_entry
from moorage.core.wishes import labels_text, suits
from moorage.wire.enums import LadderRole, Order

EXEMPT: LadderRole = "operator"
"""Callers with the rights of this role are exempt."""

ROLE = "role:"
"""The prefix of an `askers` entry that matches a role and all above it."""

QUEUE_SHARE = 10
"""The owners of a project, or one without a project, may fill a tenth of a line by default."""

SHORT_LINE = 10
"""Tickets that one owner may have in any line, if it is that long: nobody shares so short a one."""


def owner_queue_max(queue_max: int, chosen: int | None = None) -> int:
    """Return how many tickets of one owner may wait; `chosen`: a pool's `queue_max_per_owner`.

    By default a tenth of the line, so that nobody fills it. But a line of ten, for example that of
    a program whose jobs all have one owner, is meant for ten jobs.
    """
    share = max(queue_max // QUEUE_SHARE, SHORT_LINE)
    return min(queue_max, share) if chosen is None else chosen


def project_queue_max(spec: PoolSpec) -> int:
    """Return how many tickets of all owners of one project together may wait.

    A project with many tokens must not fill a line that one of them could not fill.
    """
    chosen = spec.queue_max_per_owner or 0
    return max(chosen, owner_queue_max(spec.queue_max))


def check_order(pools: Iterable[Pool]) -> None:
    """Raise INVALID unless all pools of a request grant in the same order.

    A ticket has one place in all its lines: with two, two gangs could wait for each other.
    """
    by_order = {pool.spec.order: pool.name for pool in pools}
    if len(by_order) > 1:
        raise Error(
            Code.INVALID,
            f"Pool '{by_order['newest']}' grants to the newest request first, pool"
            f" '{by_order['oldest']}' to the oldest: one request cannot need both.",
        )


def order_of(pools: Sequence[Pool]) -> Order:
    """Return the order in which the tickets of a request for units of these pools are granted."""
    if len(pools) == 1:
        return pools[0].spec.order
    return "newest" if all(pool.spec.order == "newest" for pool in pools) else "oldest"


def check_asker(pools: Iterable[Pool], request: LeaseRequest) -> None:
    """Raise ASKER_REFUSED, PRIORITY_ABOVE_MAX, HOLD_ABOVE_MAX unless the pools permit a request."""
    if EXEMPT in request.roles:
        return
    for pool in pools:
        spec = pool.spec
        check_may_ask(pool, request.owner, request.roles)
        if spec.priority_max is not None and request.priority > spec.priority_max:
            raise Error(
                Code.PRIORITY_ABOVE_MAX,
                f"priority must be at most {spec.priority_max} in pool '{pool.name}', not"
                f" {request.priority}.",
            )
        most = spec.hold_max
        if most is not None and (
            request.hold is NEVER or (request.hold is not None and request.hold > most)
        ):
            raise _hold_above(pool, most)


def check_may_have(pool: Pool, request: LeaseRequest) -> None:
    """Raise ASKER_REFUSED unless a pool is for the owner of a request."""
    if EXEMPT not in request.roles:
        check_may_ask(pool, request.owner, request.roles)


def check_may_ask(pool: Pool, owner: str, roles: frozenset[str]) -> None:
    """Raise ASKER_REFUSED unless a pool's `askers` permit an owner with these roles."""
    askers = pool.spec.askers
    if askers is not None and not any(_stands_for(one, owner, roles) for one in askers):
        raise Error(
            Code.ASKER_REFUSED,
            f"'{owner}' may not ask for units of pool '{pool.name}'. An operator can"
            " add this owner, its project or its role to the pool's askers.",
        )


def check_units(facts: Facts, pools: Iterable[Pool], request: LeaseRequest, at: Instant) -> None:
    """Raise UNITS_ABOVE_LIMIT if its pools in their present form could never grant a request.

    A forced one is bound only by the number of free slots. A limit that follows members may grow,
    an adaptive one may return to what an operator has set, and a slot that is drained but kept may
    be resumed: requests wait for these. Of alternatives one must be possible; the others are passed
    over until they are.
    """
    if request.alternatives:
        check_any(
            request.alternatives,
            lambda needs: check_units(facts, pools_of(facts, needs), request.only(needs), at),
        )
        return
    needed = units_by_pool(request.needs)
    for pool in pools:
        units, most = needed[pool.name], pool.spec.limit
        if most is None:
            most = units_of(pool, _there(facts, pool))
        elif pool.adaptation is not None:
            most = max(most, pool.adaptation.configured)
        if request.allocations is None:  # with allocations it does not borrow
            most += pool.spec.borrowing
        if request.forced:
            _check_slots(facts, pool, request.needs, at)
        elif (lacking := _lacking(facts, pool, request.needs)) is not None:
            raise Error(
                Code.UNITS_ABOVE_LIMIT,
                f"The request needs {counted(lacking.units, 'slot')} with"
                f" {labels_text(lacking.wanted)} of pool '{pool.name}', but the pool has only"
                f" {_there(facts, pool, lacking.wanted)}.",
            )
        elif units > most and pool.spec.per_member is None:
            raise Error(
                Code.UNITS_ABOVE_LIMIT,
                f"The request needs {counted(units, 'unit')} of pool '{pool.name}', but the pool"
                f" has only {most}.",
            )
        elif pool.spec.quota is not None and units > pool.spec.quota:
            raise Error(
                Code.UNITS_ABOVE_LIMIT,
                f"The request needs {counted(units, 'unit')} of pool '{pool.name}', but one owner"
                f" may have only {pool.spec.quota}.",
            )


def check_any(alternatives: Sequence[Needs], check: Callable[[Needs], None]) -> None:
    """Raise the error of the first alternative, unless one of them passes a check."""
    refusals = []
    for needs in alternatives:
        try:
            check(needs)
        except Error as refusal:
            refusals.append(refusal)
        else:
            return
    first = refusals[0]
    if len(refusals) == 1:
        raise first
    raise Error(
        first.code,
        f"None of the {len(refusals)} alternatives is possible. The first: {first.message}",
    )


def check_slots(facts: Facts, needs: Needs, at: Instant) -> None:
    """Raise UNITS_ABOVE_LIMIT if a pool has slots, but too few free ones for a forced request."""
    for pool in pools_of(facts, needs):
        _check_slots(facts, pool, needs, at)


def _check_slots(facts: Facts, pool: Pool, needs: Needs, at: Instant) -> None:
    if pool.spec.limit is not None:
        return
    slots = facts.slots.get(pool.name, {}).values()
    for need in needs:
        idle = sum(suits(slot.labels, need.wanted) for slot in free(slots, at, need.state))
        if need.pool == pool.name and need.units > idle:
            raise Error(
                Code.UNITS_ABOVE_LIMIT,
                f"The request needs {counted(need.units, 'slot')} of pool '{pool.name}' in the"
                f" state '{need.state}', but only {idle} {are(idle)} not in use.",
            )


def check_hold(
    pools: Iterable[Pool], moment: Moment, lease: Lease, proof: Proof, hold: int | None
) -> None:
    """Raise HOLD_ABOVE_MAX if a lease may not last this long from now; None: for ever.

    The time since its grant counts, also that of owners who have handed it over.
    """
    if proof.owner is None:
        return
    held = _held(moment, lease)
    for pool in pools:
        most = pool.spec.hold_max
        if most is not None and (hold is None or held + hold > most):
            raise _hold_above(pool, most, max(0, most - held))


def hold_left(pools: Iterable[Pool], moment: Moment, lease: Lease) -> int | None:
    """Return how long a lease may still last by `hold_max` of its pools; None: there is none."""
    ends = [pool.spec.hold_max for pool in pools if pool.spec.hold_max is not None]
    return max(0, min(ends) - _held(moment, lease)) if ends else None


def _held(moment: Moment, lease: Lease) -> int:
    since = units_held_since(lease)
    return 0 if since is None else moment.at - since


def check_queue(draft: Draft, pool: Pool, request: LeaseRequest) -> None:
    """Raise QUEUE_FULL or OWNER_QUEUE_FULL if no more tickets may wait, see `is_full`.

    Args:
        draft: of the decision, with `Facts.waits` of the owner if it could be too many. What it has
            ended does not count.
        pool: as changed so far.
        request: the request.
    """
    if is_full(draft, pool):
        raise Error(
            Code.QUEUE_FULL,
            f"The line of pool '{pool.name}' is full with {counted(pool.waiting, 'ticket')}."
            " Try again later.",
        )
    if not is_bounded(request.owner, request.roles, pool.spec):
        return
    _check_owner(draft, pool, request)
    project = project_of(request.owner)
    if project is not None:
        _check_project(draft, pool, project)


def is_bounded(owner: str, roles: frozenset[str], spec: PoolSpec | None = None) -> bool:
    """Is the number of an owner's tickets in a line bounded, by a pool's settings or by default?

    The owners of Boskos, of the lease proxy and of governors stand for many clients, so only a
    value that an operator has chosen bounds them. `spec` None: in any pool.
    """
    chosen = spec is None or spec.queue_max_per_owner is not None
    return EXEMPT not in roles and (chosen or not is_reserved(owner))


def _check_owner(draft: Draft, pool: Pool, request: LeaseRequest) -> None:
    spec, own = pool.spec, (pool.name, request.owner)
    most = owner_queue_max(spec.queue_max, spec.queue_max_per_owner)
    waits, held = draft.facts.waits.get(own, 0), draft.facts.held.get(own, 0)
    for before in _ended(draft, pool):
        if before.owner == request.owner and before.state == "waiting":
            waits -= 1
        elif before.owner == request.owner:
            held -= units_by_pool(before.needs)[pool.name]
    if waits < most:
        return
    starting = _starting(draft, pool)
    if spec.quota is not None:
        starting = min(starting, max(0, spec.quota - held))
    if waits - starting >= most:
        why = ""
        if spec.queue_max_per_owner is None:
            short = spec.queue_max < QUEUE_SHARE * most
            why = ", the default for a short line" if short else ", a tenth of queue_max"
        raise Error(
            Code.OWNER_QUEUE_FULL,
            f"'{request.owner}' has {counted(waits, 'ticket')} in the line of pool '{pool.name}',"
            f" and queue_max_per_owner is {most}{why}. Wait for one of them, or withdraw one; an"
            " operator can raise queue_max_per_owner.",
        )


def _ended(draft: Draft, pool: Pool) -> Iterator[Lease]:
    """Yield the leases and tickets of a pool that a decision has ended, as they were before."""
    for key, after in draft.changes.leases.items():
        before = draft.facts.leases.get(key)
        ends = after is None or after.state == "ended"
        if before is None or before.state == "ended" or not ends:
            continue
        if any(need.pool == pool.name for need in before.needs):
            yield before


def _check_project(draft: Draft, pool: Pool, project: str) -> None:
    most = project_queue_max(pool.spec)
    if pool.waiting < most:
        return
    waits = sum(
        tickets
        for (name, owner), tickets in draft.facts.waits.items()
        if name == pool.name and project_of(owner) == project
    )
    for before in _ended(draft, pool):
        waits -= before.state == "waiting" and project_of(before.owner) == project
    if waits >= most and waits - _starting(draft, pool) >= most:
        raise Error(
            Code.OWNER_QUEUE_FULL,
            f"The owners of project '{project}' have {counted(waits, 'ticket')} in the line of pool"
            f" '{pool.name}', and may have {most} together. Wait for one of them, or withdraw one;"
            " an operator can raise queue_max_per_owner.",
        )


def check_labels_sought(pool: Pool, request: LeaseRequest) -> None:
    """Raise QUEUE_FULL if the tickets of a line would ask for too many different labels."""
    for need in request.needs:
        new = need.pool == pool.name and need.wanted and need.wanted not in pool.sought
        if new and len(pool.sought) >= WISHES_MAX:
            raise Error(
                Code.QUEUE_FULL,
                f"The tickets in the line of pool '{pool.name}' ask for {WISHES_MAX} different"
                f" sets of labels, which is the limit. Try again later, or ask for labels that"
                " others ask for.",
            )


def is_full(draft: Draft, pool: Pool) -> bool:
    """May no more tickets wait in a pool's line? Those for which units are free do not count."""
    most = pool.spec.queue_max
    return pool.waiting >= most and pool.waiting - _starting(draft, pool) >= most


def check_spec(spec: PoolSpec) -> None:
    """Raise INVALID if a pool's bounds are not valid."""
    if spec.priority_max is not None and abs(spec.priority_max) > PRIORITY_MAX:
        raise Error(Code.INVALID, f"priority_max must be from -{PRIORITY_MAX} to {PRIORITY_MAX}.")
    if spec.hold_max is not None and (spec.hold is None or spec.hold > spec.hold_max):
        raise Error(
            Code.INVALID,
            "hold_max needs a hold of at most hold_max: a request without a hold gets the hold of"
            " the pool.",
        )
    most = spec.queue_max_per_owner
    if most is not None and not 1 <= most <= spec.queue_max:
        raise Error(
            Code.INVALID, f"queue_max_per_owner must be from 1 to queue_max ({spec.queue_max})."
        )
    if spec.askers is not None:
        _check_askers(spec.askers)


def _check_askers(askers: tuple[str, ...]) -> None:
    if len(askers) > ASKERS_MAX:
        raise Error(Code.INVALID, f"askers may have at most {ASKERS_MAX} entries.")
    for one in askers:
        role = one.removeprefix(ROLE)
        if _is_role(one) and role not in get_args(LadderRole):
            raise Error(
                Code.INVALID,
                f"askers: there is no role {role!r}; the roles are"
                f" {', '.join(get_args(LadderRole))}.",
            )
        # An owner is a project, a slash and a name.
        if not is_entry(one, 2 * IDENTIFIER_LENGTH_MAX + 1):
            raise Error(
                Code.INVALID,
                f"askers: {one!r} is not an owner, PROJECT{BELOW} or {ROLE}ROLE.",
            )


def _stands_for(asker: str, owner: str, roles: frozenset[str]) -> bool:
    if _is_role(asker):
        return asker.removeprefix(ROLE) in roles
    if not asker.endswith(BELOW):
        return asker == owner
    return project_of(owner) == asker.removesuffix(BELOW)


def _is_role(asker: str) -> bool:
    """Does an entry name a role? One with a slash names a project or an owner."""
    return asker.startswith(ROLE) and "/" not in asker


def _starting(draft: Draft, pool: Pool) -> int:
    """Return how many units could be granted to waiting tickets now."""
    if pool.paused:
        return 0
    at = draft.moment.at
    facts = Facts(pools={pool.name: pool}, slots={pool.name: draft.slots(pool.name)})
    found = free_units(facts, pool, at)
    most = sum(max(0, units) for units in found.values())
    if pool.spec.limit is None:  # slots in other states, or without the labels, serve no ticket
        found = {state: min(found.get(state, 0), units) for state, units in pool.awaited.items()}
        for wanted, units in pool.sought.items():
            need = Need(pool.name, units, wanted=wanted)
            found[wanted] = min(fitting(facts, need, at), units)
    # A slot may suit several tickets, but only one of them gets it.
    free = min(most, sum(max(0, units) for units in found.values()))
    return min(free, pacing.permitted(pool, at, free))


def _hold_above(pool: Pool, most: int, left: int | None = None) -> Error:
    now = "" if left is None else f", which leaves {left / SECOND:g} s from now"
    return Error(
        Code.HOLD_ABOVE_MAX,
        f"hold must be at most {most / SECOND:g} s in pool '{pool.name}'{now}.",
    )


def _lacking(facts: Facts, pool: Pool, needs: Iterable[Need]) -> Need | None:
    """Return the need for which a pool has too few slots with the labels, in whatever state."""
    for need in needs:
        own = need.pool == pool.name and need.wanted
        if own and need.units > _there(facts, pool, need.wanted):
            return need
    return None


def _there(facts: Facts, pool: Pool, wanted: str = "") -> int:
    """Return how many slots with these labels a pool has, occupied and drained ones included."""
    return sum(suits(slot.labels, wanted) for slot in facts.slots.get(pool.name, {}).values())
