"""Groups of reporters: members join, stay and leave; their reports; observers, pins, ghosts."""

from collections import Counter
from typing import Any

from moorage.core.clock import SECOND
from moorage.core.fleet.members import check_group_name, is_live
from moorage.core.fleet.reporters import Member
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.reported import Mode, Node, NodeAnswer, ReportOutcome
from moorage.core.service_time import Moment
from moorage.faces.v1 import authorization
from moorage.faces.v1.decoding import body_decode, misfit
from moorage.faces.v1.ledger.providers import inventory_of
from moorage.faces.v1.long_lists import members_of, parts_of
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.fair_turns import Pieces
from moorage.service.fleet.report_bounds import ReportedNodes
from moorage.service.fleet.reporter_cases import Join, Leave, Observe, PinNodes, Sender, Told
from moorage.service.fleet.reporters import GroupView
from moorage.service.values import instant_of, microseconds, time_of, time_or_none, uuid_of
from moorage.wire import reporting as wire
from moorage.wire.operations import reporting as operations
from moorage.wire.pages import PageAsked
from moorage.wire.reporting import NodeOutcome, NodeOutcomes, NodeReported, ReportWanted


def group_of(request: Request[Any, Any]) -> str:
    """Return the group in the address. Raises ProblemError: 403, the token is for another one."""
    name = request.variables["name"]
    authorization.check_scope(request.caller.scope, [name])
    return name


async def join(request: Request[wire.MemberWanted, None]) -> wire.Membership:
    """Join a group, or stay in it."""
    group, wanted = group_of(request), request.body
    ttl = microseconds("ttl", wanted.ttl)
    instance = uuid_of(wanted.instance, "instance")
    told = None
    if (last := wanted.last_pass) is not None:
        told = Told(microseconds("last_pass.age", last.age), last.nodes, last.refused)
    member = request.variables["member"]
    found = await request.service.transactor.submit(
        Join(group, member, instance, ttl, told, wanted.renew)
    )
    return wire.Membership(
        token=found.member.token,
        ttl=found.member.ttl / SECOND,
        members=found.live,
        pins_generation=found.group.pins_generation,
    )


async def leave(request: Request[None, wire.LeaveAsked]) -> None:
    """Leave a group: its nodes get other owners at once."""
    group, instance = group_of(request), request.parameters.instance
    wanted = None if instance is None else uuid_of(instance, "instance")
    await request.service.transactor.submit(Leave(group, request.variables["member"], wanted))


async def observed(request: Request[wire.ObservedWanted, None]) -> wire.ReporterGroup:
    """Replace the members of a group that somebody else observes."""
    group, seen = group_of(request), request.body
    at = instant_of("seen_at", seen.seen_at)
    await request.service.transactor.submit(Observe(group, seen.members, at, seen.error))
    return _shown(await request.service.reporters.group(group))


async def pin(request: Request[wire.PinsWanted, None]) -> wire.ReporterGroup:
    """Pin nodes to a member, or remove their pins."""
    group, wanted = group_of(request), request.body
    nodes = [ProviderId(uuid_of(node, "A node")) for node in wanted.nodes]
    await request.service.transactor.submit(PinNodes(group, nodes, wanted.member, request.actor))
    return _shown(await request.service.reporters.group(group))


async def page(request: Request[None, PageAsked]) -> wire.ReporterGroupPage:
    """Return a page of the names of groups."""
    asked = request.parameters
    groups, following = await request.service.reporters.groups(asked.cursor, asked.limit)
    return wire.ReporterGroupPage(groups=groups, next=following)


async def read(request: Request[None, None]) -> wire.ReporterGroup:
    """Return a group with all its members."""
    group = group_of(request)
    check_group_name(group)
    return _shown(await request.service.reporters.group(group))


async def delete(request: Request[None, None]) -> None:
    """Delete a group; its providers stay."""
    group = group_of(request)
    check_group_name(group)
    await request.service.reporters.delete(group, request.actor)


async def pins(request: Request[None, PageAsked]) -> wire.PinPage:
    """Return a page of the pins of a group."""
    group, asked = group_of(request), request.parameters
    found, following = await request.service.reporters.pins(group, asked.cursor, asked.limit)
    return wire.PinPage(
        pins=[wire.Pin(node=node, member=member) for node, member in found], next=following
    )


async def ghosts(request: Request[None, PageAsked]) -> wire.GhostPage:
    """Return a page of the ghosts of a group."""
    group, asked = group_of(request), request.parameters
    found, following = await request.service.reporters.ghosts(group, asked.cursor, asked.limit)
    return wire.GhostPage(ghosts=[*found], next=following)


async def nodes(request: Request[None, PageAsked]) -> wire.NodePage:
    """Return a page of the nodes that a group has reported."""
    group, asked = group_of(request), request.parameters
    found, following = await request.service.reporters.nodes(group, asked.cursor, asked.limit)
    return wire.NodePage(
        nodes=[wire.NodeOwned(uuid=uuid, ghost=ghost) for uuid, ghost in found], next=following
    )


def _shown(view: GroupView) -> wire.ReporterGroup:
    group, moment = view.group, view.moment
    live = {member.name for member in view.members if is_live(member, moment)}
    return wire.ReporterGroup(
        name=group.name,
        members=[
            _member(
                member, moment, live=member.name in live, pinned=view.pinned.get(member.name, 0)
            )
            for member in view.members
        ],
        observed=[*group.observed],
        seen_at=time_or_none(group.seen_at),
        observer_error=group.observer_error,
        pins_generation=group.pins_generation,
        pinned_elsewhere=sum(pins for name, pins in view.pinned.items() if name not in live),
    )


def _member(member: Member, moment: Moment, *, live: bool, pinned: int) -> wire.Reporter:
    last = member.last_pass
    told = None
    if last is not None:
        age = max(0, moment.alive - last.at) / SECOND
        told = wire.PassTold(age=age, nodes=last.nodes, refused=last.refused)
    return wire.Reporter(
        name=member.name,
        instance=member.instance,
        live=live,
        ttl=member.ttl / SECOND,
        silent=max(0, moment.alive - member.heard_until + member.ttl) / SECOND,
        joined_at=time_of(member.joined_at),
        pinned=pinned,
        last_pass=told,
    )


async def send(request: Request[bytes, None]) -> NodeOutcomes:
    """Make the ledger say what a report says of the nodes of its sender."""
    pieces = Pieces(request.service.turns)
    parts = await parts_of(request.body, pieces, "nodes", _envelope)
    wanted = _envelope(parts.around)
    authorization.check_scope(request.caller.scope, [wanted.group])
    nodes = ReportedNodes()
    async for node in members_of(request.body, parts, pieces, NodeReported, _node):
        nodes.add(node)  # before the next ones are in memory
    sender = Sender(wanted.group, wanted.member, wanted.token, Mode(wanted.mode))
    answers = await request.service.reporters.report(sender, nodes, pieces, request.actor)
    return await _answers_shown(answers, pieces)


HANDLERS: Handlers = {
    operations.LIST_REPORTER_GROUPS: page,
    operations.GET_REPORTER_GROUP: read,
    operations.DELETE_REPORTER_GROUP: delete,
    operations.JOIN_REPORTER_GROUP: join,
    operations.LEAVE_REPORTER_GROUP: leave,
    operations.PUT_OBSERVED_MEMBERS: observed,
    operations.LIST_PINS: pins,
    operations.PIN_NODES: pin,
    operations.LIST_REPORTER_GROUP_NODES: nodes,
    operations.LIST_REPORTER_GROUP_GHOSTS: ghosts,
    operations.SEND_REPORTS: send,
}


def _envelope(around: bytes) -> ReportWanted:
    """Decode a body without its nodes. Raises RefusalError."""
    wanted = body_decode(around, ReportWanted)
    if wanted.nodes:
        raise misfit("`nodes` is given more than once")
    return wanted


def _node(sent: NodeReported) -> Node:
    uuid = ProviderId(uuid_of(sent.uuid, "uuid"))
    if sent.seen == "absent":
        return Node(uuid, absent=True)
    aggregates = None
    if sent.aggregates is not None:
        aggregates = frozenset(AggregateId(uuid_of(e, "An aggregate")) for e in sent.aggregates)
    inventories = None
    if sent.inventories is not None:
        inventories = {name: inventory_of(each) for name, each in sent.inventories.items()}
    return Node(
        uuid,
        sent.name,
        inventories=inventories,
        traits=None if sent.traits is None else frozenset(sent.traits),
        aggregates=aggregates,
    )


async def _answers_shown(answers: list[NodeAnswer], pieces: Pieces) -> NodeOutcomes:
    results = [_outcome(each) async for each in pieces.each(answers)]
    counts = Counter(each.outcome for each in answers)
    codes = Counter(each.code for each in results if each.code is not None)
    return NodeOutcomes(
        results=results,
        ghosts=sum(each.ghost for each in answers),
        codes=dict(sorted(codes.items())),
        **{kind.value: counts[kind] for kind in ReportOutcome},
    )


def _outcome(answer: NodeAnswer) -> NodeOutcome:
    refusal = answer.refusal
    return NodeOutcome(
        uuid=answer.uuid,
        outcome=answer.outcome.value,
        generation=answer.generation,
        ghost=answer.ghost,
        code=None if refusal is None else refusal.code.value,
        message=None if refusal is None else refusal.message,
    )
