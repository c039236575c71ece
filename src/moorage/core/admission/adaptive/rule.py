"""The rule of an adaptive limit: which outcomes are evidence, and when the limit takes a step.

**Evidence** is an outcome of a lease that was granted since the last change of the limit, if at
least 80 % of the limit was in use for half of the lease's life or more. An outcome of a quiet pool
says nothing about its limit. The times in which so much was in use are kept with the pool, so that
neither the moment of the grant decides (the first job of a rush is alone) nor that of the report
(the last one is alone again). A lease that was handed over was granted to its first owner.

**Correlated failures count once**: those with the same cause within a minute, or within a twentieth
of the hold if that is shorter. The good outcomes of that minute then count for as much less, so
that a large pool in which 8 % of the starts fail all the time still shows 8 %.

**Steps.** If few starts fail, the limit rises by a tenth, by 1 at least. If too many fail, or some
are throttled within one hold, it falls to seven tenths at once, but never below what the lease has
that reports: a limit at which no such job may start would never see an outcome again. A change
begins a new test, and for one hold after it nothing counts: jobs that fail do so early, so the
first reports are too bad. A hold means here: as long as the jobs take until they report, if that is
longer.
"""

from collections.abc import Mapping, MutableMapping, Sequence

from msgspec import structs

from moorage.core.admission.adaptive.sequential_test import decided, expected
from moorage.core.admission.model import (
    Lease,
    Pool,
    PoolSpec,
    Result,
    units_held_since,
)
from moorage.core.admission.pacing import is_default, pacing_default, shortened
from moorage.core.clock import MINUTE, Instant
from moorage.core.pool_values import Adaptation, Adaptive, Busy, Counts, Minute, Step
from moorage.wire.enums import Verdict

USE_PERCENT = 80
"""A pool is busy while at least this part of its limit is in use."""

LASTED_MAX = 15
"""Good outcomes of which it is kept how long their jobs took."""

LASTED_RANK = 14
"""Of that many durations, in ascending order: the one that counts. So a single job does not."""

UNKNOWN_HOLD = 10 * MINUTE
"""The hold of a pool that has none, before any job has reported a good outcome."""

BUSY_MAX = 16
"""Busy times that are kept; the shortest ones, or the shortest gaps, are forgotten first."""

CAUSES_MAX = 16
"""Causes of failures that are distinguished within one minute."""

WINDOWS = 20
"""A minute is at most this part of a hold."""

UNDECIDED = 4
"""A test without a decision begins again after this many times the outcomes that it should need:
old ones say little about today."""


def asked(spec: PoolSpec, before: Pool | None, at: Instant) -> tuple[PoolSpec, Adaptation | None]:
    """Return a specification from an operator with the limit that it means, and the pool's state.

    A limit that the test has found stays if the operator names it, within floor and ceiling, and so
    does `configured`. Another limit, or other settings, begin a new test.

    Args:
        spec: all settings.
        before: the pool as it was; None: it is new.
        at: now, in service time.
    """
    settings, limit = spec.adaptive, spec.limit
    if settings is None or limit is None:
        return spec, None
    known = None if before is None else before.adaptation
    if before is None or known is None or before.spec.limit is None:
        return spec, Adaptation(limit, at, at)
    present, wished = before.spec.limit, limit
    if _acts(spec) and _acts(before.spec) and limit == present:
        limit, wished = min(max(present, settings.floor), settings.ceiling), known.configured
        spec = structs.replace(spec, limit=limit)
    if (before.spec.adaptive, present) == (settings, limit):
        return spec, known
    frozen = known.frozen_until
    if present != limit:
        frozen = Instant(at + span_of(before.spec, known))
    return spec, Adaptation(wished, at, frozen, lasted=known.lasted, busy=known.busy)


def tracked(pool: Pool, at: Instant) -> Pool:
    """Return a pool that remembers whether most of its limit is in use from now on."""
    state, limit = pool.adaptation, pool.spec.limit
    if state is None or limit is None:
        return pool
    busy = limit > 0 and 100 * pool.occupied >= USE_PERCENT * limit
    times = state.busy
    last = times[-1] if times else None
    if busy == (last is not None and last.until is None):
        return pool
    if last is None or (busy and last.until != at):
        times = (*times, Busy(at))
    elif busy:
        times = (*times[:-1], Busy(last.since))
    elif last.since == at:
        times = times[:-1]
    else:
        times = (*times[:-1], Busy(last.since, at))
    return structs.replace(pool, adaptation=structs.replace(state, busy=_bounded(times)))


def note_use(
    pools: Mapping[str, Pool], changed: MutableMapping[str, Pool | None], at: Instant
) -> None:
    """Note in `changed` which pools with an adaptive limit are busy from now on."""
    for name, stored in pools.items():
        if stored.adaptation is not None:
            pool = changed.get(name) or stored
            noted = tracked(pool, at)
            if noted is not pool:
                changed[name] = noted


def reported(pool: Pool, lease: Lease, at: Instant, result: Result, cause: str) -> Pool:
    """Return a pool after the outcome of one of its leases, perhaps with another limit.

    Args:
        pool: any; one without an adaptive limit stays as it is.
        lease: that was granted units of it, live or ended.
        at: now, in service time.
        result: the outcome.
        cause: of a failure, for telling them apart; may be empty.
    """
    settings, state = pool.spec.adaptive, pool.adaptation
    begun = units_held_since(lease)
    if settings is None or state is None or begun is None:
        return pool
    if result == "ok":
        lasted = (*state.lasted, at - begun)[-LASTED_MAX:]
        state = structs.replace(state, lasted=lasted)
    if not _is_evidence(state, lease, at):
        state = structs.replace(state, aside=state.aside + 1)
        return structs.replace(pool, adaptation=state)
    span = span_of(pool.spec, state)
    state = _added(settings, state, at, span, result, cause)
    verdict = _verdict(settings, state)
    if verdict is not None:
        least = sum(need.units for need in lease.needs if need.pool == pool.name)
        return _stepped(pool, settings, state, at, verdict, least)
    if state.counts.ok + state.counts.failed + state.counts.throttled >= most(settings):
        state = _begun_again(state)
    return structs.replace(pool, adaptation=state)


def most(settings: Adaptive) -> int:
    """Return after how many outcomes a test without a decision begins again."""
    return UNDECIDED * max(expected(settings.good, settings.bad))


def totals(state: Adaptation) -> tuple[float, int]:
    """Return the good outcomes and the failures that count, with those of the present minute."""
    minute = state.minute
    if minute is None:
        return state.ok, state.failed
    share = minute.counted / minute.failed if minute.failed else 1.0
    return state.ok + minute.ok * share, state.failed + minute.counted


def span_of(spec: PoolSpec, state: Adaptation) -> int:
    """Return the hold that the rule goes by (microseconds): that of the pool, or of its jobs."""
    usual = sorted(state.lasted)[:LASTED_RANK]
    if spec.hold is None and not usual:
        return UNKNOWN_HOLD
    return max(1, spec.hold or 0, usual[-1] if usual else 0)


def advised(pool: Pool) -> int | None:
    """Return the limit that the rule would set now; None: the pool has no adaptive limit.

    It is that of the last step, unless the limit has moved since, or the present one.
    """
    state, limit = pool.adaptation, pool.spec.limit
    if state is None:
        return None
    last = state.last
    return limit if last is None or last.before != limit else last.after


def raised(settings: Adaptive, limit: int) -> int:
    """Return the limit after a step upwards."""
    return max(settings.floor, min(settings.ceiling, limit + max(1, limit // 10)))


def cut(settings: Adaptive, limit: int) -> int:
    """Return the limit after a step downwards."""
    return max(settings.floor, min(settings.ceiling, limit * 7 // 10))


def _acts(spec: PoolSpec) -> bool:
    return spec.adaptive is not None and spec.adaptive.mode == "act"


def _is_evidence(state: Adaptation, lease: Lease, at: Instant) -> bool:
    begins = units_held_since(lease)
    if begins is None or begins < state.since or at < state.frozen_until:
        return False
    ends = at if lease.ended_at is None else lease.ended_at
    if ends <= begins:
        return any(
            busy.since <= begins and (busy.until is None or begins < busy.until)
            for busy in state.busy
        )
    under = 0
    for busy in state.busy:
        until = ends if busy.until is None else min(ends, busy.until)
        under += max(0, until - max(begins, busy.since))
    return 2 * under >= ends - begins


def _added(
    settings: Adaptive, state: Adaptation, at: Instant, span: int, result: Result, cause: str
) -> Adaptation:
    """Return the state with one more outcome that is evidence."""
    minute = state.minute
    if minute is None or at >= minute.until:
        ok, failed = totals(state)
        minute = Minute(Instant(at + max(1, min(MINUTE, span // WINDOWS))))
        state = structs.replace(state, ok=ok, failed=failed)
    counts = state.counts
    if result == "ok":
        minute = structs.replace(minute, ok=minute.ok + 1)
        counts = structs.replace(counts, ok=counts.ok + 1)
        return structs.replace(state, minute=minute, counts=counts)
    known = _key(result, cause)
    is_new = known is None or (known not in minute.causes and len(minute.causes) < CAUSES_MAX)
    minute = Minute(
        minute.until,
        minute.ok,
        minute.failed + 1,
        minute.counted + is_new,
        minute.causes if known is None or not is_new else (*minute.causes, known),
    )
    counts = Counts(
        counts.ok,
        counts.failed + (result == "failed"),
        counts.throttled + (result == "throttled"),
        counts.correlated + (not is_new),
    )
    times = state.throttled
    if result == "throttled":
        recent = [one for one in times if one > at - span] + [at] * is_new
        times = tuple(recent[-settings.throttled :])
    return structs.replace(state, minute=minute, counts=counts, throttled=times)


def _key(result: Result, cause: str) -> str | None:
    """Return what a failure must share with another to be the same; None: it is like no other.

    That a start was throttled is a cause in itself.
    """
    return f"{result} {cause}" if cause or result == "throttled" else None


def _verdict(settings: Adaptive, state: Adaptation) -> Verdict | None:
    if len(state.throttled) >= settings.throttled:
        return "throttled"
    return decided(settings.good, settings.bad, *totals(state))


def _stepped(
    pool: Pool, settings: Adaptive, state: Adaptation, at: Instant, verdict: Verdict, least: int
) -> Pool:
    """Take a step, or only advise it; in either case a new test begins.

    A cut stops at `least` units.
    """
    spec = pool.spec
    limit = spec.limit or 0
    if verdict == "good":
        after = raised(settings, limit)
    else:
        after = min(limit, max(cut(settings, limit), least))
    acts = settings.mode == "act" and after != limit
    step = Step(at, verdict, limit, after, state.counts, acts)
    begun = structs.replace(_begun_again(state), last=step)
    if not acts:
        return structs.replace(pool, adaptation=begun)
    span = span_of(spec, state)
    begun = structs.replace(begun, since=at, frozen_until=Instant(at + span))
    pacing, paced_at = spec.pacing, pool.paced_at
    if pacing is not None and is_default(pacing, limit, spec.hold):
        pacing = pacing_default(after, spec.hold)
        paced_at = shortened(pacing, paced_at, at)
    changed = structs.replace(spec, limit=after, pacing=pacing)
    # Another generation: an operator who knows the limit of before must look again.
    return structs.replace(
        pool,
        spec=changed,
        paced_at=paced_at,
        adaptation=begun,
        generation=pool.generation + 1,
    )


def _begun_again(state: Adaptation) -> Adaptation:
    """Return the state with a new test: nothing that was counted remains."""
    return Adaptation(
        state.configured,
        state.since,
        state.frozen_until,
        lasted=state.lasted,
        busy=state.busy,
        last=state.last,
    )


def _bounded(times: Sequence[Busy]) -> tuple[Busy, ...]:
    """Return busy times without the shortest one, or the shortest gap, if there are too many.

    The last one stays: it may not be over.
    """
    found = list(times)
    while len(found) > BUSY_MAX:
        lengths = [(_length(one), n, True) for n, one in enumerate(found[:-1])]
        lengths += [
            (found[n + 1].since - _until(found[n]), n, False) for n in range(len(found) - 1)
        ]
        _, n, is_time = min(lengths)
        if is_time:
            del found[n]
        else:
            found[n : n + 2] = [Busy(found[n].since, found[n + 1].until)]
    return tuple(found)


def _length(busy: Busy) -> int:
    return _until(busy) - busy.since


def _until(busy: Busy) -> int:
    return busy.since if busy.until is None else busy.until
