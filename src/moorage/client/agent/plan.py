"""The plan of a machine: how its tree of providers is to change, sent once for each boot.

Nothing about a plan stops the agent: one that cannot be read or that is refused is said in the log
and reported as a failure, and the agent goes on without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from moorage.client.agent.api_types import DONE, UNDONE, Failure, SettledPlan
from moorage.client.transport import RefusedError

PLAN_REFUSED = "plan_refused"
"""The code of the failure."""

REFUSED_STATUSES = (400, 413, 422)
REFUSED_CODES = ("reshape_refused", "key_reused")
"""How the server refuses a plan, or a report because of its plan: sent again, it would be refused
again."""

NOT_ACCEPTED = "not_accepted"
"""How it refuses any plan of an agent until an operator has accepted it."""

AGAIN_SECONDS = 60.0
"""How long the plan of such an agent waits until it is sent again."""

VIOLATIONS_SAID_MAX = 20
MESSAGE_LENGTH_MAX = 1_000


class Plan:
    """The plan of one machine, until the server has settled or refused it."""

    def __init__(self, document: dict[str, Any] | None, instant: Callable[[], str] = str) -> None:
        """Take a document; None: there is no plan.

        `instant` returns the time of day as text, for failures.
        """
        self.document = document
        """What is to be sent; None: nothing any more."""
        self.failure: Failure | None = None
        """Why it could not be carried out; None: nothing is wrong."""
        self._instant = instant
        self._waits_until = 0.0
        self._waits = False

    def due(self, now: float) -> dict[str, Any] | None:
        """Return the document if it is to be sent now (seconds of the protocol's clock)."""
        return None if now < self._waits_until else self.document

    def postponed(self, now: float) -> list[str]:
        """Let it wait until an operator has accepted the agent; return lines for people, once."""
        first, self._waits = not self._waits, True
        self._waits_until = now + AGAIN_SECONDS
        return ["the plan waits until an operator accepts this agent"] if first else []

    def settled(self, plan: SettledPlan) -> str:
        """Take what became of it; return a line for people."""
        self.document = None
        if plan.outcome == DONE:
            return f"the plan is carried out, as reshape {plan.reshape}"
        if plan.outcome == UNDONE:
            return (
                f"the plan was carried out in this boot as reshape {plan.reshape}, and an operator"
                " has undone it: it is not carried out again before the next boot"
            )
        return "the plan is satisfied: its shape is there already"

    def is_refused_by(self, error: RefusedError) -> bool:
        """Return whether the same report would be refused again because of its plan."""
        return error.status in REFUSED_STATUSES or error.code in REFUSED_CODES

    def refused(self, error: RefusedError) -> list[str]:
        """Take a refusal; return lines for people, with all violations if they are few."""
        self.failed(str(error))
        lines = [f"the plan is refused, and this agent goes on without it: {error}"]
        violations = error.problem.get("violations")
        if isinstance(violations, list):
            said = [one for one in violations if isinstance(one, dict)]
            lines += [
                f"violation {one.get('code')}: {one.get('message')}"
                for one in said[:VIOLATIONS_SAID_MAX]
            ]
            if len(said) > VIOLATIONS_SAID_MAX:
                lines.append(f"and {len(said) - VIOLATIONS_SAID_MAX} more violations")
        return lines

    def failed(self, why: str) -> None:
        """Give it up, for a reason that the server is to show."""
        self.document = None
        message = "".join(one for one in why if one.isprintable())[:MESSAGE_LENGTH_MAX]
        self.failure = Failure(PLAN_REFUSED, message, 1, None, self._instant())


def plan_read(path: str | None, instant: Callable[[], str]) -> tuple[Plan, str | None]:
    """Return the plan in a file, and a line about what is wrong with it.

    A file that does not exist is no plan: who has removed it wants none.
    """
    if path is None:
        return Plan(None), None
    plan = Plan(None, instant)
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError:
        return plan, f"there is no plan {path}: this agent starts without one"
    except (OSError, ValueError, RecursionError) as error:
        why = f"the plan {path} cannot be read: {error}"
    else:
        if isinstance(document, dict):
            return Plan(document, instant), None
        why = f"the plan {path} is not a JSON object"
    plan.failed(why)
    return plan, f"{why}; this agent starts without one"
