"""Agents, for operators: list, show, create, say what is desired, drain, expunge, decommission."""

from typing import Any

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import (
    Goal,
    Policy,
)
from moorage.core.fleet.policy import Action
from moorage.core.ids import AgentId, ProviderId
from moorage.faces.v1.fleet.machines import agent_id, agent_shown
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.fleet.agent_case import AgentCase
from moorage.service.fleet.agent_cases import AgentPut, AgentRoot
from moorage.service.fleet.policy_cases import AgentDesired, AgentPolicy
from moorage.service.fleet.queries import AgentFilter
from moorage.service.ids import ALL_IDS, ids_with
from moorage.service.values import (
    instant_of,
    microseconds,
    uuid_of,
)
from moorage.wire import fleet as wire
from moorage.wire.operations import fleet as operations


async def page(request: Request[None, wire.AgentsAsked]) -> wire.AgentPage:
    """Return a page of agents, ordered by UUID."""
    asked, fleet = request.parameters, request.service.fleet
    label, _, value = (asked.label or "").partition("=")
    if asked.label and not label:
        raise Error(Code.INVALID, "label must be KEY or KEY=VALUE: the key is missing.")
    wanted = AgentFilter(
        group=asked.group,
        policy=asked.policy,
        state=asked.state,
        readiness=asked.readiness,
        liveness=asked.liveness,
        offered=asked.offered,
        label=label or None,
        label_value=value if "=" in (asked.label or "") else None,
        ids=ALL_IDS if asked.id_prefix is None else ids_with(asked.id_prefix),
    )
    views, following = await fleet.queries.agents(wanted, asked.cursor, asked.limit)
    agents = [agent_shown(view, fleet.heard_at(view.agent.uuid)) for view in views]
    return wire.AgentPage(agents=agents, next=following)


async def read(request: Request[None, None]) -> wire.Agent:
    """Return one agent."""
    return await _shown(request, agent_id(request))


async def put(request: Request[wire.AgentWanted, None]) -> wire.Agent:
    """Create an agent, or change its group, labels or policy."""
    uuid, wanted = agent_id(request), request.body
    policy = None if wanted.policy is None else Policy(wanted.policy)
    root = None if wanted.root is None else ProviderId(uuid_of(wanted.root, "root"))
    known = request.service.fleet.directory.get(uuid)
    case = AgentPut(uuid, request.actor, wanted.group, wanted.labels, policy, root, known=known)
    return await _changed(request, case)


async def give_root(request: Request[wire.AgentRootRequest, None]) -> wire.Agent:
    """Let an agent have an existing provider as root."""
    uuid, root = agent_id(request), ProviderId(uuid_of(request.body.root, "root"))
    known = request.service.fleet.directory.get(uuid)
    return await _changed(request, AgentRoot(uuid, request.actor, root, known=known))


async def desired(request: Request[wire.DesiredRequest, None]) -> wire.Agent:
    """Set how much a machine should have of a class."""
    uuid, wanted = agent_id(request), request.body
    spec, known = desired_of(wanted), request.service.fleet.directory.get(uuid)
    case = AgentDesired(uuid, request.actor, spec, wanted.reason, known=known)
    return await _changed(request, case)


async def drain(request: Request[wire.PolicyRequest, None]) -> wire.Agent:
    """Place nothing new on a machine."""
    return await _moved(request, Action.DRAIN)


async def resume(request: Request[wire.PolicyRequest, None]) -> wire.Agent:
    """Use a drained machine again."""
    return await _moved(request, Action.RESUME)


async def expunge(request: Request[wire.PolicyRequest, None]) -> wire.Agent:
    """Never use a machine again."""
    return await _moved(request, Action.EXPUNGE)


async def decommission(request: Request[wire.PolicyRequest, None]) -> wire.Agent:
    """End the agent of an expunged machine."""
    return await _moved(request, Action.DECOMMISSION)


async def _moved(request: Request[wire.PolicyRequest, None], action: Action) -> wire.Agent:
    uuid, wanted = agent_id(request), request.body
    if action is not Action.DRAIN and (wanted.until, wanted.lasts) != (None, None):
        raise Error(Code.INVALID, f"Only a drain ends by itself: omit until and lasts of {action}.")
    if action is not Action.DECOMMISSION and wanted.force:
        raise Error(Code.INVALID, f"Only a decommission can be forced: omit force of {action}.")
    until = None if wanted.until is None else instant_of("until", wanted.until)
    if wanted.lasts is not None:
        if until is not None:
            raise Error(Code.INVALID, "A drain ends at `until` or `lasts` for a while, not both.")
        until = Instant(request.service.clock.now() + microseconds("lasts", wanted.lasts))
    known = request.service.fleet.directory.get(uuid)
    case = AgentPolicy(uuid, request.actor, action, wanted.reason, until, wanted.force, known=known)
    return await _changed(request, case)


async def _changed(request: Request[Any, Any], case: AgentCase) -> wire.Agent:
    """Execute a case of an agent, and show the agent."""
    await request.service.transactor.submit(case)
    return await _shown(request, case.agent)


async def _shown(request: Request[Any, Any], uuid: AgentId) -> wire.Agent:
    fleet = request.service.fleet
    return agent_shown(await fleet.queries.agent(uuid), fleet.heard_at(uuid))


HANDLERS: Handlers = {
    operations.LIST_AGENTS: page,
    operations.GET_AGENT: read,
    operations.PUT_AGENT: put,
    operations.GIVE_ROOT_AGENT: give_root,
    operations.SET_AGENT_DESIRED: desired,
    operations.DRAIN_AGENT: drain,
    operations.RESUME_AGENT: resume,
    operations.EXPUNGE_AGENT: expunge,
    operations.DECOMMISSION_AGENT: decommission,
}


def desired_of(asked: wire.DesiredRequest) -> DesiredSpec:
    """Convert a desired amount to the core's type. Raises `Error`: INVALID."""
    provider = None if asked.provider is None else ProviderId(uuid_of(asked.provider, "provider"))
    goal = None
    if asked.amount is not None or asked.percent is not None:
        goal = Goal(asked.amount, asked.percent)
    return DesiredSpec(asked.resource_class, provider, goal)
