"""The overview: alarms first, then what is full, what waits longest, and what has changed."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from moorage.faces.dashboard.ages import age_text
from moorage.faces.dashboard.routing import ROOT, Page, PageRequest
from moorage.wire.admission import Pool
from moorage.wire.fleet import AgentGroup

POOLS_READ = 500
POOLS_SHOWN = 8
WAITING_SHOWN = 8
ACTIONS_READ = 100
ACTIONS_SHOWN = 8
CLASSES_SHOWN = 8


class Alarm(NamedTuple):
    """Something that an operator should know first."""

    grave: bool
    text: str
    address: str


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return what the reader may see of pools, fleet and actions."""
    page = await request.get("/v1/pools", limit=POOLS_READ)
    waiting = [pool for pool in page.pools if pool.first is not None]
    waiting.sort(key=lambda pool: pool.first.asked_at)
    groups, capacity, actions = [], None, []
    if request.permits("GET", "/v1/groups"):
        groups = (await request.get("/v1/groups", limit=POOLS_READ)).groups
    if request.permits("GET", "/v1/capacity"):
        capacity = await request.recent("/v1/capacity", ends=0, limit=CLASSES_SHOWN)
    if request.permits("GET", "/v1/audit"):
        entries = (await request.get("/v1/audit", limit=ACTIONS_READ)).entries
        actions = [one for one in entries if not one.action.startswith("session.")]
    return {
        "page": page,
        "alarms": sorted(_alarms(page.pools, groups, request.now), reverse=True),
        "busy": sorted(page.pools, key=_fullness, reverse=True)[:POOLS_SHOWN],
        "waiting": waiting[:WAITING_SHOWN],
        "lines": len(waiting),
        "capacity": capacity,
        "actions": actions[:ACTIONS_SHOWN],
    }


def _fullness(pool: Pool) -> tuple[float, int]:
    return ((pool.occupied + pool.resting) / max(1, pool.units), pool.waiting)


def _alarms(pools: Sequence[Pool], groups: Sequence[AgentGroup], now: datetime) -> Iterator[Alarm]:
    for pool in pools:
        address = f"{ROOT}/pools/{quote(pool.name)}"
        if pool.over:
            units = f"{pool.occupied} of {pool.units} units in use"
            yield Alarm(True, f"{pool.name} is over its limit: {units}", address)
        if pool.unheard:
            text = f"{pool.name}: {pool.unheard} leases were not renewed in time and keep units"
            yield Alarm(True, text, address)
        if pool.paused:
            reason = pool.pause_reason or "nobody has said why"
            waits = f". {pool.waiting} wait" if pool.waiting else ""
            if pool.first is not None:
                waits += f", the first for {age_text((now - pool.first.asked_at).total_seconds())}"
            yield Alarm(bool(waits), f"{pool.name} is paused: {reason}{waits}", address)
    for group in groups:
        here = f"{ROOT}/fleet?agent_group={quote(group.name, safe='')}"
        if group.suspect_network:
            text = f"Many agents of {group.name} fell silent together: suspect the network"
            yield Alarm(True, text, f"{here}#agents")
        if group.lost:
            yield Alarm(
                True, f"{group.lost} agents of {group.name} are lost", f"{here}&agents=lost#agents"
            )
        if group.late:
            yield Alarm(
                False, f"{group.late} agents of {group.name} are late", f"{here}&agents=late#agents"
            )


ENTRIES = (Page(path=ROOT, title="Overview", template="overview.html", show=show),)
