"""Reshape plans of thousands of consumers: previewed, committed, shown, and undone again."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

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
