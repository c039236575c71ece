"""Pools: all of them, and one with its leases, its line and its past."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.plots import plot_of
from moorage.faces.dashboard.routing import ROOT, Action, Answer, Data, Page, PageRequest, done
from moorage.faces.native_api import RefusedError
from moorage.wire.admission import Pool
from moorage.wire.pool_reports import OutcomeLine

SHOWN = 100
HOUR, DAY = "3600", "86400"
SPANS = {HOUR: "hour", "21600": "6 hours", DAY: "day"}
"""How far back a plot goes, in seconds."""

EXPORTED = 1_000
DIGITS_MAX = 6


async def _page(request: PageRequest, limit: int) -> Any:
    return await request.get("/v1/pools", cursor=request.query.get("cursor"), limit=limit)


async def show_all(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of pools."""
    return {"page": await _page(request, SHOWN)}


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 pools, from the cursor on."""
    page = await _page(request, EXPORTED)
    return exported(request, "pools", Pool, page.pools, page.next)


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return a pool, its first leases and tickets, and what it has done."""
    name = request.variables["name"]
    address = f"/v1/pools/{name}"
    contents = await request.get(f"{address}:contents", leases=SHOWN, tickets=SHOWN)
    report = await request.recent(f"{address}:report")
    history = await request.recent(f"{address}:history", since=_since(request))
    return {
        "title": name,
        "contents": contents,
        "pool": contents.pool,
        "report": report,
        "outcomes": sorted(report.outcomes, key=_rate),
        "history": history,
        "plot": plot_of(history.points, history.units),
        "spans": SPANS,
        "since": _since(request),
    }


def _since(request: PageRequest) -> str:
    """Return how many seconds of the past the address asks for."""
    asked = request.query.get("since", "")
    return asked if asked in SPANS else DAY


def _rate(line: OutcomeLine) -> tuple[int, int]:
    return line.limit, -1 if line.starts_per_minute is None else line.starts_per_minute


async def what_if(request: PageRequest) -> Mapping[str, Any]:
    """Return what another limit and pacing would have made of the pool's own jobs."""
    name = request.variables["name"]
    address = f"/v1/pools/{name}"
    pool = await request.get(address)
    limit = _number(request.query.get("limit", ""), pool.units)
    interval = _number(request.query.get("interval", ""), _interval(pool))
    pacing = {"interval": interval, "burst": 1} if interval else None
    now = None if pool.pacing is None else asdict(pool.pacing)
    scenes = [{"limit": max(1, pool.units), "pacing": now}, {"limit": limit, "pacing": pacing}]
    variables = {
        "title": f"What if: {name}",
        "pool": pool,
        "limit": limit,
        "interval": interval,
        "rehearsal": None,
        "refused": "",
    }
    try:
        rehearsal = await request.ask("POST", f"{address}:rehearse", body={"scenes": scenes})
    except RefusedError as refused:
        return {**variables, "refused": refused.message}
    return {**variables, "rehearsal": rehearsal}


def _number(text: str, otherwise: int) -> int:
    """Return a number of a form's field; if it is none, or too large, the other one."""
    good = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    return int(text) if good else otherwise


def _interval(pool: Pool) -> int:
    return 0 if pool.pacing is None else round(pool.pacing.interval)


async def pause(request: PageRequest) -> str:
    """Stop granting from a pool."""
    name = request.variables["name"]
    body = {"reason": request.form.get("reason", "")}
    await request.ask("POST", f"/v1/pools/{name}:pause", body=body)
    return done(f"{ROOT}/pools/{name}", "Paused: nothing is granted until somebody resumes it.")


async def resume(request: PageRequest) -> str:
    """Resume granting from a pool."""
    name = request.variables["name"]
    await request.ask("POST", f"/v1/pools/{name}:resume")
    return done(f"{ROOT}/pools/{name}", "Resumed.")


ONE = f"{ROOT}/pools/{{name+}}"
ENTRIES = (
    Page(path=f"{ROOT}/pools", title="Pools", template="pools.html", show=show_all),
    Data(path=f"{ROOT}/pools.csv", read=export),
    Data(path=f"{ROOT}/pools.json", read=export),
    Page(path=f"{ONE}:what-if", title="What if", template="what_if.html", show=what_if, live=False),
    Action(path=f"{ONE}:pause", act=pause),
    Action(path=f"{ONE}:resume", act=resume),
    Page(path=ONE, title="Pool", template="pool.html", show=show_one),
)
