"""Creating, changing, pausing and deleting pools, and ending pauses.

A lowered limit never revokes leases.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import structs

from moorage.core.admission import bounds
from moorage.core.admission.adaptive import rule as adaptive
from moorage.core.admission.booking_model import of_pool
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import (
    Pacing,
    Pool,
    PoolSpec,
    Rest,
)
from moorage.core.admission.pacing import pacing_default, shortened
from moorage.core.admission.requests import check_duration
from moorage.core.admission.sharing import cohorts, fair_share
from moorage.core.admission.slots import Slots
from moorage.core.admission.units import limit_of
from moorage.core.clock import SECOND, Instant
from moorage.core.counting import are, counted
from moorage.core.errors import Code, Error
from moorage.core.labels import check_labels
from moorage.core.limits import (
    GROUP_NAME_LENGTH_MAX,
    MAX_INT,
    POOL_NAME_LENGTH_MAX,
    QUEUE_MAX_MAX,
    RATE_MAX,
    RATE_MIN,
    RATES_APART,
    THROTTLED_MAX,
    TTL_SECONDS_MIN,
)
from moorage.core.pool_values import Adaptive
from moorage.core.service_time import Moment
from moorage.core.texts import check_path, check_reason


def put(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    name: str,
    spec: PoolSpec,
    generation: int | None = None,
) -> tuple[Changes, Pool]:
    """Create or replace a pool; an equal spec changes nothing, not even the generation.

    A pool that a request has made stays from then on.

    Args:
        facts: with the pool, if it exists, and the pools of its cohort.
        moment: now.
        wall: wall-clock time, stored in the pool.
        name: path-like, of a-z, 0-9, `.`, `_`, `-`.
        spec: the complete settings; without a limit only for a pool that has slots. With
            `per_member` the limit is as before, or 0, until `follow_members`.
        generation: that the caller has seen; 0: the pool must not exist; None: any.

    Raises INVALID, POOL_EXISTS, POOL_GENERATION, POOL_NOT_FOUND.
    """
    before = facts.pools.get(name)
    if spec.per_member is not None:
        spec = structs.replace(spec, limit=0 if before is None else before.spec.limit or 0)
    spec, adaptation = adaptive.asked(spec, before, moment.at)
    check_generation(
        "pool", name, None if before is None else before.generation, generation, OF_POOLS
    )
    if before is None:
        # Pools from a Boskos configuration may have other names.
        check_path("A pool's name", name, POOL_NAME_LENGTH_MAX)
    _check_kind(name, before, spec)
    check_spec(spec)
    cohorts.check_joins(facts, before, spec)
    if before is None:
        pool = structs.replace(new_pool(name, spec, wall), adaptation=adaptation)
    elif before.spec == spec and before.on_demand is None:
        return Changes(), before
    else:
        pool = structs.replace(_changed(before, spec, moment, wall), adaptation=adaptation)
    return Changes(pools={name: pool}, slots=_slots_changed(facts, spec, moment, name)), pool


def delete(facts: Facts, moment: Moment, name: str) -> tuple[Changes, None]:
    """Remove a pool and its slots. Raises POOL_NOT_FOUND, POOL_IN_USE."""
    pool = _found(facts, name)
    if pool.occupied or pool.waiting:
        raise Error(
            Code.POOL_IN_USE,
            f"Pool '{name}' is in use: {counted(pool.occupied, 'unit')} {are(pool.occupied)}"
            f" occupied, {counted(pool.waiting, 'ticket')} {are(pool.waiting)} waiting.",
        )
    wall = moment.at - facts.timeline.skew
    if any(one.ends_at > wall for one in of_pool(facts.bookings.values(), name)):
        raise Error(Code.POOL_IN_USE, f"Pool '{name}' has bookings: cancel them first.")
    slots = {(name, slot): None for slot in facts.slots.get(name, {})}
    return Changes(pools={name: None}, slots=dict(slots)), None


def pause(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    name: str,
    paused: bool,
    reason: str = "",
    until: Instant | None = None,
    by: str = "",
) -> tuple[Changes, Pool]:
    """Stop granting, or resume; everything else continues.

    A pause of a paused pool replaces its end and its author, and its `reason` if it gives one.

    Args:
        facts: with the pool.
        moment: now.
        wall: wall-clock time, stored in the pool.
        name: of the pool.
        paused: whether to stop granting.
        reason: for people.
        until: service time at which a pause ends by itself; None: it lasts until it is resumed.
        by: who pauses it; empty: this is unknown.

    Raises POOL_NOT_FOUND, INVALID.
    """
    pool = _found(facts, name)
    check_reason(reason)
    if until is not None:
        if not paused:
            raise Error(Code.INVALID, "Only a pause ends by itself: omit until.")
        if until <= moment.at:
            raise Error(Code.INVALID, "until must be in the future, or omitted.")
        check_duration("the time until the end of a pause", until - moment.at)
    if not paused:
        reason = ""
    elif pool.paused and not reason:
        reason = pool.pause_reason
    if (pool.paused, pool.pause_reason, pool.paused_until) == (paused, reason, until):
        return Changes(), pool
    pool = _paused(pool, wall, paused, reason, until, by if paused else "")
    return Changes(pools={name: pool}), pool


def end_pauses(draft: Draft) -> None:
    """Resume every loaded pool whose pause has reached its end."""
    for name in draft.facts.pools:
        pool = draft.pool(name)
        until = pool.paused_until
        if pool.paused and until is not None and until <= draft.moment.at:
            draft.changes.pools[name] = _paused(pool, draft.wall, False)


def _paused(
    pool: Pool,
    wall: Instant,
    paused: bool,
    reason: str = "",
    until: Instant | None = None,
    by: str = "",
) -> Pool:
    return structs.replace(
        pool,
        paused=paused,
        pause_reason=reason,
        paused_until=until,
        paused_by=by,
        generation=pool.generation + 1,
        updated_at=wall,
    )


def new_pool(name: str, spec: PoolSpec, wall: Instant) -> Pool:
    """Return a pool without leases or tickets. Its times, like those of slots, are wall-clock."""
    return Pool(
        name=name,
        spec=spec,
        paused=False,
        generation=1,
        occupied=0,
        waiting=0,
        gangs=0,
        resting=(),
        paced_at=Instant(0),
        wake_at=None,
        created_at=wall,
        updated_at=wall,
        sharing=None if spec.fair_share is None else fair_share.begun(spec, 0),
    )


def follow_members(facts: Facts, members: Mapping[str, int], wall: Instant) -> Changes:
    """Set the limits of pools that have some units for each member of a group of reporters.

    A lower limit revokes nothing. The generation of a pool is for its operators and stays.

    Args:
        facts: with the pools.
        members: the number of members by group; pools of other groups stay as they are.
        wall: wall-clock time, stored in the pools.
    """
    changes = Changes()
    for name, pool in facts.pools.items():
        spec = pool.spec
        group = spec.member_group
        if spec.per_member is None or group is None or group not in members:
            continue
        limit = limit_by_members(spec.per_member, members[group])
        if limit != spec.limit:
            followed = structs.replace(spec, limit=limit)
            changes.pools[name] = structs.replace(pool, spec=followed, updated_at=wall)
    return changes


def limit_by_members(per_member: int, members: int) -> int:
    """Return the limit of a pool that has some units for each of these members."""
    return min(MAX_INT, per_member * members)


def paced(before: Pool | None, facts: Facts, spec: PoolSpec, at: Instant) -> PoolSpec:
    """Return a spec with the default pacing for its hold and its units; none if these change."""
    spec, _ = adaptive.asked(spec, before, at)
    if spec.per_member is not None or spec.native_slots:  # neither has a number of units yet
        return structs.replace(spec, pacing=None)
    units = spec.limit
    if units is None and before is not None:
        units = limit_of(facts, before)
    return structs.replace(spec, pacing=pacing_default(units, spec.hold))


def check_spec(spec: PoolSpec) -> None:
    """Raise INVALID if a spec is not valid."""
    least_ttl = TTL_SECONDS_MIN * SECOND
    _check_number("limit", spec.limit, 0, MAX_INT)
    _check_number("per_member", spec.per_member, 0, MAX_INT)
    if (spec.per_member is None) != (spec.member_group is None):
        raise Error(Code.INVALID, "per_member and member_group go together: set both or neither.")
    if spec.member_group is not None:
        check_path("member_group", spec.member_group, GROUP_NAME_LENGTH_MAX)
    check_duration("ttl_max", spec.ttl_max, least_ttl)
    check_duration("ttl", spec.ttl, least_ttl)
    if spec.ttl > spec.ttl_max:
        raise Error(Code.INVALID, "ttl must not be above ttl_max.")
    if spec.hold is not None:
        check_duration("hold", spec.hold)
    if spec.hold_max is not None:
        check_duration("hold_max", spec.hold_max)
    check_duration("cooldown", spec.cooldown, 0)
    check_duration("lock_delay", spec.lock_delay, 0)
    if spec.proxy_ttl is not None:
        check_duration("proxy_ttl", spec.proxy_ttl)
    if (spec.book_ahead is None) != (spec.book_hours is None):
        raise Error(Code.INVALID, "book_ahead and book_hours go together: set both or neither.")
    if spec.book_ahead is not None:
        check_duration("book_ahead", spec.book_ahead)
    _check_number("book_hours", spec.book_hours, 1, MAX_INT)
    if spec.pacing is not None:
        _check_pacing(spec.pacing)
    _check_number("quota", spec.quota, 1, MAX_INT)
    _check_number("queue_max", spec.queue_max, 1, QUEUE_MAX_MAX)
    check_labels(spec.labels)
    if spec.adaptive is not None:
        _check_adaptive(spec, spec.adaptive)
    if spec.fair_share is not None:
        fair_share.check_share(spec.fair_share)
        if spec.order == "newest":
            raise Error(
                Code.INVALID,
                "A fair share orders the line by what was used, so order must be 'oldest'.",
            )
    cohorts.check_cohort(spec)
    bounds.check_spec(spec)


def _changed(before: Pool, spec: PoolSpec, moment: Moment, wall: Instant) -> Pool:
    """Return a pool with a new spec; present cooldowns and pacing are shortened to fit it."""
    latest_rest = _latest_rest(spec, moment)
    rests = tuple(
        Rest(min(rest.until, latest_rest), rest.units)
        for rest in before.resting
        if rest.until > moment.at and latest_rest > moment.at
    )
    paced_at = before.paced_at
    if spec.pacing != before.spec.pacing:
        paced_at = shortened(spec.pacing, paced_at, moment.at)
    return structs.replace(
        before,
        spec=spec,
        on_demand=None,  # it is the operator's from now on
        sharing=fair_share.changed(before, spec.fair_share),
        resting=rests,
        paced_at=paced_at,
        generation=before.generation + 1,
        updated_at=wall,
    )


def _latest_rest(spec: PoolSpec, moment: Moment) -> Instant:
    """Return the latest end of the cooldown of units freed up to now."""
    return Instant(moment.at + max(spec.cooldown, spec.lock_delay))


def _slots_changed(facts: Facts, spec: PoolSpec, moment: Moment, name: str) -> Slots:
    """Return the slots of a pool whose cooldown is shorter with its new spec."""
    latest = _latest_rest(spec, moment)
    return {
        (name, slot.name): structs.replace(slot, rests_until=latest)
        for slot in facts.slots.get(name, {}).values()
        if slot.rests_until > latest
    }


def not_found(name: str) -> Error:
    """Return the error for a pool that does not exist."""
    return Error(Code.POOL_NOT_FOUND, f"There is no pool '{name}'.")


def _found(facts: Facts, name: str) -> Pool:
    pool = facts.pools.get(name)
    if pool is None:
        raise not_found(name)
    return pool


class Refusals(NamedTuple):
    """The codes that refuse a put: there is none, there is one already, it has changed."""

    missing: Code
    exists: Code
    changed: Code


OF_POOLS = Refusals(Code.POOL_NOT_FOUND, Code.POOL_EXISTS, Code.POOL_GENERATION)


def check_generation(
    what: str, name: str, there: int | None, generation: int | None, refusals: Refusals
) -> None:
    """Raise one of the refusals unless something has the generation that its operator has seen.

    Args:
        what: a noun, such as `pool`.
        name: its name.
        there: its generation; None: it does not exist.
        generation: the expected one; 0: it must not exist; None: any.
        refusals: their codes.
    """
    if generation is None:
        return
    if there is None:
        if generation:
            raise Error(refusals.missing, f"There is no {what} '{name}'.")
    elif generation == 0:
        raise Error(refusals.exists, f"There is already a {what} '{name}'.")
    elif generation != there:
        raise Error(
            refusals.changed,
            f"{what.capitalize()} '{name}' has generation {there}, not {generation}. Read it"
            " again.",
        )


def _check_kind(name: str, before: Pool | None, spec: PoolSpec) -> None:
    has_slots = before is not None and before.spec.limit is None
    if has_slots and spec.limit is not None:
        raise Error(Code.INVALID, f"Pool '{name}' has slots, which are its limit: omit limit.")
    if spec.native_slots and spec.limit is not None:
        raise Error(Code.INVALID, "A pool with native_slots has no limit: omit it, and per_member.")
    if before is not None and before.spec.native_slots != spec.native_slots:
        raise Error(
            Code.INVALID,
            f"native_slots of pool '{name}' cannot change: delete the pool and create it again.",
        )
    if not has_slots and spec.limit is None and not spec.native_slots:
        raise Error(
            Code.INVALID,
            f"Pool '{name}' has no slots, so it needs a limit: a number of units."
            " For named slots, set native_slots or use Boskos' configuration file.",
        )


def _check_pacing(pacing: Pacing) -> None:
    check_duration("pacing interval", pacing.interval)
    _check_number("pacing burst", pacing.burst, 1, MAX_INT)
    check_duration("pacing jitter", pacing.jitter, 0)


def _check_adaptive(spec: PoolSpec, settings: Adaptive) -> None:
    limit = spec.limit
    if limit is None or spec.per_member is not None:
        raise Error(Code.INVALID, "Only a pool with a fixed limit can have an adaptive one.")
    _check_number("adaptive.floor", settings.floor, 1, MAX_INT)
    _check_number("adaptive.ceiling", settings.ceiling, settings.floor, MAX_INT)
    if not settings.floor <= limit <= settings.ceiling:
        raise Error(
            Code.INVALID,
            f"The limit {limit} is not from adaptive.floor to adaptive.ceiling, which are"
            f" {settings.floor} and {settings.ceiling}.",
        )
    _check_number("adaptive.throttled", settings.throttled, 1, THROTTLED_MAX)
    good, bad = settings.good, settings.bad
    if good < RATE_MIN or not RATES_APART * good <= bad <= RATE_MAX:
        raise Error(
            Code.INVALID,
            f"adaptive.good must be at least {RATE_MIN}, and adaptive.bad from"
            f" {RATES_APART} times of that to {RATE_MAX}.",
        )


def _check_number(name: str, number: int | None, least: int, most: int) -> None:
    if number is not None and not least <= number <= most:
        raise Error(Code.INVALID, f"{name} must be from {least} to {most}.")
