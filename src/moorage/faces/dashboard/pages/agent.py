"""One agent: what its machine should have, has and offers, and the buttons of operators."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from moorage.faces.dashboard.routing import ROOT, Page, PageRequest, Trial
from moorage.faces.native_api import RefusedError
from moorage.wire.enums import PlanOutcome
from moorage.wire.fleet import Agent, ManagedClass, PartShown
from moorage.wire.operations import fleet

LASTING = {"": "until resumed", "3600": "1 hour", "14400": "4 hours", "86400": "1 day"}
"""How long a drain lasts: seconds, and what the choice is called."""

MOVES = {"drain": fleet.DRAIN_AGENT, "resume": fleet.RESUME_AGENT}
"""The buttons of operators."""

PLAN_OUTCOMES: Mapping[PlanOutcome, str] = {
    "done": "carried out",
    "satisfied": "satisfied: its shape was there already",
    "undone": "carried out, and undone by an operator since",
}
"""What became of the plan of an agent."""

UNCONFIRMED_MAX = 100
"""Unconfirmed consumers that the page lists; it counts the others."""


class ClassBars(NamedTuple):
    """A class of a part, and the length that all its bars share, so that none exceeds it."""

    part: PartShown
    name: str
    managed: ManagedClass
    whole: int


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the page of an agent."""
    agent = await request.get(fleet.GET_AGENT, request.variables["id"])
    moves = [name for name in MOVES if _useful(name, agent)]
    return {
        "title": f"Agent {agent.name}",
        "agent": agent,
        "bars": [
            _bars(part, name, one) for part in agent.parts for name, one in part.classes.items()
        ],
        "unconfirmed": agent.unconfirmed[:UNCONFIRMED_MAX],
        "more_unconfirmed": max(0, len(agent.unconfirmed) - UNCONFIRMED_MAX),
        "moves": [name for name in moves if request.permits(MOVES[name])],
        "lasting": LASTING,
        "plan_outcomes": PLAN_OUTCOMES,
    }


def _bars(part: PartShown, name: str, one: ManagedClass) -> ClassBars:
    return ClassBars(part, name, one, max(one.eligible, one.desired, one.actual, one.used, 1))


def _useful(move: str, agent: Agent) -> bool:
    if agent.state != "active" or agent.policy == "expunged":
        return False
    return move == ("drain" if agent.policy == "in_service" else "resume")


def drain(request: PageRequest) -> Mapping[str, Any]:
    """Place nothing new on the machine."""
    lasts = request.form.get("lasts", "")
    return {**_wanted(request, "drain"), "lasts": _seconds(lasts) if lasts else None}


def resume(request: PageRequest) -> Mapping[str, Any]:
    """Use the machine again."""
    return _wanted(request, "resume")


def _wanted(request: PageRequest, move: str) -> Mapping[str, Any]:
    reason = request.form.get("reason", "")
    return {"action": f"agent.{move}", "target": request.variables["id"], "reason": reason}


def _seconds(text: str) -> float:
    if text not in LASTING:
        raise RefusedError(400, "invalid", "Choose one of the durations that the form offers.")
    return float(text)


AGENT = f"{ROOT}/agents/{{id}}"

ENTRIES = (
    Page(path=AGENT, title="Agent", template="agent.html", show=show, needs=fleet.LIST_AGENTS),
    Trial(path=f"{AGENT}/drain", title="Drain", wanted=drain),
    Trial(path=f"{AGENT}/resume", title="Resume", wanted=resume),
)
