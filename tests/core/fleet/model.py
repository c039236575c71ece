"""A naive agent: one machine as plain dicts, for comparison with the rules.

It knows nothing of the rules' code. Parts and classes are names; a goal is an amount, or a
percentage as a string such as "30".
"""

from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, str]
"""The name of a part, and the name of a class."""

Goal = int | str


@dataclass
class Held:
    """One class of one part."""

    eligible: int
    volatile: bool
    step: int
    listed: bool = True
    actual: int = 0
    goal: Goal | None = None


@dataclass
class Sent:
    """A report as it is on the network."""

    boot: str
    generation: int
    done: bool
    failed: bool
    actual: dict[Key, int]
    consumers: frozenset[str] | None


@dataclass
class Model:
    """The machine. Each message returns "ok", "same" (nothing changes) or the code of a refusal."""

    state: str = "active"
    policy: str = "in_service"
    until: int | None = None
    readiness: str = "unregistered"
    liveness: str = "fresh"
    boots: list[str] = field(default_factory=list)
    """All boots in their order; the last one is the current one."""
    generation: int = 0
    last: Sent | None = None
    done: bool = False
    held: dict[Key, Held] = field(default_factory=dict)
    defaults: dict[str, Goal] = field(default_factory=dict)
    rises: int = 0
    """The desired generation."""
    confirmed: set[str] = field(default_factory=set)
    given: bool = False
    """Whether others created its root."""
    silence: str = "own"
    """What its group closes while it is silent."""

    def desired(self, key: Key) -> int:
        """Return how much is desired of a class."""
        held = self.held[key]
        goal = held.goal if held.goal is not None else self.defaults.get(key[1])
        if goal is None:
            return 0
        if isinstance(goal, str):
            exact = held.eligible * int(goal) // 100
            return exact - exact % held.step
        return goal

    def offer(self, key: Key) -> int:
        """Return how much of a class is offered."""
        up = self.readiness in ("ready", "degraded") and self.liveness == "fresh"
        if not (up and self.policy == "in_service" and self.state == "active"):
            return 0
        return min(self.desired(key), self.held[key].actual)

    def is_open(self) -> bool:
        """Return whether classes of its tree are open that it does not manage."""
        if self.policy != "in_service" or self.state != "active":
            return False
        if self.given:
            return self.liveness == "fresh" or self.silence == "own"
        return self.readiness in ("ready", "degraded") and self.liveness == "fresh"

    def register(self, boot: str, listed: dict[Key, Held]) -> str:
        """Register these classes."""
        if self.state == "decommissioned":
            return "decommissioned"
        if boot in self.boots[-9:-1]:
            return "superseded_boot"
        before = self._seen(), self._figures()
        new = boot not in self.boots[-1:]
        if new:
            self.boots.append(boot)
            self.readiness, self.done, self.last = "preparing", False, None
            self.confirmed = set()
        for key, one in listed.items():
            old = self.held.get(key)
            actual = 0 if old is None or (new and (one.volatile or old.volatile)) else old.actual
            goal = None if old is None else old.goal
            self.held[key] = Held(one.eligible, one.volatile, one.step, True, actual, goal)
        for key in set(self.held) - set(listed):
            self.held[key].listed, self.held[key].actual = False, 0
        self._count(before[1])
        said = {} if self.last is None else self.last.actual
        if any(said.get(key, x.actual) != x.actual for key, x in self.held.items() if x.listed):
            self.last = None
        return "ok" if new or self._seen() != before[0] else "same"

    def report(self, sent: Sent) -> str:
        """Receive a report."""
        refusal = self._refusal(sent.boot)
        if refusal is not None:
            return refusal
        if sent.generation < self.generation:
            return "stale_report"
        if sent.generation == self.generation:
            return "same" if self.last == sent else "report_conflict"
        if set(sent.actual) != {key for key, held in self.held.items() if held.listed}:
            return "invalid"
        self.last, self.generation = sent, sent.generation
        self.done = self.done or sent.done
        self.confirmed |= sent.consumers or set()
        for key, amount in sent.actual.items():
            self.held[key].actual = amount
        self.readiness = self._ready(sent.failed)
        return "ok"

    def alive(self, boot: str, generation: int) -> str:
        """Receive a sign of life."""
        refusal = self._refusal(boot)
        if refusal is None and generation != self.generation:
            return "stale_report" if generation < self.generation else "report_conflict"
        return refusal or "same"

    def set(self, keys: list[Key], goal: Goal | None) -> str:
        """Set a goal."""
        before = self._seen(), self._figures()
        for key in keys:
            self.held[key].goal = goal
        self._count(before[1])
        return "ok" if self._seen() != before[0] else "same"

    def default(self, name: str, goal: Goal) -> None:
        """Set the default of the group."""
        if self.state == "active":
            before = self._figures()
            self.defaults[name] = goal
            self._count(before)

    def operate(self, action: str, until: int | None = None, used: bool = False) -> str:
        """Receive an operator's action."""
        if action == "decommission":
            return self._decommission(used)
        if self.state == "decommissioned":
            return "decommissioned"
        target = {"drain": "no_provision", "resume": "in_service", "expunge": "expunged"}[action]
        if self.policy == "expunged" and target != "expunged":
            return "policy_final"
        if (self.policy, self.until) == (target, until):
            return "same"
        self.policy, self.until = target, until
        return "ok"

    def _decommission(self, used: bool) -> str:
        if self.state == "decommissioned":
            return "same"
        if self.policy != "expunged":
            return "not_expunged"
        if used:
            return "has_allocations"
        self.state = "decommissioned"
        return "ok"

    def _refusal(self, boot: str) -> str | None:
        if self.state == "decommissioned":
            return "decommissioned"
        if boot in self.boots[-9:-1]:
            return "superseded_boot"
        return None if boot in self.boots[-1:] else "stale_boot"

    def _ready(self, failed: bool) -> str:
        listed = {key: held for key, held in self.held.items() if held.listed}
        short = [key for key, held in listed.items() if held.actual < self.desired(key)]
        nothing = not any(held.actual for key, held in listed.items() if self.desired(key))
        if self.done and not short:
            return "ready"
        if nothing and (self.done or failed):
            return "failed"
        return "degraded" if self.done else "preparing"

    def _figures(self) -> dict[Key, int]:
        return {key: self.desired(key) for key in self.held if self.desired(key)}

    def _count(self, before: dict[Key, int]) -> None:
        if self._figures() != before:
            self.rises += 1

    def _seen(self) -> Any:
        held = {
            key: (x.eligible, x.volatile, x.step, x.listed, x.goal) for key, x in self.held.items()
        }
        return held, self._figures()
