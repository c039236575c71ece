"""Agents and groups in the native API."""

from collections.abc import Iterable

from moorage.core.clock import Instant
from moorage.core.fleet import desired, offers, reports, starts
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import (
    Agent,
    Failure,
    Goal,
    MachineFacts,
    MachineReport,
    Part,
    Phase,
)
from moorage.core.fleet.parts import ClassSpec, PartSpec
from moorage.core.fleet.policy import is_accepted
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.fleet.starts import ConsumerPlace, Start
from moorage.core.ids import ConsumerId, ProviderId
from moorage.service.fleet.queries import AgentView, GroupView
from moorage.service.native.bounds import microseconds_or_none, uuid_of
from moorage.service.native.encoding import instant_of, time_of, time_or_none
from moorage.wire import fleet as wire
from moorage.wire.changes import FailureValue


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


def desired_of(asked: wire.DesiredRequest) -> DesiredSpec:
    """Convert a desired amount to the core's type. Raises `Error`: INVALID."""
    provider = None if asked.provider is None else ProviderId(uuid_of(asked.provider, "provider"))
    goal = None
    if asked.amount is not None or asked.percent is not None:
        goal = Goal(asked.amount, asked.percent)
    return DesiredSpec(asked.resource_class, provider, goal)


def orders(agent: Agent, ttl: float, next_in: float) -> wire.AgentOrders:
    """Return the answer to a register or report."""
    return wire.AgentOrders(
        report_generation=agent.report_generation,
        desired_generation=agent.desired_generation,
        desired={uuid: dict(amounts) for uuid, amounts in desired.amounts(agent).items()},
        ttl=ttl,
        next_in=next_in,
        directive=reports.directive(agent),
    )


def shown(view: AgentView, heard_at: Instant | None) -> wire.Agent:
    """Convert an agent to its wire form."""
    agent = view.agent
    used = _used(view.places)
    return wire.Agent(
        id=agent.uuid,
        group=agent.group,
        labels=dict(agent.labels),
        root=agent.root,
        given_root=agent.given_root,
        accepted=is_accepted(agent),
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
        unconfirmed=[*starts.unconfirmed(agent, view.places)],
        parts=[
            _part_shown(agent, uuid, part, used.get(uuid, {}))
            for uuid, part in sorted(agent.parts.items())
        ],
        generation=agent.generation,
        created_at=time_of(agent.created_at),
        updated_at=time_of(agent.updated_at),
        registered_at=time_or_none(agent.registered_at),
        reported_at=time_or_none(agent.reported_at),
    )


def group_shown(view: GroupView) -> wire.AgentGroup:
    """Convert a group to its wire form."""
    group = view.group
    return wire.AgentGroup(
        name=group.name,
        desired={
            name: wire.GroupDesired(amount=goal.amount, percent=goal.percent)
            for name, goal in sorted(group.desired.items())
        },
        members=view.members,
        late=view.late,
        lost=view.lost,
        suspect_network=group.suspect_since is not None,
        suspect_since=time_or_none(group.suspect_since),
        waits_until=time_or_none(group.waits_until),
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
