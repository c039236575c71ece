"""The fleet: what there is of each class, which agents need attention, the map of all machines."""

from collections.abc import Mapping
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.pages import fleet_data, fleet_map
from moorage.faces.dashboard.pages.machine import CLOSED
from moorage.faces.dashboard.routing import ROOT, Answer, Data, Page, PageRequest
from moorage.wire.capacity import CapacityLine
from moorage.wire.fleet import Agent, AgentPage
from moorage.wire.operations import fleet as operations
from moorage.wire.operations import ledger

LINES_SHOWN = 100
ENDS_SHOWN = 2
AGENTS_SHOWN = 50
GROUPS_SHOWN = 100
EXPORTED_MAX = 1_000
"""Rows of one export; the native API has the rest."""

IN_SERVICE = {"state": "active", "policy": "in_service"}
"""Groups count only these as late or lost: nobody misses a machine that was drained."""

FILTERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "all": ("All", {}),
    "late": ("Late", {"liveness": "late", **IN_SERVICE}),
    "lost": ("Lost", {"liveness": "lost", **IN_SERVICE}),
    "failed": ("Failed", {"readiness": "failed", "state": "active"}),
    "degraded": ("Degraded", {"readiness": "degraded", "state": "active"}),
    "drained": ("Drained", {"policy": "no_provision", "state": "active"}),
    "closed": ("Offering nothing", {"offered": "false", "state": "active"}),
}
"""The lists of agents: the text of the link, and parameters of `/v1/agents`."""

TROUBLES = ("lost", "failed", "late", "degraded")
"""Those of the lists that need attention, the worst first."""

COLOURS = {
    "condition": "Condition",
    "used": "Used",
    "offered": "Offered",
    "reserved": "Reserved",
}
"""How the map is coloured: at first by what is wrong, so that it is seen at once."""

MAP_GROUPS: Mapping[fleet_map.Grouping, str] = {
    "name": "Name prefix (rack)",
    "aggregate": "Aggregate",
    "trait": "Traits",
    "agents": "Agent group",
}


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the page."""
    by = request.query.get("by", "class")
    capacity = await request.recent(
        ledger.GET_CAPACITY,
        by=by,
        resource_class=request.query.get("resource_class") or None,
        ends=ENDS_SHOWN,
        limit=LINES_SHOWN,
    )
    chosen = request.query.get("agents", "all")
    agents = groups = None
    troubled: list[Agent] = []
    if request.permits(operations.LIST_AGENTS):
        agents = await _agents(request, AGENTS_SHOWN)
        if chosen == "all" and not request.query.get("cursor"):
            troubled = await _troubled(request)
        groups = (await request.get(operations.LIST_GROUPS, limit=GROUPS_SHOWN)).groups
    mapped = request.permits(fleet_data.NEEDS)
    return {
        "by": by,
        "capacity": capacity,
        "closed": CLOSED,
        "agents": agents,
        "troubled": troubled,
        "groups": groups,
        "filters": [
            (text, request.address(agents=name, cursor=None), name == chosen)
            for name, (text, _) in FILTERS.items()
        ],
        "mapped": mapped,
        "classes": sorted(request.service.index.catalog.summaries.classes) if mapped else [],
        "map_groups": MAP_GROUPS,
        "colours": COLOURS,
        "chosen": {
            "group": request.query.get("group", fleet_map.GROUPINGS[0]),
            "class": request.query.get("class", ""),
            "colour": request.query.get("colour", next(iter(COLOURS))),
            "find": request.query.get("find", ""),
        },
    }


async def _troubled(request: PageRequest) -> list[Agent]:
    """Return agents that need attention, the worst first; at most `AGENTS_SHOWN`."""
    found: dict[str, Agent] = {}
    for name in TROUBLES:
        page = await request.get(
            operations.LIST_AGENTS,
            **FILTERS[name][1],
            group=request.query.get("agent_group") or None,
            limit=AGENTS_SHOWN,
        )
        found |= {one.id: one for one in page.agents if one.id not in found}
    return [*found.values()][:AGENTS_SHOWN]


async def _agents(request: PageRequest, limit: int) -> AgentPage:
    """Return the agents that the address asks for; an unknown filter shows all."""
    _, wanted = FILTERS.get(request.query.get("agents", "all"), FILTERS["all"])
    group, cursor = request.query.get("agent_group"), request.query.get("cursor")
    return await request.get(
        operations.LIST_AGENTS, **wanted, group=group or None, cursor=cursor or None, limit=limit
    )


# Exports


async def capacity_export(request: PageRequest) -> Answer:
    """Return the sums of the page, as of one revision."""
    sums = await request.get(
        ledger.GET_CAPACITY,
        by=request.query.get("by", "class"),
        resource_class=request.query.get("resource_class") or None,
        ends=1,
        limit=EXPORTED_MAX,
    )
    complete = not sums.left_out
    return await exported(
        request, "capacity", CapacityLine, sums.lines, None, sums.as_of, complete=complete
    )


async def agents_export(request: PageRequest) -> Answer:
    """Return the agents of the page from the cursor on, and the cursor of what did not fit."""
    page = await _agents(request, EXPORTED_MAX)
    return await exported(request, "agents", Agent, page.agents, page.next)


FLEET = f"{ROOT}/fleet"

ENTRIES = (
    Page(path=FLEET, title="Fleet", template="fleet.html", show=show, needs=ledger.GET_CAPACITY),
    Data(path=f"{FLEET}/capacity.csv", read=capacity_export),
    Data(path=f"{FLEET}/capacity.json", read=capacity_export),
    Data(path=f"{FLEET}/agents.csv", read=agents_export),
    Data(path=f"{FLEET}/agents.json", read=agents_export),
    Data(path=f"{FLEET}/map.json", read=fleet_data.columns),
    Data(path=f"{FLEET}/names.json", read=fleet_data.names),
)
