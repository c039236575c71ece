"""Pools: create, change, pause, read; what is in them."""

from collections.abc import Iterable

from msgspec import structs

from moorage.core.admission.bounds import owner_queue_max
from moorage.core.admission.model import Pacing
from moorage.core.admission.requests import check_duration
from moorage.core.clock import SECOND
from moorage.faces.v1 import authorization
from moorage.faces.v1.admission.adaptive import settings_shown, test_shown
from moorage.faces.v1.admission.leases import lease_shown, shown_to
from moorage.faces.v1.admission.shares import fair_share_shown, share_shown
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.admission.pool_cases import PoolDelete, PoolPause, PoolPut
from moorage.service.admission.pool_specs import spec_of
from moorage.service.admission.views import OutcomeCount, OverstayView, PoolView, ReportView
from moorage.service.pages import check_limit
from moorage.service.values import (
    end_of,
    microseconds,
    seconds_of,
    time_of,
    time_or_none,
)
from moorage.wire import admission as wire
from moorage.wire.operations import pools as operations
from moorage.wire.pages import PageAsked
from moorage.wire.pools.reports import (
    OutcomeLine,
    PoolContents,
    PoolContentsAsked,
    PoolReport,
    ReportAsked,
)


async def page(request: Request[None, PageAsked]) -> wire.PoolPage:
    """Return a page of pools, ordered by name; with a scope only those within it."""
    asked, scope = request.parameters, request.caller.scope
    pools, following, as_of = await request.service.admission.queries.pools(
        asked.cursor, asked.limit
    )
    seen = [one for one in pools if scope is None or scope.covers(one.pool.name)]
    return wire.PoolPage(
        pools=[pool_shown(pool) for pool in seen], next=following, as_of=str(as_of)
    )


async def read(request: Request[None, None]) -> wire.Pool:
    """Return one pool."""
    name = request.variables["name"]
    authorization.check_scope(request.caller.scope, [name])
    return pool_shown(await request.service.admission.queries.pool(name))


async def put(request: Request[wire.PoolWanted, None]) -> wire.Pool:
    """Create or update a pool."""
    name, wanted = request.variables["name"], request.body
    case = PoolPut(
        name, request.actor, spec_of(wanted), wanted.generation, paced=wanted.pacing == "auto"
    )
    return pool_shown(await request.service.admission.change_pool(case))


async def delete(request: Request[None, None]) -> None:
    """Delete a pool that is not in use."""
    case = PoolDelete(request.variables["name"], request.actor)
    await request.service.transactor.submit(case)


async def pause(request: Request[wire.PauseWanted, None]) -> wire.Pool:
    """Stop granting from a pool."""
    wanted = request.body
    until, lasts = end_of("A pause", wanted.until, wanted.lasts)
    case = PoolPause(request.variables["name"], request.actor, True, wanted.reason, until, lasts)
    return pool_shown(await request.service.admission.change_pool(case))


async def resume(request: Request[None, None]) -> wire.Pool:
    """Resume granting from a pool."""
    case = PoolPause(request.variables["name"], request.actor, False)
    return pool_shown(await request.service.admission.change_pool(case))


async def report(request: Request[None, ReportAsked]) -> PoolReport:
    """Return the statistics that help to choose a pool's limit."""
    since = microseconds("since", request.parameters.since)
    check_duration("since", since)
    queries = request.service.admission.queries
    name, who = request.variables["name"], request.caller.identity
    return report_shown(await queries.report(name, since, who=who))


async def contents(request: Request[None, PoolContentsAsked]) -> PoolContents:
    """Return a pool with its leases and its line."""
    name, asked = request.variables["name"], request.parameters
    authorization.check_scope(request.caller.scope, [name])
    check_limit(asked.leases)
    check_limit(asked.tickets)
    view = await request.service.admission.queries.contents(name, asked.leases, asked.tickets)
    return PoolContents(
        as_of=str(view.as_of),
        pool=pool_shown(view.pool),
        leases=[shown_to(request, one) for one in view.leases],
        tickets=[shown_to(request, one) for one in view.tickets],
        granted=view.granted.number,
        granted_units=view.granted.units,
        waiting=view.waiting.number,
        waiting_units=view.waiting.units,
    )


HANDLERS: Handlers = {
    operations.LIST_POOLS: page,
    operations.PAUSE_POOL: pause,
    operations.RESUME_POOL: resume,
    operations.GET_POOL_REPORT: report,
    operations.GET_POOL: read,
    operations.PUT_POOL: put,
    operations.DELETE_POOL: delete,
    operations.GET_POOL_CONTENTS: contents,
}


def pool_shown(view: PoolView) -> wire.Pool:
    """Convert a pool to its wire form."""
    pool, spec, figures = view.pool, view.pool.spec, view.figures
    members = structs.asdict(spec)
    members |= {name: seconds_of(members[name]) for name in wire.DURATIONS}
    members["pacing"] = None if spec.pacing is None else pacing_shown(spec.pacing)
    members["adaptive"] = settings_shown(spec.adaptive)
    members["fair_share"] = None if spec.fair_share is None else fair_share_shown(spec.fair_share)
    members["askers"] = None if spec.askers is None else [*spec.askers]
    if spec.per_member is not None:
        members["limit"] = None
    return wire.Pool(
        **members,
        name=pool.name,
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
        paused_until=time_or_none(view.paused_until),
        paused_by=pool.paused_by,
        overstay=None if view.overstay is None else _overstay_shown(view.overstay),
        booked_until=time_or_none(pool.booked_until),
        first=None if view.first is None else lease_shown(view.first, mine=False),
        created_at=time_of(pool.created_at),
        updated_at=time_of(pool.updated_at),
        template=None if pool.on_demand is None else pool.on_demand.template,
        owner_queue_max=owner_queue_max(spec.queue_max, spec.queue_max_per_owner),
        adaptive_test=test_shown(pool, view.at, view.back),
        shares=[share_shown(share) for share in view.shares],
        borrowed=max(0, -figures.free) if spec.cohort is not None else 0,
    )


def _overstay_shown(view: OverstayView) -> wire.Overstay:
    return wire.Overstay(
        lease=view.lease,
        holder=view.holder,
        granted_at=time_of(view.granted_at),
        usual=view.usual / SECOND,
        blocks=view.blocks,
    )


def pacing_shown(pacing: Pacing) -> wire.Pacing:
    """Convert a pacing to its wire form."""
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
        waited=all_seconds(view.waited),
        held=all_seconds(view.held),
        gave_up=view.gave_up,
        gave_up_after=all_seconds(view.gave_up_after),
        causes=view.causes,
        outcomes=[_outcome_shown(one) for one in view.outcomes],
    )


def all_seconds(durations: Iterable[int] | None) -> list[float] | None:
    """Convert durations from microseconds to seconds; None stays None."""
    return None if durations is None else [one / SECOND for one in durations]


def _outcome_shown(one: OutcomeCount) -> OutcomeLine:
    return OutcomeLine(
        limit=one.limit,
        starts_per_minute=one.starts_per_minute,
        ok=one.ok,
        failed=one.failed,
        throttled=one.throttled,
    )
