"""Pools: all of them, and one with its leases, its line and its past."""

from collections.abc import Mapping
from typing import Any

from moorage.faces.dashboard.actions import done
from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.routing import ROOT, Action, Answer, Data, Page, PageRequest
from moorage.wire.pool_reports import OutcomeLine

SHOWN = 100
EXPORTED = 1_000


async def _page(request: PageRequest, limit: int) -> Any:
    return await request.get("/v1/pools", cursor=request.query.get("cursor"), limit=limit)


async def show_all(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of pools."""
    return {"page": await _page(request, SHOWN)}


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 pools, from the cursor on."""
    page = await _page(request, EXPORTED)
    return exported(request, "pools", page.pools, page.next)


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return a pool, its first leases and tickets, and what it has done."""
    name = request.variables["name"]
    address = f"/v1/pools/{name}"
    contents = await request.get(f"{address}:contents", leases=SHOWN, tickets=SHOWN)
    report = await request.get(f"{address}:report")
    return {
        "title": name,
        "contents": contents,
        "pool": contents.pool,
        "report": report,
        "outcomes": sorted(report.outcomes, key=_rate),
    }


def _rate(line: OutcomeLine) -> tuple[int, int]:
    return line.limit, -1 if line.starts_per_minute is None else line.starts_per_minute


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
    Action(path=f"{ONE}:pause", act=pause),
    Action(path=f"{ONE}:resume", act=resume),
    Page(path=ONE, title="Pool", template="pool.html", show=show_one),
)
