"""An in-memory fleet for tests of its rules: each command is one decision, applied at once."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.fleet import desired, groups, policy, registering, reports, roots
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import (
    Agent,
    Amounts,
    Failure,
    Goal,
    MachineFacts,
    MachineReport,
    ManagedClass,
    Phase,
)
from moorage.core.fleet.parts import ClassSpec, PartSpec, part_id
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.ids import AgentId, ConsumerId, ProviderId
from tests.core.ledger.build import Refused

START = Instant(1_000_000 * SECOND)

A1, A2, A3 = (AgentId(f"{n:08d}-eeee-4eee-8eee-eeeeeeeeeeee") for n in range(1, 4))
ROOT = ProviderId("00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
C1, C2, C3 = (ConsumerId(f"{n:08d}-cccc-4ccc-8ccc-cccccccccccc") for n in range(1, 4))

SMALL, BIG = "CUSTOM_HUGEPAGES_2MB", "CUSTOM_HUGEPAGES_1GB"


def part(
    name: str = "numa0", parent: str | None = None, agent: AgentId = A1, **classes: Any
) -> PartSpec:
    """Return a part with the eligible amounts, or the class specs, of `classes`."""
    specs = {
        key: one if isinstance(one, ClassSpec) else ClassSpec(one)
        for key, one in (classes or {SMALL: 100}).items()
    }
    above = None if parent is None else part_id(agent, parent)
    return PartSpec(part_id(agent, name), name, specs, above)


def spec(
    boot: str = "boot-1", parts: Iterable[PartSpec] | None = None, **more: Any
) -> RegisterSpec:
    """Return a register, by default of one part with 100 eligible units of `SMALL`."""
    listed = [part()] if parts is None else list(parts)
    return RegisterSpec(boot, MachineFacts("host-1", "6.18", "0.1"), listed, **more)


N0, N1 = part_id(A1, "numa0"), part_id(A1, "numa1")


class World:
    """The facts of a fleet, a clock, and the commands that change them."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.now = START

    def do(self, changes: Changes) -> Changes:
        """Apply the changes of a decision, and let a second pass."""
        self.facts.apply(changes)
        self.now = Instant(self.now + SECOND)
        return changes

    def agent(self, uuid: AgentId = A1) -> Agent:
        """Return an agent."""
        return self.facts.agents[uuid]

    def create(self, uuid: AgentId = A1, **more: Any) -> Changes:
        """Create or change an agent."""
        words = {"group": "default", "labels": {}, "wanted": None, "who": "ann"} | more
        return self.do(registering.create(self.facts, self.now, uuid, **words))

    def give(self, root: ProviderId = ROOT, uuid: AgentId = A1) -> Changes:
        """Let an agent have an existing provider as root."""
        return self.do(roots.give(self.facts, self.now, uuid, root))

    def register(
        self,
        boot: str = "boot-1",
        parts: Iterable[PartSpec] | None = None,
        *,
        uuid: AgentId = A1,
        born: Mapping[ProviderId, int] | None = None,
        around: roots.Around | None = None,
        **more: Any,
    ) -> Changes:
        """Register a machine."""
        sent = spec(boot, parts, **more)
        return self.do(registering.register(self.facts, self.now, uuid, sent, born, around))

    def report(self, actual: int | Amounts = 0, *, uuid: AgentId = A1, **more: Any) -> Changes:
        """Send the next report; a number is the amount of `SMALL` on `N0`."""
        return self.do(reports.report(self.facts, self.now, uuid, self.next(actual, uuid, **more)))

    def next(self, actual: int | Amounts = 0, uuid: AgentId = A1, **more: Any) -> MachineReport:
        """Return the next report of an agent."""
        agent = self.agent(uuid)
        words: dict[str, Any] = {
            "boot_id": agent.boot_id or "boot-1",
            "report_generation": agent.report_generation + 1,
            "desired_generation_seen": agent.desired_generation,
            "phase": Phase.DONE,
            "actual": {N0: {SMALL: actual}} if isinstance(actual, int) else actual,
        }
        return MachineReport(**(words | more))

    def goal(
        self,
        goal: Goal | None,
        name: str = SMALL,
        provider: ProviderId | None = None,
        uuid: AgentId = A1,
    ) -> Changes:
        """Set what an agent should have of a class."""
        wanted = desired.DesiredSpec(name, provider, goal)
        return self.do(desired.set_goal(self.facts, self.now, uuid, wanted))

    def group(self, name: str, members: Iterable[AgentId] = (), **defaults: Goal) -> Changes:
        """Create a group or change its defaults."""
        return self.do(groups.put(self.facts, self.now, name, defaults, members))

    def drain(self, uuid: AgentId = A1, **more: Any) -> Changes:
        """Drain a machine."""
        words = {"reason": "work", "who": "ann"} | more
        return self.do(policy.drain(self.facts, self.now, uuid, **words))

    def expunge(self, uuid: AgentId = A1) -> Changes:
        """Expunge a machine."""
        return self.do(policy.expunge(self.facts, self.now, uuid, "broken", "ann"))

    def decommission(self, uuid: AgentId = A1) -> Changes:
        """Expunge and decommission a machine."""
        self.expunge(uuid)
        return self.do(policy.decommission(self.facts, self.now, uuid, "gone", "ann", used=False))

    def classes(self, uuid: AgentId = A1) -> dict[str, ManagedClass]:
        """Return the classes of an agent by the name of the part and of the class."""
        return {
            f"{one.name}/{name}": managed
            for one in self.agent(uuid).parts.values()
            for name, managed in one.classes.items()
        }

    def small(self) -> ManagedClass:
        """Return `SMALL` of `N0`."""
        return self.agent().parts[N0].classes[SMALL]


def ready(actual: int = 50, wanted: int = 50) -> World:
    """Return a world with one agent that was asked for 50 units and has this many."""
    world = World()
    world.create()
    world.register()
    world.goal(Goal(amount=wanted))
    world.report(actual)
    return world


def failure(code: str = "fragmented", **more: Any) -> Failure:
    """Return a failure."""
    return replace(Failure(code, "no 1 GiB page is free", 3, START), **more)


__all__ = [
    "A1",
    "A2",
    "A3",
    "BIG",
    "C1",
    "C2",
    "C3",
    "N0",
    "N1",
    "ROOT",
    "SMALL",
    "START",
    "Refused",
    "World",
    "failure",
    "part",
    "ready",
    "spec",
]
