"""Pools: create, change, pause, read."""

from moorage.core.admission.requests import check_duration
from moorage.core.limits import DETAIL_LENGTH_MAX
from moorage.faces.v1 import roles
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.native.bounds import check_text, microseconds
from moorage.service.native.pools import report_shown, shown, spec_of
from moorage.wire import admission as wire
from moorage.wire.operations import pools as operations
from moorage.wire.pages import PageAsked
from moorage.wire.pool_reports import PoolReport, ReportAsked


async def page(request: Request[None, PageAsked]) -> wire.PoolPage:
    """Return a page of pools, ordered by name; with a scope only those within it."""
    asked, scope = request.parameters, request.scope
    pools, following, as_of = await request.service.admission.queries.pools(
        asked.cursor, asked.limit
    )
    seen = [one for one in pools if scope is None or scope.covers(one.pool.name)]
    return wire.PoolPage(pools=[shown(pool) for pool in seen], next=following, as_of=str(as_of))


async def read(request: Request[None, None]) -> wire.Pool:
    """Return one pool."""
    name = request.variables["name"]
    roles.check_scope(request.scope, [name])
    return shown(await request.service.admission.queries.pool(name))


async def put(request: Request[wire.PoolWanted, None]) -> wire.Pool:
    """Create or update a pool."""
    name, wanted = request.variables["name"], request.body
    view = await request.service.admission.pool_put(
        name,
        spec_of(wanted),
        wanted.generation,
        by=request.actor,
        paced=wanted.pacing == "auto",
    )
    return shown(view)


async def delete(request: Request[None, None]) -> None:
    """Delete a pool that is not in use."""
    await request.service.admission.pool_delete(request.variables["name"], by=request.actor)


async def pause(request: Request[wire.PauseWanted, None]) -> wire.Pool:
    """Stop granting from a pool."""
    view = await request.service.admission.pool_pause(
        request.variables["name"],
        True,
        by=request.actor,
        reason=check_text("reason", request.body.reason, DETAIL_LENGTH_MAX),
    )
    return shown(view)


async def resume(request: Request[None, None]) -> wire.Pool:
    """Resume granting from a pool."""
    view = await request.service.admission.pool_pause(
        request.variables["name"], False, by=request.actor
    )
    return shown(view)


async def report(request: Request[None, ReportAsked]) -> PoolReport:
    """Return the statistics that help to choose a pool's limit."""
    since = microseconds("since", request.parameters.since)
    check_duration("since", since)
    queries = request.service.admission.queries
    name, who = request.variables["name"], request.caller.identity
    return report_shown(await queries.report(name, since, who=who))


HANDLERS: Handlers = {
    operations.LIST_POOLS: page,
    operations.PAUSE_POOL: pause,
    operations.RESUME_POOL: resume,
    operations.GET_POOL_REPORT: report,
    operations.GET_POOL: read,
    operations.PUT_POOL: put,
    operations.DELETE_POOL: delete,
}
