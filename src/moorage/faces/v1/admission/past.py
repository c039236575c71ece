"""The past of a pool: counts over time, and rehearsals of other limits on its own jobs."""

from moorage.core.admission.requests import check_duration
from moorage.core.errors import Code, Error
from moorage.core.limits import SCENES_MAX
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.native.bounds import microseconds
from moorage.service.native.pools import history_shown, rehearsal_shown, scene_of
from moorage.service.pages import check_limit
from moorage.wire.operations import pools as operations
from moorage.wire.pool_reports import HistoryAsked, PoolHistory, Rehearsal, RehearsalWanted


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
