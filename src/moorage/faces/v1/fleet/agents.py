"""Agents: what operators do with them, and what they send themselves."""

import asyncio
import random
from collections.abc import Iterable
from typing import Any

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet import offers, reports
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.desired import amounts as desired_amounts
from moorage.core.fleet.model import (
    Agent,
    Failure,
    Goal,
    MachineFacts,
    MachineReport,
    Part,
    Phase,
    Policy,
)
from moorage.core.fleet.model import AgentPlan as SentPlan
from moorage.core.fleet.parts import ClassSpec, PartSpec
from moorage.core.fleet.policy import Action
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.fleet.starts import ConsumerPlace, Start, unconfirmed
from moorage.core.ids import AgentId, ConsumerId, ProviderId
from moorage.core.limits import MACHINE_PLAN_ENTRIES_MAX, VIOLATIONS_ANSWERED_MAX
from moorage.faces.v1 import authorization
from moorage.faces.v1.ledger.reshape_texts import plan_of, violations_text
from moorage.faces.v1.problems import ProblemError, problem_of
from moorage.faces.v1.routing import Handlers, PromptRequest, Prompts, Request
from moorage.service.access.roles import ScopedRole
from moorage.service.fleet.agent_cases import AgentCase, AgentEnroll, AgentPut, AgentRoot
from moorage.service.fleet.policy_cases import AgentDesired, AgentPolicy
from moorage.service.fleet.queries import AgentFilter, AgentView
from moorage.service.fleet.service import Fleet
from moorage.service.ids import ALL_IDS, ids_with
from moorage.service.ledger.reshapes import ReshapeRefusal
from moorage.service.values import (
    check_wait,
    end_of,
    instant_of,
    microseconds_or_none,
    time_of,
    time_or_none,
    uuid_of,
)
from moorage.wire import fleet as wire
from moorage.wire.changes import AgentPlan, FailureValue
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
    until, lasts = end_of("A drain", wanted.until, wanted.lasts)
    if lasts is not None:
        until = Instant(request.service.clock.now() + lasts)
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


def agent_id(request: Request[Any, Any] | PromptRequest[Any]) -> AgentId:
    """Return the agent in the address. Raises ProblemError: 403, the token is for another one."""
    uuid = AgentId(uuid_of(request.variables["id"], "The id of an agent"))
    if request.caller.scope is not None and request.caller.scope.role is ScopedRole.AGENT:
        authorization.check_scope(request.caller.scope, [uuid])
    return uuid


async def enroll(request: Request[wire.EnrollRequest, None]) -> wire.Enrolled:
    """Create an agent that no operator has accepted yet, and a token for it."""
    wanted, uuid = request.body, agent_id(request)
    authorization.check_scope(request.caller.scope, [wanted.group])
    service = request.service
    case = AgentEnroll(uuid, request.actor, wanted.group, wanted.labels)
    await service.transactor.submit(case)
    secret, _ = await service.access.create(
        f"agent-{uuid}", ScopedRole.AGENT.value, by=request.actor, scope={"agent": [uuid]}
    )
    view = await service.fleet.queries.agent(uuid)
    return wire.Enrolled(agent=agent_shown(view, service.fleet.heard_at(uuid)), token=secret)


async def register(request: Request[wire.RegisterRequest, None]) -> wire.AgentOrders:
    """Take over what an agent declares of its machine."""
    uuid = agent_id(request)
    spec = register_of(request.body)
    agent = await request.service.fleet.register(uuid, spec, request.actor)
    return _orders(request, agent)


async def report(request: Request[wire.ReportRequest, None]) -> wire.AgentOrders:
    """Record the full state of a machine, and carry out its plan."""
    uuid, fleet = agent_id(request), request.service.fleet
    sent = report_of(request.body, request.service.clock.now())
    if request.body.plan is None:
        return _orders(request, await fleet.report(uuid, sent, request.actor))
    plan = await asyncio.to_thread(plan_of, request.body.plan, MACHINE_PLAN_ENTRIES_MAX)
    try:
        agent = await fleet.report_with_plan(uuid, sent, plan, request.actor)
    except ReshapeRefusal as refusal:
        raise await asyncio.to_thread(_plan_refused, refusal) from None
    return _orders(request, agent, planned=True)


def _plan_refused(refusal: ReshapeRefusal) -> ProblemError:
    problem = problem_of(refusal)
    shown = refusal.planned.violations[:VIOLATIONS_ANSWERED_MAX]
    problem.more["violations"] = violations_text(shown)
    return problem


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
    return start_shown(start)


def _orders(request: Request[Any, Any], agent: Agent, *, planned: bool = False) -> wire.AgentOrders:
    """Return the answer to a register or report, with what became of its plan if it had one."""
    ttl, next_in = request.service.fleet.ttl(random.random())
    return wire.AgentOrders(
        report_generation=agent.report_generation,
        desired_generation=agent.desired_generation,
        desired={uuid: dict(amounts) for uuid, amounts in desired_amounts(agent).items()},
        ttl=ttl / SECOND,
        next_in=next_in / SECOND,
        directive=reports.directive(agent),
        plan=_plan_shown(agent.plan) if planned else None,
    )


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
    operations.ENROLL_AGENT: enroll,
    operations.REGISTER_AGENT: register,
    operations.PUT_AGENT_REPORT: report,
    operations.SEND_SIGN_OF_LIFE: alive,
    operations.GET_START: starts,
}


def desired_of(asked: wire.DesiredRequest) -> DesiredSpec:
    """Convert a desired amount to the core's type. Raises `Error`: INVALID."""
    provider = None if asked.provider is None else ProviderId(uuid_of(asked.provider, "provider"))
    goal = None
    if asked.amount is not None or asked.percent is not None:
        goal = Goal(asked.amount, asked.percent)
    return DesiredSpec(asked.resource_class, provider, goal)


PROMPTS: Prompts = {operations.SEND_SIGN_OF_LIFE: alive_prompt}


def register_of(asked: wire.RegisterRequest) -> RegisterSpec:
    """Convert a register to the core's type. Raises `Error`: INVALID."""
    facts = asked.facts
    return RegisterSpec(
        boot_id=asked.boot_id,
        facts=MachineFacts(facts.hostname, facts.kernel, facts.version),
        root=None if asked.root is None else ProviderId(uuid_of(asked.root, "root")),
        labels=asked.labels,
        parts=[_part_of(part) for part in asked.parts],
    )


def _part_of(part: wire.AgentPart) -> PartSpec:
    return PartSpec(
        provider=ProviderId(uuid_of(part.provider, "parts.provider")),
        name=part.name,
        parent=None if part.parent is None else ProviderId(uuid_of(part.parent, "parts.parent")),
        classes={
            name: ClassSpec(one.eligible, one.volatile, one.max_unit, one.step_size)
            for name, one in part.classes.items()
        },
    )


def report_of(asked: wire.ReportRequest, now: Instant) -> MachineReport:
    """Convert a report to the core's type; `now` is when it was received. Raises INVALID."""
    consumers = asked.consumers
    return MachineReport(
        boot_id=asked.boot_id,
        report_generation=asked.report_generation,
        desired_generation_seen=asked.desired_generation_seen,
        phase=Phase(asked.phase),
        actual={
            ProviderId(uuid_of(uuid, "actual")): dict(amounts)
            for uuid, amounts in asked.actual.items()
        },
        consumers=None
        if consumers is None
        else frozenset(ConsumerId(uuid_of(one, "consumers")) for one in consumers),
        failure=None if asked.failure is None else _failure_of(asked.failure, now),
    )


def _failure_of(asked: wire.AgentFailure, now: Instant) -> Failure:
    retry = microseconds_or_none("next_retry_in", asked.next_retry_in)
    return Failure(
        code=asked.code,
        message=asked.message,
        attempts=asked.attempts,
        since=instant_of("since", asked.since),
        next_retry_at=None if retry is None else Instant(now + retry),
    )


def agent_shown(view: AgentView, heard_at: Instant | None) -> wire.Agent:
    """Convert an agent to its wire form."""
    agent = view.agent
    used = _used(view.places)
    return wire.Agent(
        id=agent.uuid,
        group=agent.group,
        labels=dict(agent.labels),
        root=agent.root,
        given_root=agent.given_root,
        owns_root=agent.owns_root,
        accepted=agent.accepted,
        policy=agent.policy.value,
        policy_reason=agent.policy_reason,
        policy_by=agent.policy_by,
        policy_until=time_or_none(agent.policy_until),
        state=agent.state.value,
        readiness=agent.readiness.value,
        liveness=agent.liveness.value,
        heard_at=time_or_none(heard_at),
        boot_id=agent.boot_id,
        facts=None
        if agent.facts is None
        else wire.MachineFacts(
            hostname=agent.facts.hostname,
            kernel=agent.facts.kernel,
            version=agent.facts.version,
        ),
        report_generation=agent.report_generation,
        desired_generation=agent.desired_generation,
        desired_generation_seen=agent.desired_generation_seen,
        phase=agent.phase.value,
        failure=None if agent.failure is None else _failure_shown(agent.failure),
        withheld=offers.why_withheld(agent),
        offered=offers.is_offered(agent),
        over=any(
            used.get(uuid, {}).get(name, 0) > offers.offered(agent, part, one)
            for uuid, part in agent.parts.items()
            for name, one in part.classes.items()
        ),
        unconfirmed=[*unconfirmed(agent, view.places)],
        parts=[
            _part_shown(agent, uuid, part, used.get(uuid, {}))
            for uuid, part in sorted(agent.parts.items())
        ],
        generation=agent.generation,
        created_at=time_of(agent.created_at),
        updated_at=time_of(agent.updated_at),
        registered_at=time_or_none(agent.registered_at),
        reported_at=time_or_none(agent.reported_at),
        plan=_plan_shown(agent.plan),
    )


def _plan_shown(plan: SentPlan | None) -> AgentPlan | None:
    if plan is None:
        return None
    return AgentPlan(
        digest=plan.digest,
        boot_id=plan.boot_id,
        outcome=plan.outcome.value,
        at=time_of(plan.at),
        reshape=plan.reshape,
    )


def start_shown(start: Start) -> wire.StartAnswer:
    """Convert whether a consumer may start to its wire form."""
    return wire.StartAnswer(
        may_start=start.may_start,
        reason=start.reason,
        needed={uuid: dict(amounts) for uuid, amounts in start.needed.items()},
        ahead={uuid: dict(amounts) for uuid, amounts in start.ahead.items()},
        actual={uuid: dict(amounts) for uuid, amounts in start.actual.items()},
    )


def _used(places: Iterable[ConsumerPlace]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for place in places:
        sums = found.setdefault(place.provider, {})
        for name, amount in place.amounts.items():
            sums[name] = sums.get(name, 0) + amount
    return found


def _part_shown(agent: Agent, uuid: str, part: Part, used: dict[str, int]) -> wire.PartShown:
    return wire.PartShown(
        provider=uuid,
        name=part.name,
        parent=part.parent,
        present=part.present,
        classes={
            name: wire.ManagedClass(
                eligible=one.eligible,
                volatile=one.volatile,
                desired=one.desired,
                source=one.source.value,
                percent=None if one.goal is None else one.goal.percent,
                actual=one.actual,
                offered=offers.offered(agent, part, one),
                used=used.get(name, 0),
                why=offers.why_less(agent, part, one),
            )
            for name, one in sorted(part.classes.items())
        },
    )


def _failure_shown(failure: Failure) -> FailureValue:
    return FailureValue(
        code=failure.code,
        message=failure.message,
        attempts=failure.attempts,
        since=time_of(failure.since),
        next_retry_at=time_or_none(failure.next_retry_at),
    )
