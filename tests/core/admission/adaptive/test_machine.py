"""Random jobs, outcomes and operators: the rule agrees with a naive model that keeps everything.

The model knows the use of the pool at all times and all outcomes, and computes each decision from
scratch. The numbers in the checks are those of the invariants of the planted bugs: A1 evidence, A2
correlated failures, A3 the test, A4 the size of steps, A5 the freeze, A6 bounds, A7 durability.
"""

from dataclasses import dataclass, field
from math import prod
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import json

from moorage.core.admission.adaptive.rule import BUSY_MAX, most
from moorage.core.admission.model import (
    Pool,
)
from moorage.core.clock import SECOND
from moorage.core.ids import LeaseId
from moorage.core.pool_values import Adaptation, Adaptive
from tests.core.admission.build import World

HOLD = 100 * SECOND
MINUTE = 5 * SECOND
"""A twentieth of the hold."""

CHOICES = (
    Adaptive(2, 12, "act", good=0.2, bad=0.7, throttled=2),
    Adaptive(2, 12, "act", good=0.2, bad=0.7, throttled=5),
    Adaptive(4, 30, "act", good=0.1, bad=0.6, throttled=3),
    Adaptive(2, 12, "advise", good=0.2, bad=0.7, throttled=2),
)


@dataclass
class Model:
    """Everything that has happened to the pool, and what follows from it."""

    adaptive: Adaptive
    limit: int
    since: int
    frozen: int
    use: list[tuple[int, int, int]] = field(default_factory=list)
    """(time, occupied units, limit) after each command."""
    told: list[tuple[int, str, str]] = field(default_factory=list)
    """Evidence of the present test: (time, result, cause)."""
    lengths: list[int] = field(default_factory=list)
    """How long a minute of correlated failures was when each of them came."""
    aside: int = 0
    lasted: list[int] = field(default_factory=list)
    steps: list[tuple[int, int, bool]] = field(default_factory=list)
    """(limit before, after, acted) of every decision."""

    def hold(self) -> int:
        """Return the hold that counts: one of the fifteen last jobs may last longer than it."""
        last = sorted(self.lasted[-15:])
        if len(last) == 15:
            last.pop()
        return max([HOLD, *last[-1:]])

    def share(self, begins: int, ends: int) -> float:
        """Return in which part of a time 80 % of the limit was in use (A1)."""
        under = 0
        for (at, units, limit), (until, _, _) in zip(
            self.use, [*self.use[1:], (ends, 0, 0)], strict=True
        ):
            if units >= 0.8 * limit:
                under += max(0, min(until, ends) - max(at, begins))
        return under / (ends - begins)

    def flips(self) -> int:
        """Return how often the pool became busy."""
        busy = [units >= 0.8 * limit for _, units, limit in self.use]
        return sum(now and not before for before, now in zip([False, *busy], busy, strict=False))

    def counted(self) -> tuple[float, int]:
        """Return the good outcomes and failures that count (A2)."""
        ok, failed = 0.0, 0
        for minute in self.minutes():
            bad = [(result, cause) for _, result, cause in minute if result != "ok"]
            named = {one for one in bad if one[1] or one[0] == "throttled"}
            alone = sum(one not in named for one in bad)
            count = len(named) + alone
            good = len(minute) - len(bad)
            ok += good * count / len(bad) if bad else good
            failed += count
        return ok, failed

    def minute(self) -> int:
        return min(60 * SECOND, self.hold() // 20)

    def minutes(self) -> list[list[tuple[int, str, str]]]:
        """Return the evidence by minutes, each as long as a minute was when it began."""
        found: list[list[tuple[int, str, str]]] = []
        until = 0
        for one, length in zip(self.told, self.lengths, strict=True):
            if not found or one[0] >= until:
                found.append([])
                until = one[0] + length
            found[-1].append(one)
        return found

    def throttled(self, at: int) -> int:
        """Return how many starts were throttled within the hold up to now, without equal ones."""
        found = 0
        for minute in self.minutes():
            seen = set[str]()
            for when, result, cause in minute:
                if result == "throttled" and cause not in seen:
                    seen.add(cause)
                    found += when > at - self.hold()
        return found

    def report(self, at: int, begins: int, ends: int, result: str, cause: str) -> None:
        """Take an outcome, and decide."""
        if result == "ok":
            self.lasted.append(at - begins)
        if begins < self.since or at < self.frozen or self.share(begins, ends) < 0.5:
            self.aside += 1
            return
        self.told.append((at, result, cause))
        self.lengths.append(self.minute())
        rule = self.adaptive
        ok, failed = self.counted()
        ratio = prod([(rule.bad / rule.good) ** failed, ((1 - rule.bad) / (1 - rule.good)) ** ok])
        if ratio >= 19 or (result != "ok" and self.throttled(at) >= rule.throttled):
            self.step(at, self.limit * 0.7)
        elif ratio <= 1 / 19:
            self.step(at, self.limit + max(1, self.limit // 10))
        elif len(self.told) >= most(rule):
            self.told, self.lengths, self.aside = [], [], 0

    def step(self, at: int, wanted: float) -> None:
        """Move the limit, or advise it (A4, A5)."""
        after = min(max(int(wanted + 1e-9), self.adaptive.floor), self.adaptive.ceiling)
        acts = self.adaptive.mode == "act" and after != self.limit
        self.steps.append((self.limit, after, acts))
        self.told, self.lengths, self.aside = [], [], 0
        if acts:
            self.limit, self.since, self.frozen = after, at, at + self.hold()


class Machine(RuleBasedStateMachine):
    """Runs each command on the world and on the model."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.names = 0
        self.known: dict[str, bool] = {}
        """By lease: has it reported?"""

    @initialize(adaptive=st.sampled_from(CHOICES), limit=st.integers(4, 12))
    def begin(self, adaptive: Adaptive, limit: int) -> None:
        self.world.pool("p", limit, adaptive=adaptive, hold=HOLD)
        self.model = Model(adaptive, limit, self.world.now, self.world.now)
        self.note()

    def pool(self) -> Pool:
        return self.world.facts.pools["p"]

    def state(self) -> Adaptation:
        found = self.pool().adaptation
        assert found is not None
        return found

    def note(self) -> None:
        """Tell the model how much is in use from now on."""
        self.model.use.append((self.world.now, self.pool().occupied, self.model.limit))

    @rule(number=st.sampled_from([1, 3, 12]))
    def start(self, number: int) -> None:
        for _ in range(number):
            self.names += 1
            self.world.ask(f"j{self.names}")
            self.known[f"j{self.names}"] = False
        self.note()

    def granted(self) -> list[str]:
        leases = self.world.facts.leases
        return [
            one for one, told in self.known.items() if leases[LeaseId(one)].granted_at and not told
        ]

    @precondition(lambda self: self.granted())
    @rule(
        data=st.data(),
        result=st.sampled_from(["ok", "ok", "failed", "throttled"]),
        cause=st.sampled_from(["", "x", "y"]),
        seconds=st.sampled_from([0, 1, 3, 7]),
        number=st.sampled_from([1, 2, 4]),
        ends=st.booleans(),
    )
    def report(
        self, data: st.DataObject, result: Any, cause: str, seconds: int, number: int, ends: bool
    ) -> None:
        for _ in range(number):
            there = self.granted()
            if not there:
                return
            key = data.draw(st.sampled_from(there[:6]))
            self.pass_time(seconds)
            lease = self.world.lease(key)
            assert lease.granted_at is not None
            begins, over = lease.granted_at, lease.ended_at or self.world.now
            if over <= begins:
                return
            self.known[key] = True
            cause = "" if result == "ok" else cause
            self.model.report(self.world.now, begins, over, result, cause)
            self.world.report(key, result, cause)
            if ends and lease.ended_at is None:
                self.world.release(key)
            self.note()
            self.agree()

    @rule(seconds=st.sampled_from([1, 10, 60, 130]))
    def pass_time(self, seconds: int) -> None:
        until = self.world.now + seconds * SECOND
        while (due := self.world.due()) is not None and due <= until:
            self.world.now = due
            self.world.sweep()
            self.note()
        self.world.now = until

    @rule(limit=st.integers(4, 12))
    def operator(self, limit: int) -> None:
        """An operator sets a limit: another one than the present is a new start."""
        model, now = self.model, self.world.now
        self.world.pool("p", limit, adaptive=model.adaptive, hold=HOLD)
        if limit != model.limit:
            model.limit, model.since, model.frozen = limit, now, now + model.hold()
            model.told, model.lengths, model.aside, model.steps = [], [], 0, []
        self.note()

    @rule()
    def restart(self) -> None:
        """A7: the row is all that there is."""
        self.world.facts.pools["p"] = json.decode(json.encode(self.pool()), type=Pool)

    @invariant()
    def agree(self) -> None:
        """The limit, the last step and the counts are those of the model; the state is bounded."""
        if not hasattr(self, "model") or self.model.flips() > BUSY_MAX:
            return
        pool, state, model = self.pool(), self.state(), self.model
        assert pool.spec.limit == model.limit
        assert model.adaptive.floor <= model.limit <= max(12, model.adaptive.ceiling)
        assert (state.since, state.frozen_until) == (model.since, model.frozen)
        counts = state.counts
        assert counts.ok + counts.failed + counts.throttled == len(model.told)
        assert state.aside == model.aside
        if model.steps:
            assert state.last is not None
            last = (state.last.before, state.last.after, state.last.acted)
            assert last == model.steps[-1]
        else:
            assert state.last is None

    @invariant()
    def bounded(self) -> None:
        """A6: the state has a bounded size, however long the pool lives."""
        if hasattr(self, "model"):
            assert len(json.encode(self.state())) < 4_096
            assert len(self.state().busy) <= BUSY_MAX


TestAdaptive = Machine.TestCase
TestAdaptive.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
