"""Requests to every route of the fleet, whose time on the event loop is measured."""

from collections.abc import Callable, Iterator
from typing import TypeVar
from uuid import UUID, uuid5

P = TypeVar("P")


def fleet(asked: Callable[..., P]) -> Iterator[P]:
    """Return a request to every route of agents and groups: the life of one agent."""
    agent, own = "/v1/agents/{id}", "/v1/agents/00000000-0000-4000-8000-0000000000a9"
    group = "/v1/groups/{name+}"
    part = str(uuid5(UUID(own.rsplit("/", 1)[1]), "numa0"))
    classes = {"CUSTOM_HUGEPAGES_2MB": {"eligible": 1_000}}
    parts = [{"provider": part, "name": "numa0", "classes": classes}]
    registered = {"boot_id": "boot", "facts": {"hostname": "probed"}, "parts": parts}
    yield asked("agent", "PUT", agent, own, {"group": "probed"})
    yield asked("agent", "POST", f"{agent}/enroll", f"{own}/enroll", {"group": "probed"})
    yield asked("machine", "POST", f"{agent}/register", f"{own}/register", registered)
    wanted = {"resource_class": "CUSTOM_HUGEPAGES_2MB", "amount": 100}
    yield asked("machine", "POST", f"{agent}/desired", f"{own}/desired", wanted)
    reported = {
        "boot_id": "boot",
        "report_generation": 1,
        "desired_generation_seen": 1,
        "phase": "done",
        "actual": {part: {"CUSTOM_HUGEPAGES_2MB": 100}},
    }
    yield asked("machine", "PUT", f"{agent}/report", f"{own}/report", reported)
    beat = {"boot_id": "boot", "report_generation": 1}
    yield asked("sign of life", "POST", f"{agent}/alive", f"{own}/alive", beat)
    start = f"{agent}/starts/{{consumer}}"
    yield asked("nobody", "GET", start, f"{own}/starts/{part}?boot_id=boot")
    yield asked("agent", "GET", agent, own)
    yield asked("agents", "GET", "/v1/agents", "/v1/agents?limit=1000")
    yield asked("groups", "GET", "/v1/groups")
    yield asked("group", "GET", group, "/v1/groups/probed")
    yield asked("group", "PUT", group, "/v1/groups/probed", {"desired": {}})
    yield asked("group", "POST", f"{group}:wait", "/v1/groups/probed:wait", {"seconds": 1})
    yield asked("group", "POST", f"{group}:confirm", "/v1/groups/probed:confirm")
    for action in ("drain", "resume", "expunge", "decommission"):
        yield asked(action, "POST", f"{agent}/{action}", f"{own}/{action}", {"reason": "probed"})
    yield asked("group", "DELETE", group, "/v1/groups/probed")
