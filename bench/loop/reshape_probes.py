"""Reshape plans of thousands of consumers: previewed, committed, shown, and undone again.

The last one goes with the report of an agent.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID, uuid5

CHOSEN, UNDOING = (f"{n:08x}-0000-4000-8000-00000000abcd" for n in (1, 2))
"""The ids of the reshape, and of the one that undoes it."""

RESHAPES = "/v1/reshapes"

VF = "SRIOV_NET_VF"


def reshapes(
    asked: Callable[..., Any], host: str, child: str, consumers: Sequence[str], total: int
) -> Iterator[Any]:
    """Return a request to every route of reshapes.

    Args:
        asked: makes probes.
        host: a provider with units of one class.
        child: the UUID of a provider that is created below it.
        consumers: each holds one unit of the host; all of them move to the child.
        total: the units that move.
    """
    one = f"{RESHAPES}/{{id}}"
    size = f"{len(consumers)} consumers"
    plan = split(host, child, consumers, total)
    yield asked(size, "POST", f"{RESHAPES}:plan", "", {"plan": plan})
    refused = {**plan, "moves": [{**plan["moves"][0], "assign": {}}]}
    yield asked(f"{size}, all refused", "POST", f"{RESHAPES}:plan", "", {"plan": refused})
    yield asked(f"{size}, invalid", "POST", RESHAPES, "", {"plan": refused})
    yield asked(size, "POST", RESHAPES, "", {"plan": plan, "id": CHOSEN})
    yield asked(f"{size}, again", "POST", RESHAPES, "", {"plan": plan, "id": CHOSEN})
    yield asked("reshapes", "GET", RESHAPES, f"{RESHAPES}?limit=1000")
    yield asked(size, "GET", one, f"{RESHAPES}/{CHOSEN}")
    undo = f"{RESHAPES}/{CHOSEN}:undo"
    yield asked(f"{size}, dry run", "POST", f"{one}:undo", undo, {"dry_run": True})
    yield asked(size, "POST", f"{one}:undo", undo, {"id": UNDOING})


def machine_plans(
    asked: Callable[..., Any], host: str, name: str, consumers: Sequence[str], total: int
) -> Iterator[Any]:
    """Return reports of an agent with the largest plan that a machine may send.

    Args:
        asked: makes probes.
        host: a provider with units of one class, which becomes the root of the machine.
        name: of the host.
        consumers: each holds one unit of the host; half of them move, because the plan of a machine
            has only some thousand entries.
        total: the units that move.
    """
    agent, own = "/v1/agents/{id}", "/v1/agents/00000000-0000-4000-8000-0000000000ac"
    part = str(uuid5(UUID(own.rsplit("/", 1)[1]), "numa0"))
    classes = {"CUSTOM_HUGEPAGES_2MB": {"eligible": 1_000}}
    boot: dict[str, Any] = {"boot_id": "boot", "facts": {"hostname": "planner"}, "root": host}
    boot["parts"] = [{"provider": part, "name": "numa0", "parent": host, "classes": classes}]
    yield asked("planner", "PUT", agent, own, {"group": "planners"})
    yield asked("planner", "PUT", f"{agent}/root", f"{own}/root", {"root": host})
    yield asked("planner", "POST", f"{agent}/register", f"{own}/register", boot)
    moved = consumers[: len(consumers) // 2]
    child = f"{name}_gpu0"
    plan = split(host, str(uuid5(UUID(host), child)), moved, total)
    plan["create"][0]["name"] = child
    report = {
        "boot_id": "boot",
        "report_generation": 1,
        "desired_generation_seen": 1,
        "phase": "done",
        "actual": {part: {"CUSTOM_HUGEPAGES_2MB": 0}},
        "plan": plan,
    }
    size = f"a plan with {len(moved)} consumers"
    path = f"{own}/report"
    yield asked(f"{size}, invalid", "PUT", f"{agent}/report", path, report)
    plan = {**plan, "moves": [{**plan["moves"][0], "policy": "only_if_unused"}]}
    yield asked(size, "PUT", f"{agent}/report", path, {**report, "plan": plan})
    yield asked(f"{size}, again", "PUT", f"{agent}/report", path, {**report, "plan": plan})


def split(host: str, child: str, consumers: Sequence[str], total: int) -> dict[str, Any]:
    """Return the plan that moves units of a host, with these consumers, to a new child."""
    return {
        "create": [{"uuid": child, "name": f"child {child}", "parent": host}],
        "moves": [
            {
                "from": {"provider": host, "class": VF},
                "to": {"provider": child, "class": VF},
                "amount": total,
                "assign": {uuid: {child: 1} for uuid in consumers},
            }
        ],
    }
