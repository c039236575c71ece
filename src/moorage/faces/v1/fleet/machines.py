"""What agents send: enroll, register, report, signs of life; and whether a consumer may start."""

import random
from typing import Any

from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.fleet import reports
from moorage.core.fleet.model import Agent
from moorage.core.ids import AgentId, ConsumerId
from moorage.faces.v1 import roles
from moorage.faces.v1.routing import Handlers, PromptRequest, Prompts, Request
from moorage.service.access.roles import ScopedRole
from moorage.service.fleet.service import Fleet
from moorage.service.native import fleet as native
from moorage.service.native.bounds import check_wait, uuid_of
from moorage.wire import fleet as wire
from moorage.wire.operations import fleet as operations


def agent_id(request: Request[Any, Any] | PromptRequest[Any]) -> AgentId:
    """Return the agent in the address. Raises ProblemError: 403, the token is for another one."""
    uuid = AgentId(uuid_of(request.variables["id"], "The id of an agent"))
    if request.scope is not None and request.scope.role is ScopedRole.AGENT:
        roles.check_scope(request.scope, [uuid])
    return uuid


async def enroll(request: Request[wire.EnrollRequest, None]) -> wire.Enrolled:
    """Create an agent that no operator has accepted yet, and a token for it."""
    wanted, uuid = request.body, agent_id(request)
    roles.check_scope(request.scope, [wanted.group])
    service = request.service
    await service.fleet.enroll(uuid, wanted.group, wanted.labels, request.actor)
    secret, _ = await service.access.create(
        f"agent-{uuid}", ScopedRole.AGENT.value, by=request.actor, scope={"agent": [uuid]}
    )
    view = await service.fleet.queries.agent(uuid)
    return wire.Enrolled(agent=native.shown(view, service.fleet.heard_at(uuid)), token=secret)


async def register(request: Request[wire.RegisterRequest, None]) -> wire.AgentOrders:
    """Take over what an agent declares of its machine."""
    uuid = agent_id(request)
    spec = native.register_of(request.body)
    agent = await request.service.fleet.register(uuid, spec, request.actor)
    return _orders(request, agent)


async def report(request: Request[wire.ReportRequest, None]) -> wire.AgentOrders:
    """Record the full state of a machine."""
    uuid = agent_id(request)
    sent = native.report_of(request.body, request.service.clock.now())
    agent = await request.service.fleet.report(uuid, sent, request.actor)
    return _orders(request, agent)


async def alive(request: Request[wire.AliveRequest, None]) -> wire.AliveAnswer:
    """Note a sign of life."""
    uuid = agent_id(request)
    sent, fleet = request.body, request.service.fleet
    agent = await fleet.alive(uuid, sent.boot_id, sent.report_generation)
    return _alive(fleet, agent)


def alive_prompt(request: PromptRequest[wire.AliveRequest]) -> wire.AliveAnswer | None:
    """Note a sign of life of an agent that was not silent before."""
    sent, fleet = request.body, request.service.fleet
    agent = fleet.alive_prompt(agent_id(request), sent.boot_id, sent.report_generation)
    return None if agent is None else _alive(fleet, agent)


def _alive(fleet: Fleet, agent: Agent) -> wire.AliveAnswer:
    seen = agent.desired_generation_seen == agent.desired_generation
    ttl, next_in = fleet.ttl(random.random())
    return wire.AliveAnswer(
        desired_generation=agent.desired_generation,
        ttl=ttl / SECOND,
        next_in=next_in / SECOND,
        directive=reports.directive(agent) if seen else "report",
    )


async def starts(request: Request[None, wire.StartAsked]) -> wire.StartAnswer:
    """Return whether a consumer may start now, or wait until it may."""
    uuid, asked = agent_id(request), request.parameters
    if asked.boot_id is None:
        raise Error(Code.INVALID, "boot_id is required: in which boot would the consumer start?")
    consumer = ConsumerId(uuid_of(request.variables["consumer"], "The consumer"))
    start = await request.service.fleet.may_start(
        uuid, asked.boot_id, consumer, check_wait(asked.wait), request.disconnected
    )
    return native.start_shown(start)


def _orders(request: Request[Any, Any], agent: Agent) -> wire.AgentOrders:
    ttl, next_in = request.service.fleet.ttl(random.random())
    return native.orders(agent, ttl / SECOND, next_in / SECOND)


HANDLERS: Handlers = {
    operations.ENROLL_AGENT: enroll,
    operations.REGISTER_AGENT: register,
    operations.PUT_AGENT_REPORT: report,
    operations.SEND_SIGN_OF_LIFE: alive,
    operations.GET_START: starts,
}

PROMPTS: Prompts = {operations.SEND_SIGN_OF_LIFE: alive_prompt}
