"""Helpers for tests of agents: machines with one part, and what they send."""

import uuid
from collections.abc import Mapping

from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Agent, Goal, MachineFacts, MachineReport, Phase
from moorage.core.fleet.parts import ClassSpec, PartSpec
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.ids import AgentId, ProviderId
from moorage.service.fleet.service import Fleet
from tests.service.running import TESTER

PAGES = "CUSTOM_HUGEPAGES_2MB"
BOOT = "boot-1"


def agent_id(n: int) -> AgentId:
    """Return the n-th agent's UUID."""
    return AgentId(f"{n:08d}-eeee-4eee-8eee-eeeeeeeeeeee")


def part_id(n: int, name: str = "numa0") -> ProviderId:
    """Return the UUID of a part of the n-th machine."""
    return ProviderId(str(uuid.uuid5(uuid.UUID(agent_id(n)), name)))


def machine(n: int, boot: str = BOOT, *, root: ProviderId | None = None) -> RegisterSpec:
    """What the n-th machine declares: one part that could have 1000 pages."""
    part = PartSpec(part_id(n), "numa0", {PAGES: ClassSpec(1000)})
    return RegisterSpec(boot, MachineFacts(f"host-{n}"), [part], root)


def report(n: int, generation: int, pages: int, boot: str = BOOT, seen: int = 1) -> MachineReport:
    """A report of the n-th machine that is prepared."""
    actual = {part_id(n): {PAGES: pages}}
    return MachineReport(boot, generation, seen, Phase.DONE, actual)


async def ready(
    fleet: Fleet, n: int, pages: int = 100, group: str = "default", labels: Mapping[str, str] = {}
) -> Agent:
    """Make the n-th machine offer some pages."""
    await fleet.put(agent_id(n), group, labels, None, TESTER)
    await fleet.register(agent_id(n), machine(n), TESTER)
    await fleet.desired(agent_id(n), DesiredSpec(PAGES, goal=Goal(amount=pages)), "", TESTER)
    return await fleet.report(agent_id(n), report(n, 1, pages), TESTER)
