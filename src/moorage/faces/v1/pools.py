"""Pools: make, change, pause, look at."""

from typing import Literal

from moorage.core.admission.model import FREE, SECOND, Pacing, PoolSpec, pacing_default
from moorage.faces.v1 import lease_words
from moorage.faces.v1.bounds import microseconds, microseconds_or_none
from moorage.faces.v1.encoding import seconds_of, time_of, time_or_none
from moorage.faces.v1.routing import Request, Route
from moorage.service.roles import Role
from moorage.service.views import OutcomeCount, PoolView, ReportView
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


def spec_of(wanted: wire.PoolWanted) -> PoolSpec:
    """Return what the core is told of a pool. Raises `Error`: INVALID."""
    hold = microseconds_or_none("hold", wanted.hold)
    return PoolSpec(
        limit=wanted.limit,
        ttl=microseconds("ttl", wanted.ttl),
        ttl_max=microseconds("ttl_max", wanted.ttl_max),
        hold=hold,
        cooldown=microseconds("cooldown", wanted.cooldown),
        lock_delay=microseconds("lock_delay", wanted.lock_delay),
        pacing=_pacing(wanted.pacing, wanted.limit, hold),
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
    )


def _pacing(
    wanted: wire.Pacing | Literal["auto"] | None, limit: int | None, hold: int | None
) -> Pacing | None:
    if wanted is None:
        return None
    if wanted == "auto":
        return pacing_default(limit, hold)
    return Pacing(
        interval=microseconds("pacing.interval", wanted.interval),
        burst=wanted.burst,
        jitter=microseconds("pacing.jitter", wanted.jitter),
    )


def shown(view: PoolView) -> wire.Pool:
    """Return a pool as it is shown."""
    pool, spec = view.pool, view.pool.spec
    return wire.Pool(
        name=pool.name,
        limit=spec.limit,
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
        generation=pool.generation,
        paused=pool.paused,
        occupied=pool.occupied,
        resting=_resting(view),
        waiting=pool.waiting,
        free=view.free,
        over=spec.limit is not None and pool.occupied > spec.limit,
        unheard=view.unheard,
        slots=view.slots,
        next_grant_at=time_or_none(view.next_grant_at),
        first=None if view.first is None else lease_words.shown(view.first, token=False),
        created_at=time_of(pool.created_at),
        updated_at=time_of(pool.updated_at),
    )


def _resting(view: PoolView) -> int:
    """Return the units that nobody holds and that are not free."""
    limit = view.pool.spec.limit
    if limit is not None:
        return limit - view.pool.occupied - view.free
    return view.slots.get(FREE, 0) - view.free


def _pacing_shown(pacing: Pacing) -> wire.Pacing:
    return wire.Pacing(
        interval=pacing.interval / SECOND, burst=pacing.burst, jitter=pacing.jitter / SECOND
    )


def report_shown(view: ReportView) -> wire.PoolReport:
    """Return a report as it is shown."""
    return wire.PoolReport(
        pool=view.pool,
        leases=view.leases,
        waited=_all_seconds(view.waited),
        held=_all_seconds(view.held),
        causes=view.causes,
        outcomes=[_outcome_shown(one) for one in view.outcomes],
    )


def _all_seconds(durations: list[int] | None) -> list[float] | None:
    return None if durations is None else [one / SECOND for one in durations]


def _outcome_shown(one: OutcomeCount) -> wire.OutcomeLine:
    return wire.OutcomeLine(
        limit=one.limit,
        starts_per_minute=one.starts_per_minute,
        ok=one.ok,
        failed=one.failed,
        throttled=one.throttled,
    )
