"""Strict, compared with a model of Boskos: the same calls at the same times, the same answers.

The model is written from the description of Boskos' behaviour: a list of resources, a queue of
request ids for each type and state, a collection every minute. It knows no leases, tickets, pools.
"""

import random
from dataclasses import dataclass, field

import pytest

from moorage.core.admission.compat import slots_by_name
from moorage.core.admission.model import Growth
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from tests.core.admission.boskos_pools import NOW, Ranch, grows, ranch, slot

KINDS = ("t", "u", "grows")
STATES = ("free", "dirty")
OWNERS = ("ann", "bob")
IDS = ("", *(f"id-{n}" for n in range(8)))


@dataclass
class Resource:
    """What Boskos knows of a resource."""

    kind: str
    name: str
    state: str
    owner: str
    touched: int


@dataclass
class Model:
    """Boskos. `now` is in microseconds; `made` tells the name of the next dynamic resource."""

    resources: list[Resource]
    growth: dict[str, Growth]
    now: int = NOW
    collected: int = NOW // (60 * SECOND)
    queues: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """When each request expires, in the order of asking."""

    def _collect(self) -> None:
        minute = self.now // (60 * SECOND)
        for at in range(self.collected + 1, minute + 1):
            for queue in self.queues.values():
                for request in [one for one, until in queue.items() if at * 60 * SECOND > until]:
                    del queue[request]
        self.collected = minute

    def acquire(self, kind: str, state: str, owner: str, request: str, made: str) -> str:
        """The name of a resource, or why there is none."""
        self._collect()
        queue = self.queues.setdefault((kind, state), {})
        new = bool(request) and request not in queue
        if request:
            queue[request] = self.now + 30 * SECOND
        rank = 1
        for other, until in queue.items():
            if other == request:
                break
            rank += until >= self.now
        mine = [one for one in self.resources if one.kind == kind]
        fitting = [one for one in mine if one.state == state and not one.owner]
        fitting.sort(key=lambda one: (one.touched, one.name))
        if len(fitting) >= rank:
            taken = fitting[rank - 1]
            taken.owner, taken.state, taken.touched = owner, "busy", self.now
            queue.pop(request, None)
            return taken.name
        growth = self.growth.get(kind)
        if new and growth is not None and len(mine) < growth.most:
            self.resources.append(Resource(kind, made, growth.state, "", self.now))
        return "none" if mine else "no type"

    def named(self, state: str, owner: str, names: list[str]) -> str:
        """Take resources by name; keep what there was if some were missing."""
        missing = set(names)
        for one in self.resources:
            if one.name in missing and one.state == state and not one.owner:
                one.owner, one.state, one.touched = owner, "busy", self.now
                missing.discard(one.name)
        return "none" if missing else "taken"

    def release(self, name: str, owner: str, dest: str) -> str:
        """Give a resource back."""
        for one in self.resources:
            if one.name == name:
                if one.owner != owner:
                    return f"owned by {one.owner}"
                one.owner, one.state, one.touched = "", dest, self.now
                return "released"
        return "unknown"

    def update(self, name: str, owner: str, state: str) -> str:
        """Touch a resource."""
        for one in self.resources:
            if one.name == name:
                if one.owner != owner:
                    return f"owned by {one.owner}"
                if one.state != state:
                    return "other state"
                one.touched = self.now
                return "updated"
        return "unknown"

    def reset(self, kind: str, state: str, age: int) -> str:
        """Take what was not touched for so many seconds."""
        found = {}
        for one in self.resources:
            old = self.now - one.touched // SECOND * SECOND >= age * SECOND
            if (one.kind, one.state) == (kind, state) and one.owner and old:
                found[one.name] = one.owner
                one.owner, one.state, one.touched = "", "dirty", self.now
        return str(sorted(found.items()))


def told(error: Error) -> str:
    """A refusal as the model says it."""
    return {
        Code.NO_CAPACITY: "none",
        Code.POOL_UNKNOWN: "no type",
        Code.SLOT_NOT_FOUND: "unknown",
        Code.SLOT_STATE: "other state",
        Code.HOLDER_MISMATCH: "owned by " + error.message.rpartition("owned by ")[2],
    }[error.code]


class Both:
    """The decisions and the model, side by side."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        slots = [slot(f"{kind}-{n}", kind) for kind in ("t", "u") for n in range(2)]
        growth = grows(0, 2, "dirty")
        self.ranch = Ranch(ranch(*slots, grows=growth), strict=True)
        self.model = Model(
            [Resource(one.pool, one.name, one.state, "", one.updated_at) for one in slots],
            {"grows": growth},
        )

    def pass_time(self) -> None:
        """Let a moment, or a while, go by."""
        seconds = self.dice.choice([0.001, 0.5, 1, 1, 3, 3, 3, 7, 11, 29])
        self.ranch.pass_seconds(seconds)
        self.model.now = self.ranch.now

    def name(self) -> str:
        """The name of some resource."""
        return self.dice.choice([one.name for one in self.model.resources] + ["nobody"])

    def acquire(self) -> tuple[str, str]:
        """Acquire at both; the two answers."""
        kind, state = self.dice.choice(KINDS), self.dice.choice(STATES)
        owner, request = self.dice.choice(OWNERS), self.dice.choice(IDS)
        made = f"made-{self.ranch.calls + 1}"
        expected = self.model.acquire(kind, state, owner, request, made)
        try:
            found = self.ranch.acquire(request, owner, kind, state, "busy") or "none"
        except Error as error:
            found = told(error)
        return found, expected

    def named(self) -> tuple[str, str]:
        """Take by name at both."""
        names = [self.name() for _ in range(self.dice.randrange(1, 4))]
        expected = self.model.named("free", "me", names)
        return "none" if self.ranch.take(*names) is None else "taken", expected

    def release(self) -> tuple[str, str]:
        """Release at both."""
        name, owner = self.name(), self.dice.choice((*OWNERS, "me"))
        dest = self.dice.choice(STATES)
        expected = self.model.release(name, owner, dest)
        try:
            self.ranch.release(name, dest, owner)
        except Error as error:
            return told(error), expected
        return "released", expected

    def update(self) -> tuple[str, str]:
        """Touch at both."""
        name, owner = self.name(), self.dice.choice(OWNERS)
        state = self.dice.choice(("busy", "free"))
        expected = self.model.update(name, owner, state)
        there = self.ranch
        try:
            there.apply(
                slots_by_name.update(there.facts, there.moment, there.now, name, owner, state, {})
            )
        except Error as error:
            return told(error), expected
        return "updated", expected

    def reset(self) -> tuple[str, str]:
        """Reset at both."""
        kind, age = self.dice.choice(KINDS), self.dice.choice((0, 10, 60))
        expected = self.model.reset(kind, "busy", age)
        there = self.ranch
        changes, owners = slots_by_name.reset(
            there.facts, there.moment, there.now, kind, "busy", age * 1_000_000_000, "dirty"
        )
        there.apply(changes)
        return str(sorted(owners.items())), expected

    def check(self) -> None:
        """Both have the same resources, and the leases are those of the owners."""
        found = sorted(
            (one.pool, one.name, one.state, one.owner, one.updated_at)
            for one in self.ranch.facts.slots_of(list(self.ranch.facts.slots))
        )
        expected = sorted(
            (one.kind, one.name, one.state, one.owner, Instant(one.touched))
            for one in self.model.resources
        )
        assert found == expected
        self.ranch.check()


@pytest.mark.parametrize("seed", range(60))
def test_as_boskos_does(seed: int) -> None:
    """Three hundred calls, and time that goes by between them."""
    both = Both(seed)
    acts = [both.acquire] * 12 + [both.release] * 3 + [both.named, both.update, both.reset]
    for step in range(300):
        both.pass_time()
        act = both.dice.choice(acts)
        found, expected = act()
        assert found == expected, f"step {step}: {act.__name__}"
        both.check()
