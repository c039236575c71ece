"""Groups of reporters: members join, stay and leave; what observers see; pins; ghosts."""

from typing import Any

from moorage.core.clock import SECOND
from moorage.core.fleet.members import check_group_name, is_live
from moorage.core.fleet.reporters import Member
from moorage.core.ids import ProviderId
from moorage.core.service_time import Moment
from moorage.faces.v1 import roles
from moorage.faces.v1.routing import Request, Route
from moorage.service.access.roles import Role, ScopedRole
from moorage.service.fleet.reporter_cases import Join, Leave, Observe, PinNodes, Told
from moorage.service.fleet.reporters import GroupView
from moorage.service.values import instant_of, microseconds, time_of, time_or_none, uuid_of
from moorage.wire import reporting as wire
from moorage.wire.pages import PageAsked

OWN = (ScopedRole.REPORTER,)


def group_of(request: Request[Any, Any]) -> str:
    """Return the group in the address. Raises ProblemError: 403, the token is for another one."""
    name = request.variables["name"]
    roles.check_scope(request.scope, [name])
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


_GROUP = "/v1/reporter-groups/{name}"

ROUTES = (
    Route(
        method="GET",
        path="/v1/reporter-groups",
        role=Role.READER,
        summary="List groups of reporters by name.",
        handler=page,
        parameters=PageAsked,
        answer=wire.ReporterGroupPage,
    ),
    Route(
        method="GET",
        path=_GROUP,
        role=Role.READER,
        scopes=OWN,
        summary="Show a group of reporters, with its members.",
        handler=read,
        answer=wire.ReporterGroup,
    ),
    Route(
        method="DELETE",
        path=_GROUP,
        role=Role.OPERATOR,
        summary="Delete a group of reporters that has no live members; its providers stay.",
        handler=delete,
    ),
    Route(
        method="PUT",
        path=f"{_GROUP}/members/{{member}}",
        role=Role.SERVICE,
        scopes=OWN,
        summary="Join a group of reporters, or stay in it; another instance is fenced.",
        handler=join,
        body=wire.MemberWanted,
        answer=wire.Membership,
        routine=True,
    ),
    Route(
        method="DELETE",
        path=f"{_GROUP}/members/{{member}}",
        role=Role.SERVICE,
        scopes=OWN,
        summary="Leave a group of reporters, so that its nodes get other owners at once.",
        handler=leave,
        parameters=wire.LeaveAsked,
    ),
    Route(
        method="PUT",
        path=f"{_GROUP}/observed",
        role=Role.SERVICE,
        scopes=OWN,
        summary="Replace the members of a group that somebody else observes.",
        handler=observed,
        body=wire.ObservedWanted,
        answer=wire.ReporterGroup,
        routine=True,
    ),
    Route(
        method="GET",
        path=f"{_GROUP}/pins",
        role=Role.READER,
        scopes=OWN,
        summary="List the nodes of a group that are pinned to a member, by UUID.",
        handler=pins,
        parameters=PageAsked,
        answer=wire.PinPage,
    ),
    Route(
        method="POST",
        path=f"{_GROUP}/pins",
        role=Role.OPERATOR,
        summary="Pin up to 5,000 nodes to a member, or remove their pins.",
        handler=pin,
        body=wire.PinsWanted,
        answer=wire.ReporterGroup,
    ),
    Route(
        method="GET",
        path=f"{_GROUP}/nodes",
        role=Role.READER,
        scopes=OWN,
        summary="List the providers that the group reports, and those that are gone.",
        handler=nodes,
        parameters=PageAsked,
        answer=wire.NodePage,
    ),
    Route(
        method="GET",
        path=f"{_GROUP}/ghosts",
        role=Role.READER,
        scopes=OWN,
        summary="List providers that are gone by a report of the group, but are still allocated.",
        handler=ghosts,
        parameters=PageAsked,
        answer=wire.GhostPage,
    ),
)
