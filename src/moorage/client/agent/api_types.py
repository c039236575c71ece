"""What an agent sends and receives, and what it observes on its machine.

The names are those of `moorage.wire.fleet`, which is no part of the single file; a test compares
them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from moorage.client.run.api_types import StrangeAnswerError
from moorage.client.run.printing import misfit_text

Amounts = dict[str, dict[str, int]]
"""Amounts by provider and resource class."""

DONE, SATISFIED, UNDONE = "done", "satisfied", "undone"
OUTCOMES = (DONE, SATISFIED, UNDONE)
"""What becomes of a plan that is not refused."""

NONE, REPORT, REGISTER, INERT = "none", "report", "register", "inert"
DIRECTIVES = (NONE, REPORT, REGISTER, INERT)
"""What the server wants the agent to do now."""


class Part(NamedTuple):
    """A part of the machine: its provider and how much of each class it could have at most."""

    provider: str
    name: str
    eligible: tuple[tuple[str, int], ...]

    def body(self) -> dict[str, Any]:
        """Return it as in a register request; its parent is the root."""
        classes = {name: {"eligible": amount} for name, amount in self.eligible}
        return {"provider": self.provider, "name": self.name, "parent": None, "classes": classes}


class Failure(NamedTuple):
    """Why the machine does not have what is desired, after `attempts` tries since `since`."""

    code: str
    message: str
    attempts: int
    next_retry_in: float | None
    since: str


class Observation(NamedTuple):
    """What the machine has, and how far the work has got.

    `desired_generation` is that of the orders it worked towards; None: it had none yet.
    """

    parts: tuple[Part, ...]
    actual: Amounts
    desired_generation: int | None = None
    done: bool = False
    """The first full pass is over, whatever it has obtained."""
    failure: Failure | None = None
    consumers: tuple[str, ...] | None = None
    """The consumers that run on the machine; None: unknown."""


class SettledPlan(NamedTuple):
    """What became of a plan; see `wire.changes.AgentPlan`."""

    outcome: str
    reshape: str | None


class Orders(NamedTuple):
    """The answer to a register and to a report; see `wire.fleet.AgentOrders`."""

    report_generation: int
    desired_generation: int
    desired: Amounts
    ttl: float
    next_in: float
    directive: str
    plan: SettledPlan | None = None


class AliveAnswer(NamedTuple):
    """The answer to a sign of life; see `wire.fleet.AliveAnswer`."""

    desired_generation: int
    ttl: float
    next_in: float
    directive: str


class StartAnswer(NamedTuple):
    """Whether a consumer may start now; see `wire.fleet.StartAnswer`."""

    may_start: bool
    reason: str


def orders_of(values: Any) -> Orders:
    """Convert a decoded answer. Raises StrangeAnswerError."""
    try:
        return Orders(
            report_generation=_count(values["report_generation"]),
            desired_generation=_count(values["desired_generation"]),
            desired={
                str(provider): {str(name): _count(amount) for name, amount in amounts.items()}
                for provider, amounts in values["desired"].items()
            },
            ttl=_duration(values["ttl"]),
            next_in=_duration(values["next_in"]),
            directive=_directive(values["directive"]),
            plan=_plan(values.get("plan")),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StrangeAnswerError(
            f"the response has no orders for an agent: {misfit_text(error)}"
        ) from error


def alive_of(values: Any) -> AliveAnswer:
    """Convert a decoded answer. Raises StrangeAnswerError."""
    try:
        return AliveAnswer(
            desired_generation=_count(values["desired_generation"]),
            ttl=_duration(values["ttl"]),
            next_in=_duration(values["next_in"]),
            directive=_directive(values["directive"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StrangeAnswerError(
            f"the response does not answer a beat: {misfit_text(error)}"
        ) from error


def start_of(values: Any) -> StartAnswer:
    """Convert a decoded answer. Raises StrangeAnswerError."""
    try:
        may_start = values["may_start"]
        if not isinstance(may_start, bool):
            raise TypeError("may_start is not a boolean")
        missing = "" if may_start else _missing(values)
        return StartAnswer(may_start, str(values["reason"]) + missing)
    except (AttributeError, KeyError, TypeError) as error:
        raise StrangeAnswerError(
            f"the response does not answer a start: {misfit_text(error)}"
        ) from error


def _missing(values: Any) -> str:
    """Return what is missing for a start, as the end of a sentence. Raises KeyError, TypeError."""
    texts = []
    for provider, amounts in values["needed"].items():
        for name, needed in amounts.items():
            ahead, there = values["ahead"][provider][name], values["actual"][provider][name]
            if ahead + needed > there:
                texts.append(
                    f"{there} {name} are there; the consumer needs {needed}, consumers before it"
                    f" {ahead}"
                )
    return ": " + "; ".join(texts) if texts else ""


def _plan(value: Any) -> SettledPlan | None:
    if value is None:
        return None
    reshape = value["reshape"]
    return SettledPlan(str(value["outcome"]), None if reshape is None else str(reshape))


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is not an amount")
    return value


def _duration(value: Any) -> float:
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not 0 < seconds < math.inf:
        raise ValueError(f"{value!r} is not a duration")
    return seconds


def _directive(value: Any) -> str:
    if value not in DIRECTIVES:
        raise ValueError(f"{value!r} is not a directive")
    return str(value)
