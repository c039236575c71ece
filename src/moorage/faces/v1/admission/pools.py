"""Pools: make, change, pause, look at."""

from moorage.faces.v1.routing import Request, Route
from moorage.service.access.roles import Role
from moorage.service.native.pools import report_shown, shown, spec_of
from moorage.wire import admission as wire
from moorage.wire.pages import PageAsked


async def page(request: Request[None, PageAsked]) -> wire.PoolPage:
    """Return pools by name."""
    asked = request.parameters
    pools, following = await request.service.admission.pools(asked.cursor, asked.limit)
    return wire.PoolPage(pools=[shown(pool) for pool in pools], next=following)


async def read(request: Request[None, None]) -> wire.Pool:
    """Return one pool."""
    return shown(await request.service.admission.pool(request.variables["name"]))


async def put(request: Request[wire.PoolWanted, None]) -> wire.Pool:
    """Let a pool be as described."""
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
    """Remove a pool that is not in use."""
    await request.service.admission.pool_delete(request.variables["name"], by=request.actor)


async def pause(request: Request[None, None]) -> wire.Pool:
    """Grant nothing more."""
    return await _paused(request, True)


async def resume(request: Request[None, None]) -> wire.Pool:
    """Grant again."""
    return await _paused(request, False)


async def report(request: Request[None, None]) -> wire.PoolReport:
    """Return what is known for choosing a limit."""
    return report_shown(await request.service.admission.report(request.variables["name"]))


ROUTES = (
    Route(
        method="GET",
        path="/v1/pools",
        role=Role.READER,
        projects=True,
        summary="List pools with what is occupied and who waits for what, by name.",
        handler=page,
        parameters=PageAsked,
        answer=wire.PoolPage,
    ),
    Route(
        method="POST",
        path="/v1/pools/{name+}:pause",
        role=Role.OPERATOR,
        summary="Grant nothing more of a pool; everything else goes on.",
        handler=pause,
        answer=wire.Pool,
    ),
    Route(
        method="POST",
        path="/v1/pools/{name+}:resume",
        role=Role.OPERATOR,
        summary="Grant of a paused pool again.",
        handler=resume,
        answer=wire.Pool,
    ),
    Route(
        method="GET",
        path="/v1/pools/{name+}:report",
        role=Role.READER,
        projects=True,
        summary="Tell how long was waited and held, and what became of the starts at which limit.",
        handler=report,
        answer=wire.PoolReport,
    ),
    Route(
        method="GET",
        path="/v1/pools/{name+}",
        role=Role.READER,
        projects=True,
        summary="Tell of one pool.",
        handler=read,
        answer=wire.Pool,
    ),
    Route(
        method="PUT",
        path="/v1/pools/{name+}",
        role=Role.OPERATOR,
        summary="Make a pool, or let it be as described; a lower limit revokes nothing.",
        handler=put,
        body=wire.PoolWanted,
        answer=wire.Pool,
    ),
    Route(
        method="DELETE",
        path="/v1/pools/{name+}",
        role=Role.OPERATOR,
        summary="Remove a pool that nobody holds units of or waits for.",
        handler=delete,
    ),
)


async def _paused(request: Request[None, None], paused: bool) -> wire.Pool:
    view = await request.service.admission.pool_pause(
        request.variables["name"], paused, by=request.actor
    )
    return shown(view)
