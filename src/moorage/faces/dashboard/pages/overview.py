"""The overview: alarms first, then what is full, what waits longest, and what has changed."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from moorage.core.admission.forecast.overstays import overstay_text
from moorage.core.ages import age_text
from moorage.core.counting import are, counted
from moorage.faces.dashboard.routing import ROOT, Page, PageRequest, address_of
from moorage.wire.admission import Pool
from moorage.wire.fleet import AgentGroup
from moorage.wire.operations import admin, fleet, ledger
from moorage.wire.operations.pools import LIST_POOLS

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
    page = await request.get(LIST_POOLS, limit=POOLS_READ)
    waiting = [pool for pool in page.pools if pool.first is not None]
    waiting.sort(key=_first_asked_at)
    groups, capacity, actions = [], None, []
    if request.permits(fleet.LIST_GROUPS):
        groups = (await request.get(fleet.LIST_GROUPS, limit=POOLS_READ)).groups
    if request.permits(ledger.GET_CAPACITY):
        capacity = await request.recent(ledger.GET_CAPACITY, ends=0, limit=CLASSES_SHOWN)
    if request.permits(admin.LIST_AUDIT):
        entries = (await request.get(admin.LIST_AUDIT, limit=ACTIONS_READ)).entries
        actions = [one for one in entries if not one.action.startswith("session.")]
    return {
        "page": page,
        "alarms": sorted(alarms_of(page.pools, groups, request.now), reverse=True),
        "busy": sorted(page.pools, key=_fullness, reverse=True)[:POOLS_SHOWN],
        "waiting": waiting[:WAITING_SHOWN],
        "lines": len(waiting),
        "capacity": capacity,
        "actions": actions[:ACTIONS_SHOWN],
    }


def _first_asked_at(pool: Pool) -> datetime:
    assert pool.first is not None
    return pool.first.asked_at


def _fullness(pool: Pool) -> tuple[float, int]:
    return ((pool.occupied + pool.resting) / max(1, pool.units), pool.waiting)


def alarms_of(
    pools: Sequence[Pool], groups: Sequence[AgentGroup], now: datetime
) -> Iterator[Alarm]:
    """Yield what is wrong with pools and with groups of agents."""
    for pool in pools:
        address = f"{ROOT}/pools/{quote(pool.name)}"
        if pool.over:
            units = f"{pool.occupied} of {pool.units} units in use"
            yield Alarm(True, f"{pool.name} is over its limit: {units}", address)
        if pool.unheard:
            late = counted(pool.unheard, "lease")
            yield Alarm(True, f"{pool.name}: {late} not renewed in time, units kept", address)
        if pool.paused:
            reason = pool.pause_reason or "no reason given"
            waits = f"; {counted(pool.waiting, 'ticket')} waiting" if pool.waiting else ""
            if pool.first is not None:
                waits += f", the first for {age_text((now - pool.first.asked_at).total_seconds())}"
            by = f"by {pool.paused_by} " if pool.paused_by else ""
            paused = f"{pool.name} is paused {by}{_until(pool, now)}"
            yield Alarm(bool(waits), f"{paused}: {reason}{waits}", address)
        if pool.overstay is not None:
            one = pool.overstay
            age = (now - one.granted_at).total_seconds()
            text = f"{pool.name}: {overstay_text(one.holder, age, one.usual, one.blocks)}"
            waits = f"{counted(pool.waiting, 'ticket')} waiting"
            yield Alarm(one.blocks, f"{text}; {waits}", f"{ROOT}/leases/{one.lease}")
    for group in groups:
        if group.suspect_network:
            text = f"Many agents of {group.name} fell silent together: suspect the network"
            yield Alarm(True, text, _agents("late", group))
        if group.lost:
            text = f"{counted(group.lost, 'agent')} of {group.name} {are(group.lost)} lost"
            yield Alarm(True, text, _agents("lost", group))
        if group.late:
            text = f"{counted(group.late, 'agent')} of {group.name} {are(group.late)} late"
            yield Alarm(False, text, _agents("late", group))


def _until(pool: Pool, now: datetime) -> str:
    if pool.paused_until is None:
        return "until somebody resumes it"
    return f"for {age_text((pool.paused_until - now).total_seconds())} more"


def _agents(liveness: str, group: AgentGroup) -> str:
    """Return the address of a group's agents that are late or lost."""
    query = {"agents": liveness, "agent_group": group.name}
    return address_of(f"{ROOT}/fleet", query) + "#agents"


ENTRIES = (Page(path=ROOT, title="Overview", template="overview.html", show=show),)
