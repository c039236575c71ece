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
    given = {"root": "00000000-0000-4000-8000-0000000000aa"}
    yield asked("no such root", "PUT", f"{agent}/root", f"{own}/root", given)
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


def reporters(asked: Callable[..., P]) -> Iterator[P]:
    """Return a request to every route of groups of reporters: the life of one member."""
    group, own = "/v1/reporter-groups/{name}", "/v1/reporter-groups/probed"
    member = "00000000-0000-4000-8000-0000000000b1"
    node = "00000000-0000-4000-8000-0000000000b2"
    joined = {"instance": member, "ttl": 30}
    yield asked("join", "PUT", f"{group}/members/{{member}}", f"{own}/members/one", joined)
    yield asked("reporter groups", "GET", "/v1/reporter-groups")
    yield asked("reporter group", "GET", group, own)
    seen = {"members": ["one"], "seen_at": "2026-01-02T03:04:05Z"}
    yield asked("observed", "PUT", f"{group}/observed", f"{own}/observed", seen)
    pins = {"nodes": [node], "member": "one"}
    yield asked("pin", "POST", f"{group}/pins", f"{own}/pins", pins)
    yield asked("pins", "GET", f"{group}/pins", f"{own}/pins?limit=1000")
    yield asked("nodes", "GET", f"{group}/nodes", f"{own}/nodes?limit=1000")
    yield asked("ghosts", "GET", f"{group}/ghosts", f"{own}/ghosts?limit=1000")
    sent = {"group": "probed", "member": "one", "token": "1.1", "nodes": [{"uuid": node}]}
    yield asked("report, invalid token", "POST", "/v1/reports", "", sent)
    yield asked("leave", "DELETE", f"{group}/members/{{member}}", f"{own}/members/one")
    yield asked("reporter group", "DELETE", group, own)
