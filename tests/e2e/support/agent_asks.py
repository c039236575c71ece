"""Valid requests to every route of agents and their groups, for `texts.py`, as `asks.py`.

Each kind of message has an agent of its own, so that a text that is accepted in one place, such as
another boot, does not make all later messages stale.
"""

from typing import Any
from uuid import UUID, uuid5

from tests.e2e.support.texts import CONSUMER, COUNT, FRESH, Ask

PAGES = "CUSTOM_HUGEPAGES_2MB"
BOOT = "boot-1"

REGISTERING, REPORTING, BEATING, OPERATED, ENDED = (
    f"{n:08d}-eeee-4eee-8eee-eeeeeeeeeeee" for n in range(1, 6)
)
_ONE = "/v1/agents/{}"
_GROUP = "/v1/groups/{}"


def _numa0(agent: str) -> str:
    return str(uuid5(UUID(agent), "numa0"))


def _register(agent: str, **members: Any) -> Ask:
    """Return a register of an agent with one part."""
    size = {"eligible": 1_000, "volatile": True, "max_unit": 512, "step_size": 1}
    part = {"provider": _numa0(agent), "name": "numa0", "parent": None, "classes": {PAGES: size}}
    facts = {"hostname": f"host-{agent[:8]}", "kernel": "6.18", "version": "1"}
    body = {"boot_id": BOOT, "facts": facts, "root": None, "labels": {"a": "b"}, "parts": [part]}
    return Ask("POST", f"{_ONE}/register", (agent,), body={**body, **members})


AGENT_ASKS = (
    *(
        Ask("PUT", _ONE, (agent,), body={"group": "default", "labels": {"a": "b"}})
        for agent in (REGISTERING, REPORTING, BEATING)
    ),
    Ask(
        "PUT",
        _ONE,
        (OPERATED,),
        body={"group": "rack/a", "labels": {"a": "b"}, "policy": "in_service"},
    ),
    *(_register(agent) for agent in (REGISTERING, REPORTING, BEATING, OPERATED)),
    Ask(
        "PUT",
        f"{_ONE}/report",
        (REPORTING,),
        body={
            "boot_id": BOOT,
            "report_generation": COUNT,
            "desired_generation_seen": 0,
            "phase": "done",
            "actual": {_numa0(REPORTING): {PAGES: 100}},
            "consumers": [FRESH],
            "failure": {
                "code": "hugepages_short",
                "message": "the kernel has given fewer",
                "attempts": 3,
                "next_retry_in": 60.0,
                "since": "2026-01-01T00:00:00Z",
            },
        },
    ),
    Ask("POST", f"{_ONE}/alive", (BEATING,), body={"boot_id": BOOT, "report_generation": 0}),
    Ask("POST", f"{_ONE}/enroll", (FRESH,), body={"group": "rack/b", "labels": {"a": "b"}}),
    Ask(
        "GET",
        f"{_ONE}/starts/{{}}",
        (BEATING, CONSUMER),
        query=(("boot_id", BOOT), ("wait", "0.001")),
        sure=False,
    ),
    Ask(
        "POST",
        f"{_ONE}/desired",
        (OPERATED,),
        body={
            "resource_class": PAGES,
            "provider": _numa0(OPERATED),
            "amount": 10,
            "reason": "texts",
        },
    ),
    Ask("POST", f"{_ONE}/desired", (OPERATED,), body={"resource_class": PAGES, "percent": 12.5}),
    Ask("POST", f"{_ONE}/drain", (OPERATED,), body={"reason": "texts", "lasts": 60.0}),
    Ask(
        "POST",
        f"{_ONE}/drain",
        (OPERATED,),
        body={"reason": "texts", "until": "2090-01-01T00:00:00Z", "force": False},
    ),
    Ask("POST", f"{_ONE}/resume", (OPERATED,), body={"reason": "texts"}),
    Ask("PUT", f"{_ONE}/root", (OPERATED,), body={"root": OPERATED}),
    Ask("PUT", _ONE, (ENDED,), body={"policy": "expunged"}),
    Ask("POST", f"{_ONE}/expunge", (ENDED,), body={"reason": "texts"}),
    Ask("POST", f"{_ONE}/decommission", (ENDED,), body={"reason": "texts", "force": False}),
    Ask("GET", _ONE, (OPERATED,), headers=True),
    Ask(
        "GET",
        "/v1/agents",
        query=(
            *(("group", "default"), ("policy", "in_service"), ("state", "active")),
            *(("readiness", "ready"), ("liveness", "fresh"), ("label", "a=b")),
            *(("offered", "false"), ("cursor", REGISTERING), ("limit", "5")),
        ),
    ),
    Ask("GET", "/v1/agents", query=(("label", "a"), ("limit", "5"))),
    Ask(
        "PUT",
        _GROUP,
        ("rack",),
        body={"desired": {PAGES: {"amount": None, "percent": 50.0}, "CUSTOM_B": {"amount": 1}}},
    ),
    Ask("GET", _GROUP, ("rack",)),
    Ask("GET", "/v1/groups", query=(("cursor", "a"), ("limit", "5"))),
    Ask("POST", f"{_GROUP}:wait", ("rack",), body={"seconds": 1.0}),
    Ask("POST", f"{_GROUP}:confirm", ("rack",)),
    Ask("DELETE", _GROUP, ("rack",)),
)
"""Requested in this order at first, all succeed."""
