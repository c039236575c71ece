"""Ironic's state machine: where a verb leads from a state, and how work goes on by itself.

A test of `make baremetal` compares TRANSITIONS with Ironic's. Standard library only.
"""

from typing import Final

MANUAL_END: Final = "manageable"
"""Where cleaning ends that a person has asked for."""

EVENTS: Final = {
    **{name: name for name in ("manage", "provide", "inspect", "abort", "clean", "adopt")},
    **{name: name for name in ("rescue", "unrescue", "unhold", "service", "rebuild")},
    **{"active": "deploy", "deploy": "deploy", "deleted": "delete", "undeploy": "delete"},
}


def _from(states: str, to: str) -> dict[str, str]:
    return dict.fromkeys(states.split(", "), to)


TRANSITIONS: Final[dict[str, dict[str, str]]] = {
    "deploy": _from("available, deploy failed", "deploying"),
    "rebuild": _from("active, error, deploy failed", "deploying"),
    "delete": _from(
        "active, error, rescue, wait call-back, rescue wait, service wait, deploy failed, "
        "rescue failed, unrescue failed, service failed",
        "deleting",
    ),
    "manage": {
        "enroll": "verifying",
        **_from("available, clean failed, inspect failed, adopt failed", "manageable"),
    },
    "provide": {"manageable": "cleaning"},
    "clean": {"manageable": "cleaning"},
    "inspect": _from("manageable, inspect failed", "inspecting"),
    "abort": {
        **_from("wait call-back, deploy hold", "deploy failed"),
        **_from("clean wait, clean hold", "clean failed"),
        **_from("service wait, service hold", "service failed"),
        "inspect wait": "inspect failed",
        "rescue wait": "rescue failed",
        "service failed": "active",
    },
    "adopt": _from("manageable, adopt failed", "adopting"),
    "rescue": _from("active, rescue, rescue failed, unrescue failed, service failed", "rescuing"),
    "unrescue": _from("rescue, rescue failed, unrescue failed", "unrescuing"),
    "unhold": {
        "deploy hold": "wait call-back",
        "clean hold": "clean wait",
        "service hold": "service wait",
    },
    "service": _from("active, service hold, service failed", "servicing"),
}
"""By event: the state that it leads to from another one."""

WORKING: Final = {
    "verifying": ("manageable", "enroll"),
    "deploying": ("active", "deploy failed"),
    "deleting": ("cleaning", "error"),
    "cleaning": ("available", "clean failed"),
    "inspecting": ("manageable", "inspect failed"),
    "adopting": ("active", "adopt failed"),
    "rescuing": ("rescue", "rescue failed"),
    "unrescuing": ("active", "unrescue failed"),
    "servicing": ("active", "service failed"),
}
"""The state after work that succeeds, and that after a failure. Meanwhile Ironic locks the node."""

WAITING: Final = {
    "deploying": "wait call-back",
    "cleaning": "clean wait",
    "inspecting": "inspect wait",
    "rescuing": "rescue wait",
    "servicing": "service wait",
}
"""Where work waits for the agent on the node; then the work goes on. Such a node is not locked."""

HOLDS: Final = ("deploy hold", "clean hold", "service hold")

STATES: Final = frozenset(
    {state for row in TRANSITIONS.values() for pair in row.items() for state in pair}
    | {state for work, ends in WORKING.items() for state in (work, *ends)}
    | {*WAITING.values(), *HOLDS}
)

UPDATE_ALLOWED: Final = frozenset(
    {"deploy failed", "inspecting", "inspect failed", "inspect wait", "clean failed", "error"}
    | {"verifying", "adopt failed", "rescue failed", "unrescue failed", "service failed"}
    | {"service hold"}
)
"""States in which a node can be changed although it is on its way to another one."""

DELETE_ALLOWED: Final = ("manageable", "enroll", "adopt failed", "available")

_KINDS: Final = {
    "active": ("deploying", "wait call-back", "deploy failed", "deploy hold", "adopting"),
    "available": ("cleaning", "clean wait", "clean failed", "clean hold", "deleting"),
    "manageable": ("verifying", "inspecting", "inspect wait", "inspect failed"),
    "rescue": ("rescuing", "rescue wait", "rescue failed"),
}
_ACTIVE: Final = ("adopt failed", "unrescuing", "unrescue failed", "servicing", "service wait")
GOALS: Final = {
    **{state: goal for goal, states in _KINDS.items() for state in states},
    **dict.fromkeys((*_ACTIVE, "service failed", "service hold"), "active"),
}
"""What `target_provision_state` is in a state, unless the work has another goal."""
