"""Ironic's provision states: which are busy, and which verbs make a node busy.

Source: `ironic/common/states.py` and `state_machine.py` of release 39; a test compares them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

BUSY: Final = frozenset(
    {
        "verifying",
        "deploying",
        "wait call-back",
        "deleting",
        "cleaning",
        "clean wait",
        "inspecting",
        "inspect wait",
        "adopting",
        "rescuing",
        "rescue wait",
        "unrescuing",
        "servicing",
        "service wait",
    }
)
"""Ironic's UNSTABLE_STATES: it works on the node, or waits for the node's agent."""

HOLD: Final = frozenset({"deploy hold", "clean hold", "service hold"})
"""A person must continue the work: `unhold` makes the node busy again."""

RESTING: Final = frozenset(
    {
        *("enroll", "manageable", "available", "active", "rescue", "error"),
        *("deploy failed", "clean failed", "inspect failed", "adopt failed", "rescue failed"),
        *("unrescue failed", "service failed"),
    }
)
"""The other states of release 39: no work is under way."""

EVENTS: Final[Mapping[str, str]] = {
    "active": "deploy",
    "deploy": "deploy",
    "rebuild": "rebuild",
    "deleted": "delete",
    "undeploy": "delete",
    "manage": "manage",
    "provide": "provide",
    "inspect": "inspect",
    "abort": "abort",
    "clean": "clean",
    "adopt": "adopt",
    "rescue": "rescue",
    "unrescue": "unrescue",
    "unhold": "unhold",
    "service": "service",
}
"""The event of each verb, that is, of each `target` of a request."""

BUSY_FROM: Final[Mapping[str, frozenset[str]]] = {
    "deploy": frozenset({"available", "deploy failed"}),
    "rebuild": frozenset({"active", "error", "deploy failed"}),
    "manage": frozenset({"enroll"}),
    "provide": frozenset({"manageable"}),
    "inspect": frozenset({"manageable", "inspect failed"}),
    "abort": frozenset(),
    "clean": frozenset({"manageable"}),
    "adopt": frozenset({"manageable", "adopt failed"}),
    "rescue": frozenset({"active", "rescue", "rescue failed", "unrescue failed", "service failed"}),
    "unrescue": frozenset({"rescue", "rescue failed", "unrescue failed"}),
    "unhold": HOLD,
    "service": frozenset({"active", "service failed", "service hold"}),
    "delete": frozenset(
        {
            "active",
            "error",
            "rescue",
            "deploy failed",
            "rescue failed",
            "unrescue failed",
            "service failed",
        }
    ),
}
"""The states, not busy themselves, from which an event makes a node busy; others of the event are
refused by Ironic, or lead to a state that is not busy."""


VERBS_OF_STATE: Final[Mapping[str, frozenset[str]]] = {
    "verifying": frozenset({"manage"}),
    "deploying": frozenset({"active", "deploy", "rebuild"}),
    "wait call-back": frozenset({"active", "deploy", "rebuild"}),
    "deleting": frozenset({"deleted", "undeploy"}),
    "cleaning": frozenset({"clean", "provide", "deleted", "undeploy"}),
    "clean wait": frozenset({"clean", "provide", "deleted", "undeploy"}),
    "inspecting": frozenset({"inspect"}),
    "inspect wait": frozenset({"inspect"}),
    "adopting": frozenset({"adopt"}),
    "rescuing": frozenset({"rescue"}),
    "rescue wait": frozenset({"rescue"}),
    "unrescuing": frozenset({"unrescue"}),
    "servicing": frozenset({"service"}),
    "service wait": frozenset({"service"}),
}
"""The verbs that lead to each busy state."""


DONE: Final[Mapping[str, str]] = {
    "active": "active",
    "deploy": "active",
    "adopt": "active",
    "unrescue": "active",
    "rescue": "rescue",
    "deleted": "available",
    "undeploy": "available",
    "provide": "available",
    "manage": "manageable",
}
"""The state in which there is nothing left to do for a verb; other verbs can always be repeated."""

FAILED: Final = frozenset(
    {
        "enroll",
        "deploy failed",
        "clean failed",
        "inspect failed",
        "adopt failed",
        "rescue failed",
        "unrescue failed",
        "service failed",
        "error",
    }
)
"""Where work leads that fails; `enroll`: the node could not be verified."""


class Requirement(StrEnum):
    """The unit that a request for a provision state needs before it is forwarded."""

    UNIT = "unit"
    """A unit of the pool: it makes the node busy."""
    FORCED = "forced"
    """A unit that is granted at once, over the limit if necessary."""
    NOTHING = "nothing"
    """Ironic refuses it, or it does not make the node busy."""


def requirement_of(verb: str, state: str) -> Requirement:
    """Return what a request of a client needs.

    Its tear-down is never held back, because it goes on into cleaning without another request. A
    node that is busy has its unit already. A verb or a state of a newer Ironic needs a unit,
    because nothing shows that no work begins; if Ironic refuses the verb, the unit is free at once.

    Args:
        verb: the `target` of the request.
        state: the provision state of the node.
    """
    if EVENTS.get(verb) == "delete":
        return Requirement.FORCED
    return own_requirement_of(verb, state)


def own_requirement_of(verb: str, state: str) -> Requirement:
    """Return what a request of Moorage itself needs: of a wish or a rollout.

    Nothing of it is forced: nobody waits for an answer, so a tear-down waits for its unit, too.

    Args:
        verb: the `target` of the request.
        state: the provision state of the node.
    """
    event = EVENTS.get(verb)
    if state in BUSY:
        return Requirement.NOTHING
    is_known = event is not None and state in RESTING | HOLD
    if event is not None and is_known and state not in BUSY_FROM[event]:
        return Requirement.NOTHING
    return Requirement.UNIT


def synonyms_of(verb: str) -> frozenset[str]:
    """Return the verbs with the same event, the verb included: `deploy` is `active`."""
    event = EVENTS.get(verb)
    return frozenset({verb, *(one for one, its in EVENTS.items() if its == event)})


def ruling_verbs(verb: str) -> frozenset[str]:
    """Return the verbs by which a rule concerns a request: of an unknown one all."""
    return synonyms_of(verb) if verb in EVENTS else frozenset({verb, *EVENTS})


def is_busy(state: str, *, hold_counts: bool = False) -> bool:
    """Return whether a node in this state occupies a unit; `hold_counts`: also if it is on hold."""
    return state in BUSY or (hold_counts and state in HOLD)
