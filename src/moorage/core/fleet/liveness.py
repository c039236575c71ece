"""How long an agent may be silent, and what follows. Durations are in microseconds.

An agent that is silent for longer than its TTL is late: nothing more is offered of its machine.
After three TTLs it is lost, which only alarms. If many agents of a group fall silent together, the
network is suspected, and none of them is declared lost. Allocations are never touched.
Source: decision 0025; docs/concepts/fleet.md.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.fleet.agents import changes_of
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import Agent, Group, Liveness, Policy, State
from moorage.core.ids import AgentId

LOST_TTLS = 3
"""TTLs of silence after which an agent is lost."""

BRAKE_LEAST = 3
"""Fewer silent agents than this do not make a network suspect."""

BRAKE_PERCENT = 30
"""The share of a group's agents that must be silent to make its network suspect."""


class Silence(NamedTuple):
    """For how long an agent was silent while the service was running, and a grace period."""

    age: int
    grace_until_age: int = 0
    """Not late before this age: it may not have reached the service after an outage."""


class GroupCount(NamedTuple):
    """Members of a group in service: those that are not lost, and of them the late ones."""

    not_lost: int
    late: int


def grace(age: int, since_outage: int | None, ttl: int) -> int:
    """Return the age before which an agent is not late because of an outage of the service.

    It gets one TTL after the outage to be heard again, but in all not more than two, so that
    repeated restarts do not postpone it for ever.

    Args:
        age: how long it was silent while the service was running.
        since_outage: how long ago the latest outage ended; None: there was none.
        ttl: its TTL.
    """
    if since_outage is None:
        return 0
    return min(age - since_outage + ttl, 2 * ttl)


def liveness_after(silence: Silence, ttl: int) -> Liveness:
    """Return the liveness that follows from a silence."""
    late_from = max(ttl, silence.grace_until_age)
    if silence.age <= late_from:
        return Liveness.FRESH
    # After an outage an agent may have been heard of later than is known, so all is put off.
    return Liveness.LATE if silence.age <= late_from + (LOST_TTLS - 1) * ttl else Liveness.LOST


def threshold(count: GroupCount) -> int:
    """Return how many silent members make the network of a group suspect."""
    return max(BRAKE_LEAST, -(-BRAKE_PERCENT * count.not_lost // 100))


def swept(
    facts: Facts,
    now: Instant,
    silences: Mapping[AgentId, Liveness],
    counts: Mapping[str, GroupCount],
    *,
    braked: bool = True,
) -> Changes:
    """Apply what silence makes of some agents; only beats and reports make them fresh again.

    Args:
        facts: with the agents and their groups.
        now: wall-clock time.
        silences: the liveness of agents by their silence.
        counts: of the groups in which an agent would become lost.
        braked: whether a suspect network saves agents from being lost; an operator may know better.
    """
    changes = Changes()
    for uuid, found in silences.items():
        agent = facts.agents.get(uuid)
        if agent is None or agent.state is State.DECOMMISSIONED or agent.boot_id is None:
            continue
        if agent.liveness is Liveness.FRESH and found is not Liveness.FRESH:
            changes.update(changes_of(agent, replace(agent, liveness=Liveness.LATE), now))
        elif agent.liveness is Liveness.LATE and found is Liveness.LOST:
            if braked and _brakes(facts, changes, agent, counts, now):
                continue
            changes.update(changes_of(agent, replace(agent, liveness=Liveness.LOST), now))
    return changes


def _brakes(
    facts: Facts,
    changes: Changes,
    agent: Agent,
    counts: Mapping[str, GroupCount],
    now: Instant,
) -> bool:
    """Return whether an agent must not be declared lost now; may make its group suspect."""
    group = changes.groups.get(agent.group) or facts.groups.get(agent.group)
    if group is None or agent.policy is not Policy.IN_SERVICE:
        return False
    if group.suspect_since is not None:
        return True
    count = counts.get(agent.group)
    if count is None:
        return True  # it has just changed its group: the next sweep decides
    if count.late < threshold(count):
        return False
    changes.groups[group.name] = _changed(group, now, suspect_since=now)
    return True


def written_at(agent: Agent) -> Instant | None:
    """Return when an agent last caused a change, by which all processes hear of it; None: never."""
    known = (agent.registered_at, agent.reported_at, agent.returned_at)
    return max((at for at in known if at is not None), default=None)


def relaxed(facts: Facts, now: Instant, wall: Instant, name: str, count: GroupCount) -> Changes:
    """End the suspicion of a group's network once few enough of its members are silent.

    Not before the operator's wait is over, by the wall clock.
    """
    group = facts.groups.get(name)
    if group is None or group.suspect_since is None:
        return Changes()
    if group.waits_until is not None and wall < group.waits_until:
        return Changes()
    if 2 * count.late >= threshold(count):
        return Changes()
    return Changes(groups={name: _changed(group, now, suspect_since=None, waits_until=None)})


def confirmed(group: Group, now: Instant) -> Changes:
    """End the suspicion: an operator says that the silent members are lost."""
    if group.suspect_since is None:
        return Changes()
    return Changes(groups={group.name: _changed(group, now, suspect_since=None, waits_until=None)})


def waits(group: Group, now: Instant, until: Instant) -> Changes:
    """Let a group be suspect until some time at least, so that none of its members is lost."""
    since = group.suspect_since or now
    if (group.suspect_since, group.waits_until) == (since, until):
        return Changes()
    after = _changed(group, now, suspect_since=since, waits_until=until)
    return Changes(groups={group.name: after})


def returned(facts: Facts, now: Instant, uuid: AgentId, made: Changes) -> Changes:
    """Add to the changes of a decision that its agent has been heard of."""
    agent = made.agents.get(uuid) or facts.agents.get(uuid)
    if agent is None or agent.liveness is Liveness.FRESH or agent.state is State.DECOMMISSIONED:
        return made
    fresh = replace(agent, liveness=Liveness.FRESH, returned_at=now)
    if uuid in made.agents:
        made.agents[uuid] = fresh
    else:
        made.update(changes_of(agent, fresh, now))
    return made


def _changed(
    group: Group, now: Instant, *, suspect_since: Instant | None, waits_until: Instant | None = None
) -> Group:
    return replace(
        group,
        suspect_since=suspect_since,
        waits_until=waits_until,
        generation=group.generation + 1,
        updated_at=now,
    )
