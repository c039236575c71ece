"""Strict mode agrees with a model of Boskos on random calls at the same times.

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
from tests.core.admission.boskos_pools import NOW, Ranch, facts_with, grows, slot

KINDS = ("t", "u", "grows")
STATES = ("free", "dirty")
OWNERS = ("ann", "bob")
IDS = ("", *(f"id-{n}" for n in range(8)))


@dataclass
class Resource:
    """A resource of Boskos."""

    kind: str
    name: str
    state: str
    owner: str
    touched: int


@dataclass
class Model:
    """A model of Boskos. Times are in microseconds."""

    resources: list[Resource]
    growth: dict[str, Growth]
    now: int = NOW
    collected: int = NOW // (60 * SECOND)
    queues: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """The expiry time of each request by type and state, in the order of arrival."""

    def _collect(self) -> None:
        minute = self.now // (60 * SECOND)
        for at in range(self.collected + 1, minute + 1):
            for queue in self.queues.values():
                for request in [one for one, until in queue.items() if at * 60 * SECOND > until]:
                    del queue[request]
        self.collected = minute

    def acquire(self, kind: str, state: str, owner: str, request: str, made: str) -> str:
        """Return the name of a resource, or why there is none; `made` names a new resource."""
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

    def take_named(self, state: str, owner: str, names: list[str]) -> str:
        """Take resources by name; keep the available ones if some are missing."""
        missing = set(names)
        for one in self.resources:
            if one.name in missing and one.state == state and not one.owner:
                one.owner, one.state, one.touched = owner, "busy", self.now
                missing.discard(one.name)
        return "none" if missing else "taken"

    def release(self, name: str, owner: str, dest: str) -> str:
        """Release a resource."""
        for one in self.resources:
            if one.name == name:
                if one.owner != owner:
                    return f"owned by {one.owner}"
                one.owner, one.state, one.touched = "", dest, self.now
                return "released"
        return "unknown"

    def update(self, name: str, owner: str, state: str) -> str:
        """Update a resource."""
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
        """Take the resources that were not updated for `age` seconds."""
        found = {}
        for one in self.resources:
            old = self.now - one.touched // SECOND * SECOND >= age * SECOND
            if (one.kind, one.state) == (kind, state) and one.owner and old:
                found[one.name] = one.owner
                one.owner, one.state, one.touched = "", "dirty", self.now
        return str(sorted(found.items()))


def model_answer(error: Error) -> str:
    """Return a refusal as the model formats it."""
    return {
        Code.NO_CAPACITY: "none",
        Code.POOL_UNKNOWN: "no type",
        Code.SLOT_NOT_FOUND: "unknown",
        Code.SLOT_STATE: "other state",
        Code.HOLDER_MISMATCH: "owned by " + error.message.rpartition("owned by ")[2],
    }[error.code]


class SideBySide:
    """Makes each call on the implementation and on the model; returns both answers."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        slots = [slot(f"{kind}-{n}", kind) for kind in ("t", "u") for n in range(2)]
        growth = grows(0, 2, "dirty")
        self.ranch = Ranch(facts_with(*slots, grows=growth), strict=True)
        self.model = Model(
            [Resource(one.pool, one.name, one.state, "", one.updated_at) for one in slots],
            {"grows": growth},
        )

    def pass_time(self) -> None:
        """Let between 1 ms and 29 s pass."""
        seconds = self.dice.choice([0.001, 0.5, 1, 1, 3, 3, 3, 7, 11, 29])
        self.ranch.pass_seconds(seconds)
        self.model.now = self.ranch.now

    def name(self) -> str:
        """Return the name of a random resource, or an unknown one."""
        return self.dice.choice([one.name for one in self.model.resources] + ["nobody"])

    def acquire(self) -> tuple[str, str]:
        """Acquire a resource."""
        kind, state = self.dice.choice(KINDS), self.dice.choice(STATES)
        owner, request = self.dice.choice(OWNERS), self.dice.choice(IDS)
        made = f"made-{self.ranch.calls + 1}"
        expected = self.model.acquire(kind, state, owner, request, made)
        try:
            found = self.ranch.acquire(request, owner, kind, state, "busy") or "none"
        except Error as error:
            found = model_answer(error)
        return found, expected

    def take_named(self) -> tuple[str, str]:
        """Take resources by name."""
        names = [self.name() for _ in range(self.dice.randrange(1, 4))]
        expected = self.model.take_named("free", "me", names)
        return "none" if self.ranch.take(*names) is None else "taken", expected

    def release(self) -> tuple[str, str]:
        """Release a resource."""
        name, owner = self.name(), self.dice.choice((*OWNERS, "me"))
        dest = self.dice.choice(STATES)
        expected = self.model.release(name, owner, dest)
        try:
            self.ranch.release(name, dest, owner)
        except Error as error:
            return model_answer(error), expected
        return "released", expected

    def update(self) -> tuple[str, str]:
        """Update a resource."""
        name, owner = self.name(), self.dice.choice(OWNERS)
        state = self.dice.choice(("busy", "free"))
        expected = self.model.update(name, owner, state)
        ranch = self.ranch
        try:
            ranch.apply(
                slots_by_name.update(ranch.facts, ranch.moment, ranch.now, name, owner, state, {})
            )
        except Error as error:
            return model_answer(error), expected
        return "updated", expected

    def reset(self) -> tuple[str, str]:
        """Reset the resources of a type."""
        kind, age = self.dice.choice(KINDS), self.dice.choice((0, 10, 60))
        expected = self.model.reset(kind, "busy", age)
        ranch = self.ranch
        changes, owners = slots_by_name.reset(
            ranch.facts, ranch.moment, ranch.now, kind, "busy", age * 1_000_000_000, "dirty"
        )
        ranch.apply(changes)
        return str(sorted(owners.items())), expected

    def check(self) -> None:
        """Check that both have the same resources, and that the leases match the owners."""
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
def test_strict_agrees_with_the_model(seed: int) -> None:
    """The answers and resources agree after each of 300 random calls."""
    both = SideBySide(seed)
    acts = [both.acquire] * 12 + [both.release] * 3 + [both.take_named, both.update, both.reset]
    for step in range(300):
        both.pass_time()
        act = both.dice.choice(acts)
        found, expected = act()
        assert found == expected, f"step {step}: {act.__name__}"
        both.check()
