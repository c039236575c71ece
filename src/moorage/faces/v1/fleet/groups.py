"""Groups of agents: their defaults, and how many of their members are silent."""

from moorage.core.fleet.model import (
    Goal,
    Silence,
)
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.fleet.liveness_cases import GroupWait
from moorage.service.fleet.policy_cases import GroupDelete
from moorage.service.fleet.queries import GroupView
from moorage.service.values import (
    microseconds,
    time_or_none,
)
from moorage.wire import fleet as wire
from moorage.wire.operations import fleet as operations
from moorage.wire.pages import PageAsked


async def page(request: Request[None, PageAsked]) -> wire.GroupPage:
    """Return a page of groups, ordered by name."""
    asked = request.parameters
    views, following = await request.service.fleet.queries.groups(asked.cursor, asked.limit)
    return wire.GroupPage(groups=[group_shown(view) for view in views], next=following)


async def read(request: Request[None, None]) -> wire.AgentGroup:
    """Return one group."""
    return group_shown(await request.service.fleet.queries.group(request.variables["name"]))


async def put(request: Request[wire.GroupWanted, None]) -> wire.AgentGroup:
    """Create a group, or replace its defaults."""
    name = request.variables["name"]
    goals = {
        resource_class: Goal(goal.amount, goal.percent)
        for resource_class, goal in request.body.desired.items()
    }
    wanted = request.body.silence
    silence = None if wanted is None else Silence(wanted)
    await request.service.fleet.group_defaults.put(name, goals, request.actor, silence)
    return group_shown(await request.service.fleet.queries.group(name))


async def delete(request: Request[None, None]) -> None:
    """Delete a group without active agents."""
    case = GroupDelete(request.variables["name"], request.actor)
    await request.service.transactor.submit(case)


async def confirm(request: Request[None, None]) -> wire.AgentGroup:
    """Declare the silent members of a suspect group lost."""
    name = request.variables["name"]
    await request.service.fleet.group_confirm(name, request.actor)
    return group_shown(await request.service.fleet.queries.group(name))


async def wait(request: Request[wire.GroupWaitRequest, None]) -> wire.AgentGroup:
    """Declare no member of a group lost for some time."""
    name = request.variables["name"]
    lasts = microseconds("seconds", request.body.seconds)
    await request.service.transactor.submit(GroupWait(name, request.actor, lasts))
    return group_shown(await request.service.fleet.queries.group(name))


HANDLERS: Handlers = {
    operations.CONFIRM_GROUP: confirm,
    operations.WAIT_GROUP: wait,
    operations.LIST_GROUPS: page,
    operations.GET_GROUP: read,
    operations.PUT_GROUP: put,
    operations.DELETE_GROUP: delete,
}


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
        silence=group.silence.value,
    )
