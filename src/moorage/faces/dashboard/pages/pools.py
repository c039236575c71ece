"""Pools: all of them, and one with its leases, its line and its past."""

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.fields import ending, unreadable
from moorage.faces.dashboard.plots import plot_of
from moorage.faces.dashboard.routing import ROOT, Answer, Data, Page, PageRequest, Trial
from moorage.faces.native_api import RefusedError
from moorage.wire.admission import Pacing, Pool
from moorage.wire.operations import pools as operations
from moorage.wire.pools.reports import OutcomeLine

SHOWN = 100
HOUR, DAY = "3600", "86400"
SPANS = {HOUR: "hour", "21600": "6 hours", DAY: "day"}
"""How far back a plot goes, in seconds."""

EXPORTED = 1_000
WHOLE = re.compile(r"0|[1-9][0-9]{0,5}")
SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,30})?")
MICROSECOND_DIGITS = 6


async def _page(request: PageRequest, limit: int) -> Any:
    return await request.get(operations.LIST_POOLS, cursor=request.query.get("cursor"), limit=limit)


async def show_all(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of pools, and below the first one the templates that make others."""
    templates = []
    if "cursor" not in request.query and request.permits(operations.LIST_POOL_TEMPLATES):
        templates = (await request.get(operations.LIST_POOL_TEMPLATES)).templates
    return {"page": await _page(request, SHOWN), "templates": templates}


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 pools, from the cursor on."""
    page = await _page(request, EXPORTED)
    return await exported(request, "pools", Pool, page.pools, page.next, page.as_of)


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return a pool, its first leases and tickets, and what it has done."""
    name = _pool(request)
    contents = await request.get(operations.GET_POOL_CONTENTS, name, leases=SHOWN, tickets=SHOWN)
    report = await request.recent(operations.GET_POOL_REPORT, name)
    history = await request.recent(operations.GET_POOL_HISTORY, name, since=_since(request))
    slots = None
    if contents.pool.native_slots or contents.pool.slots:
        slots = await request.get(operations.LIST_SLOTS, name, limit=SHOWN)
    return {
        "title": name,
        "contents": contents,
        "pool": contents.pool,
        "slots": slots,
        "report": report,
        "outcomes": sorted(report.outcomes, key=_rate),
        "history": history,
        "plot": plot_of(history.points, history.step_seconds, history.units),
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
    name = _pool(request)
    pool = await request.get(operations.GET_POOL, name)
    now = pool.pacing or Pacing(interval=0)
    limit = _number(request.query, "limit") or max(1, pool.units)
    interval = _seconds(request.query, "interval", now.interval)
    burst = _number(request.query, "burst") or now.burst
    variables = {
        "title": f"What if: {name}",
        "pool": pool,
        "limit": limit,
        "interval": interval,
        "burst": burst,
        "rehearsal": None,
        "refused": "",
    }
    wanted = replace(now, interval=interval, burst=burst)
    scenes = [_scene(max(1, pool.units), now), _scene(limit, wanted)]
    try:
        rehearsal = await request.ask(operations.REHEARSE_POOL, name, body={"scenes": scenes})
    except RefusedError as refused:
        return {**variables, "refused": refused.message}
    return {**variables, "rehearsal": rehearsal}


def _pool(request: PageRequest) -> str:
    """Return the name of the pool in the address. Raises RefusedError: 404, it has a colon."""
    name = request.variables["name"]
    if ":" in name:
        raise RefusedError(HTTPStatus.NOT_FOUND, "not_found", f"There is no pool '{name}'.")
    return name


def _scene(limit: int, pacing: Pacing) -> dict[str, Any]:
    """Return a scene for the native API; an interval of 0 is no pacing."""
    return {"limit": limit, "pacing": asdict(pacing) if pacing.interval else None}


def _number(fields: Mapping[str, str], name: str, least: int = 1) -> int | None:
    """Return the number in a parameter or field; None: there is none. Raises RefusedError."""
    text = fields.get(name, "")
    if not text:
        return None
    if not WHOLE.fullmatch(text) or int(text) < least:
        raise unreadable(f"{name} must be a whole number from {least} to 999999.")
    return int(text)


def _seconds(fields: Mapping[str, str], name: str, otherwise: float) -> float:
    """Return the seconds in a parameter or field, to the microsecond. Raises RefusedError."""
    text = fields.get(name, "")
    if not text:
        return otherwise
    if not SECONDS.fullmatch(text):
        raise unreadable(f"{name} must be a number of seconds from 0 to 999999.")
    return round(float(text), MICROSECOND_DIGITS)


def pause(request: PageRequest) -> Mapping[str, Any]:
    """Stop granting from a pool."""
    asked = {"action": "pool.pause", "target": _pool(request), **ending(request, "until")}
    return {**asked, "reason": request.form.get("reason", "")}


def resume(request: PageRequest) -> Mapping[str, Any]:
    """Resume granting from a pool."""
    return {"action": "pool.resume", "target": _pool(request)}


def tune(request: PageRequest) -> Mapping[str, Any]:
    """Change the limit and the pacing of a pool."""
    form = request.form
    interval = _seconds(form, "interval", 0.0)
    pacing = Pacing(
        interval=interval, burst=_number(form, "burst") or 1, jitter=_seconds(form, "jitter", 0.0)
    )
    return {
        "action": "pool.tune",
        "target": _pool(request),
        "limit": _number(form, "limit", least=0),
        "pacing": asdict(pacing) if interval else None,
        "generation": _number(form, "generation"),
    }


ONE = f"{ROOT}/pools/{{name+}}"
ENTRIES = (
    Page(path=f"{ROOT}/pools", title="Pools", template="pools.html", show=show_all),
    Data(path=f"{ROOT}/pools.csv", read=export),
    Data(path=f"{ROOT}/pools.json", read=export),
    Page(path=f"{ONE}:what-if", title="What if", template="what_if.html", show=what_if, live=False),
    Trial(path=f"{ONE}:pause", title="Pause", wanted=pause),
    Trial(path=f"{ONE}:resume", title="Resume", wanted=resume),
    Trial(path=f"{ONE}:tune", title="Change limit and pacing of", wanted=tune),
    Page(path=ONE, title="Pool", template="pool.html", show=show_one),
)
