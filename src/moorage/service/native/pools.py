"""Pools in the native API."""

from collections.abc import Iterable
from typing import Literal

from moorage.core.admission.forecast.simulate import Summary
from moorage.core.admission.model import Pacing, PoolSpec, owner_queue_max, pacing_default
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.service.admission.past import HistoryView, RehearsalView, Scene
from moorage.service.admission.views import OutcomeCount, PoolView, ReportView
from moorage.service.native import leases
from moorage.service.native.bounds import microseconds, microseconds_or_none
from moorage.service.native.encoding import seconds_of, time_of, time_or_none
from moorage.wire import admission as wire
from moorage.wire.pool_reports import (
    HistoryPoint,
    OutcomeLine,
    PoolHistory,
    PoolReport,
    Rehearsal,
    RehearsedScene,
    SceneWanted,
)


def spec_of(wanted: wire.PoolWanted) -> PoolSpec:
    """Convert a pool's specification to the core's type. Raises `Error`: INVALID.

    A pacing "auto" becomes none here: the decision derives it, see `pools.paced`; likewise a limit
    that follows members becomes 0.
    """
    if wanted.limit is not None and wanted.per_member is not None:
        raise Error(Code.INVALID, "A pool has a limit, or units per member: omit one of them.")
    return PoolSpec(
        limit=wanted.limit if wanted.per_member is None else 0,
        ttl=microseconds("ttl", wanted.ttl),
        ttl_max=microseconds("ttl_max", wanted.ttl_max),
        hold=microseconds_or_none("hold", wanted.hold),
        cooldown=microseconds("cooldown", wanted.cooldown),
        lock_delay=microseconds("lock_delay", wanted.lock_delay),
        pacing=_pacing(wanted.pacing),
        quota=wanted.quota,
        queue_max=wanted.queue_max,
        labels=wanted.labels,
        on_retry=wanted.on_retry,
        expire=wanted.expire,
        proxy_ttl=microseconds_or_none("proxy_ttl", wanted.proxy_ttl),
        askers=None if wanted.askers is None else tuple(wanted.askers),
        priority_max=wanted.priority_max,
        hold_max=microseconds_or_none("hold_max", wanted.hold_max),
        queue_max_per_owner=wanted.queue_max_per_owner,
        per_member=wanted.per_member,
        member_group=wanted.member_group,
        native_slots=wanted.native_slots,
    )


def _pacing(wanted: wire.Pacing | Literal["auto"] | None) -> Pacing | None:
    if wanted is None or wanted == "auto":
        return None
    return Pacing(
        interval=microseconds("pacing.interval", wanted.interval),
        burst=wanted.burst,
        jitter=microseconds("pacing.jitter", wanted.jitter),
    )


def shown(view: PoolView) -> wire.Pool:
    """Convert a pool to its wire form."""
    pool, spec, figures = view.pool, view.pool.spec, view.figures
    return wire.Pool(
        name=pool.name,
        limit=spec.limit if spec.per_member is None else None,
        ttl=spec.ttl / SECOND,
        ttl_max=spec.ttl_max / SECOND,
        hold=seconds_of(spec.hold),
        cooldown=spec.cooldown / SECOND,
        lock_delay=spec.lock_delay / SECOND,
        pacing=None if spec.pacing is None else _pacing_shown(spec.pacing),
        quota=spec.quota,
        queue_max=spec.queue_max,
        labels=spec.labels,
        on_retry=spec.on_retry,
        expire=spec.expire,
        proxy_ttl=seconds_of(spec.proxy_ttl),
        askers=None if spec.askers is None else [*spec.askers],
        priority_max=spec.priority_max,
        hold_max=seconds_of(spec.hold_max),
        queue_max_per_owner=spec.queue_max_per_owner,
        per_member=spec.per_member,
        member_group=spec.member_group,
        native_slots=spec.native_slots,
        generation=pool.generation,
        paused=pool.paused,
        pause_reason=pool.pause_reason if pool.paused else "",
        occupied=pool.occupied,
        units=figures.units,
        resting=figures.resting,
        waiting=pool.waiting,
        free=figures.free,
        over=figures.over,
        unheard=view.unheard,
        slots=view.slots,
        next_grant_at=time_or_none(view.next_grant_at),
        first=None if view.first is None else leases.shown(view.first, mine=False),
        created_at=time_of(pool.created_at),
        updated_at=time_of(pool.updated_at),
        owner_queue_max=owner_queue_max(spec.queue_max, spec.queue_max_per_owner),
    )


def _pacing_shown(pacing: Pacing) -> wire.Pacing:
    return wire.Pacing(
        interval=pacing.interval / SECOND, burst=pacing.burst, jitter=pacing.jitter / SECOND
    )


def report_shown(view: ReportView) -> PoolReport:
    """Convert a report to its wire form."""
    return PoolReport(
        pool=view.pool,
        asked_seconds=view.asked / SECOND,
        covered_seconds=view.covered / SECOND,
        cut=view.cut,
        leases=view.leases,
        waited=_all_seconds(view.waited),
        held=_all_seconds(view.held),
        gave_up=view.gave_up,
        gave_up_after=_all_seconds(view.gave_up_after),
        causes=view.causes,
        outcomes=[_outcome_shown(one) for one in view.outcomes],
    )


def history_shown(pool: str, view: HistoryView) -> PoolHistory:
    """Convert a history to its wire form."""
    return PoolHistory(
        as_of=str(view.as_of),
        pool=pool,
        units=view.units,
        asked_seconds=view.asked / SECOND,
        covered_seconds=view.covered / SECOND,
        cut=view.cut,
        step_seconds=view.step / SECOND,
        points=[
            HistoryPoint(
                at=time_of(one.begins),
                occupied_low=one.occupied_low,
                occupied_high=one.occupied_high,
                waiting=one.waiting,
                granted=one.granted,
            )
            for one in view.buckets
        ],
    )


def scene_of(wanted: SceneWanted, limit: int, hold: int | None) -> Scene:
    """Convert a scene to the service's type. Raises `Error`: INVALID."""
    units = limit if wanted.limit is None else wanted.limit
    if units < 1:
        raise Error(Code.INVALID, "The limit of a scene must be at least 1.")
    if wanted.pacing == "auto":
        return Scene(units, pacing_default(units, hold))
    return Scene(units, _pacing(wanted.pacing))


def rehearsal_shown(pool: str, scenes: Iterable[Scene], view: RehearsalView) -> Rehearsal:
    """Convert a rehearsal to its wire form."""
    return Rehearsal(
        as_of=str(view.as_of),
        pool=pool,
        covered_seconds=view.covered / SECOND,
        cut=view.cut,
        actual=_scene_shown(None, None, view.actual),
        scenes=[
            _scene_shown(scene.limit, scene.pacing, one)
            for scene, one in zip(scenes, view.scenes, strict=True)
        ],
    )


def _scene_shown(limit: int | None, pacing: Pacing | None, one: Summary) -> RehearsedScene:
    return RehearsedScene(
        limit=limit,
        pacing=None if pacing is None else _pacing_shown(pacing),
        jobs=one.jobs,
        never=one.never,
        starts_per_minute=one.starts_per_minute,
        running=one.running,
        waiting=one.waiting,
        last_start_seconds=one.last_start / SECOND,
        waited=_all_seconds(one.waited),
    )


def _all_seconds(durations: Iterable[int] | None) -> list[float] | None:
    return None if durations is None else [one / SECOND for one in durations]


def _outcome_shown(one: OutcomeCount) -> OutcomeLine:
    return OutcomeLine(
        limit=one.limit,
        starts_per_minute=one.starts_per_minute,
        ok=one.ok,
        failed=one.failed,
        throttled=one.throttled,
    )
