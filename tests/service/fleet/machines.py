"""Helpers for tests of agents: machines with one part, and what they send."""

import uuid
from collections.abc import Mapping

from moorage.core.clock import Instant
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Agent, Goal, Group, MachineFacts, MachineReport, Phase, Policy
from moorage.core.fleet.parts import ClassSpec, PartSpec
from moorage.core.fleet.policy import Action
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.ids import AgentId, ProviderId
from moorage.service.audit_entries import Actor
from moorage.service.fleet.agent_cases import AgentEnroll, AgentPut
from moorage.service.fleet.liveness_cases import GroupWait
from moorage.service.fleet.policy_cases import AgentDesired, AgentPolicy, GroupDelete
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


async def agent_put(
    fleet: Fleet,
    uuid: AgentId,
    group: str,
    labels: Mapping[str, str],
    policy: Policy | None,
    by: Actor,
    root: ProviderId | None = None,
) -> Agent:
    """Create or change an agent."""
    known = fleet.directory.get(uuid)
    case = AgentPut(uuid, by, group, labels, policy, root, known=known)
    return await fleet._transactor.submit(case)


async def agent_enroll(
    fleet: Fleet, uuid: AgentId, group: str, labels: Mapping[str, str], by: Actor
) -> Agent:
    """Create an agent that no operator has accepted."""
    return await fleet._transactor.submit(AgentEnroll(uuid, by, group, labels))


async def agent_policy(
    fleet: Fleet,
    uuid: AgentId,
    action: Action,
    reason: str,
    by: Actor,
    *,
    until: Instant | None = None,
    force: bool = False,
) -> Agent:
    """Drain, resume, expunge or decommission a machine."""
    known = fleet.directory.get(uuid)
    case = AgentPolicy(uuid, by, action, reason, until, force, known=known)
    return await fleet._transactor.submit(case)


async def agent_desired(
    fleet: Fleet, uuid: AgentId, spec: DesiredSpec, reason: str, by: Actor
) -> Agent:
    """Set how much a machine should have of a class."""
    case = AgentDesired(uuid, by, spec, reason, known=fleet.directory.get(uuid))
    return await fleet._transactor.submit(case)


async def group_delete(fleet: Fleet, name: str, by: Actor) -> None:
    """Remove a group."""
    await fleet._transactor.submit(GroupDelete(name, by))


async def group_wait(fleet: Fleet, name: str, lasts: int, by: Actor) -> Group:
    """Declare no member of a group lost for some time."""
    return await fleet._transactor.submit(GroupWait(name, by, lasts))


async def ready(
    fleet: Fleet, n: int, pages: int = 100, group: str = "default", labels: Mapping[str, str] = {}
) -> Agent:
    """Make the n-th machine offer some pages."""
    await agent_put(fleet, agent_id(n), group, labels, None, TESTER)
    await fleet.register(agent_id(n), machine(n), TESTER)
    await agent_desired(fleet, agent_id(n), DesiredSpec(PAGES, goal=Goal(amount=pages)), "", TESTER)
    return await fleet.report(agent_id(n), report(n, 1, pages), TESTER)
