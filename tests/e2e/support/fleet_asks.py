"""Valid requests to the routes of the fleet, for `texts.py` to put other texts into them."""

from uuid import UUID, uuid5

from tests.e2e.support.texts import CONSUMER, FRESH, PROVIDER, RISING, Ask

AGENT = "00000001-eeee-4eee-8eee-eeeeeeeeeeee"
"""It reports; its register is always the same."""

BOOTING = "00000002-eeee-4eee-8eee-eeeeeeeeeeee"
"""It boots again and again, with other texts."""

_CLASS = "CUSTOM_PAGES"
_AGENT = "/v1/agents/{}"


def _numa0(agent: str) -> str:
    return str(uuid5(UUID(agent), "numa0"))


def _register(agent: str, boot: str, **more: str) -> Ask:
    classes = {_CLASS: {"eligible": 9, "volatile": True, "max_unit": 9, "step_size": 1}}
    part = {"provider": _numa0(agent), "name": "numa0", "parent": agent, "classes": classes}
    body = {
        "boot_id": boot,
        "facts": {"hostname": f"host-{agent[:8]}", "kernel": "6.1", "version": "1.0"},
        "labels": {"row": "7"},
        "parts": [part],
        **more,
    }
    return Ask("POST", f"{_AGENT}/register", (agent,), body=body)


CREATED = Ask("PUT", _AGENT, (AGENT,), body={"group": "g", "labels": {"a": "b"}})
REGISTERED = _register(AGENT, "boot-1")
"""Sent as it is: another boot would supersede this one."""

FLEET_ASKS = (
    CREATED,
    Ask("PUT", _AGENT, (BOOTING,), body={"group": "g", "labels": {}, "policy": "in_service"}),
    Ask("PUT", _AGENT, (FRESH,), body={"group": "g", "labels": {"a": "b"}}),
    Ask("POST", f"{_AGENT}/enroll", (FRESH,), body={"group": "g", "labels": {"a": "b"}}),
    _register(BOOTING, FRESH),
    Ask("POST", f"{_AGENT}/register", (AGENT,), body={"root": PROVIDER}, sure=False),
    Ask(
        "PUT",
        f"{_AGENT}/report",
        (AGENT,),
        body={
            "boot_id": "boot-1",
            "report_generation": RISING,
            "desired_generation_seen": 1,
            "phase": "done",
            "actual": {_numa0(AGENT): {_CLASS: 3}},
            "consumers": [CONSUMER],
            "failure": {
                "code": "short",
                "message": "too little",
                "attempts": 1,
                "next_retry_in": 5,
                "since": "2026-01-01T00:00:00Z",
            },
        },
    ),
    Ask(
        "POST",
        f"{_AGENT}/alive",
        (AGENT,),
        body={"boot_id": "boot-1", "report_generation": 1},
        sure=False,
    ),
    Ask(
        "GET",
        f"{_AGENT}/starts/{{}}",
        (AGENT, CONSUMER),
        query=(("boot_id", "boot-1"), ("wait", "0")),
        sure=False,
    ),
    Ask(
        "POST",
        f"{_AGENT}/desired",
        (AGENT,),
        body={"resource_class": _CLASS, "provider": _numa0(AGENT), "amount": 2, "reason": "r"},
    ),
    Ask("POST", f"{_AGENT}/drain", (AGENT,), body={"reason": "r", "lasts": 60}),
    Ask(
        "POST",
        f"{_AGENT}/drain",
        (AGENT,),
        body={"reason": "r", "until": "2200-01-01T00:00:00+01:00"},
    ),
    Ask("POST", f"{_AGENT}/resume", (AGENT,), body={"reason": "r", "force": False}),
    Ask("POST", f"{_AGENT}/expunge", (FRESH,), body={"reason": "r"}, sure=False),
    Ask("POST", f"{_AGENT}/decommission", (FRESH,), body={"reason": "r"}, sure=False),
    Ask("GET", _AGENT, (AGENT,)),
    Ask(
        "GET",
        "/v1/agents",
        query=(("group", "g"), ("policy", "in_service"), ("label", "a=b"), ("limit", "5")),
    ),
    Ask("PUT", "/v1/groups/{}", ("g",), body={"desired": {_CLASS: {"percent": 50.5}}}),
    Ask("POST", "/v1/groups/{}:wait", ("g",), body={"seconds": 1}, sure=False),
    Ask("POST", "/v1/groups/{}:confirm", ("g",), sure=False),
    Ask("GET", "/v1/groups/{}", ("g",)),
    Ask("GET", "/v1/groups", query=(("cursor", "a"), ("limit", "5"))),
    Ask("DELETE", "/v1/groups/{}", ("h",), sure=False),
)
