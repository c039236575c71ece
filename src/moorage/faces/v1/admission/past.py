"""The past of a pool: counts over time, and rehearsals of other limits on its own jobs."""

from collections.abc import Iterable

from moorage.core.admission.forecast.simulate import Summary
from moorage.core.admission.model import Pacing
from moorage.core.admission.pacing import pacing_default
from moorage.core.admission.requests import check_duration
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.limits import SCENES_MAX
from moorage.faces.v1.admission.pools import all_seconds, pacing_shown
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.admission.past import HistoryView, RehearsalView, Scene
from moorage.service.admission.pool_specs import pacing_of
from moorage.service.pages import check_limit
from moorage.service.values import microseconds, time_of
from moorage.wire.operations import pools as operations
from moorage.wire.pools.past import (
    HistoryAsked,
    HistoryPoint,
    PoolHistory,
    Rehearsal,
    RehearsalWanted,
    RehearsedScene,
    SceneWanted,
)


async def history(request: Request[None, HistoryAsked]) -> PoolHistory:
    """Return occupied units and waiting tickets over time."""
    name, asked = request.variables["name"], request.parameters
    since = microseconds("since", asked.since)
    check_duration("since", since)
    check_limit(asked.points)
    past = request.service.admission.past
    who = request.caller.identity
    return history_shown(name, await past.history(name, since, asked.points, who=who))


async def rehearse(request: Request[RehearsalWanted, None]) -> Rehearsal:
    """Replay the jobs of a pool with other limits and pacings."""
    name, wanted = request.variables["name"], request.body
    since = microseconds("since", wanted.since)
    check_duration("since", since)
    if not 1 <= len(wanted.scenes) <= SCENES_MAX:
        raise Error(Code.INVALID, f"scenes must have 1 to {SCENES_MAX} entries.")
    admission = request.service.admission
    pool = await admission.queries.pool(name)
    hold, units = pool.pool.spec.hold, pool.figures.units
    scenes = [scene_of(one, units, hold) for one in wanted.scenes]
    view = await admission.past.rehearse(name, since, scenes, who=request.caller.identity)
    return rehearsal_shown(name, scenes, view)


HANDLERS: Handlers = {
    operations.GET_POOL_HISTORY: history,
    operations.REHEARSE_POOL: rehearse,
}


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
    return Scene(units, pacing_of(wanted.pacing))


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
        pacing=None if pacing is None else pacing_shown(pacing),
        jobs=one.jobs,
        never=one.never,
        starts_per_minute=one.starts_per_minute,
        running=one.running,
        waiting=one.waiting,
        last_start_seconds=one.last_start / SECOND,
        waited=all_seconds(one.waited),
    )
