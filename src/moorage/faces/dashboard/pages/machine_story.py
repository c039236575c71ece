"""What happened to a machine, and which leases concern it: for its page."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import starmap
from operator import attrgetter
from typing import Any, NamedTuple

from moorage.faces.dashboard.pages.claims_story import claims_of
from moorage.faces.dashboard.routing import ROOT, PageRequest, address_of
from moorage.faces.native_api import RefusedError
from moorage.service.values import time_of
from moorage.wire.admission import Lease
from moorage.wire.audit import AuditEntry
from moorage.wire.fleet import Agent
from moorage.wire.operations import admin, feed, fleet, leases, reshapes
from moorage.wire.providers import ConsumerShown
from moorage.wire.reshapes import ReshapeEntry

LEASES_SHOWN = 20
ACTIONS_READ = 20
RESHAPES_READ = 20
EVENTS_SHOWN = 30
NAMES_MAX = 32
"""Names and UUIDs by which leases are found: the machine's, and those of its first parts."""


class MachineEvent(NamedTuple):
    """Something that happened to a machine, and where to read more; no address: nowhere."""

    at: datetime
    text: str
    address: str = ""


class Story(NamedTuple):
    """The newest events, newest first, and whether there are older ones."""

    events: list[MachineEvent]
    older: bool


class LeasesShown(NamedTuple):
    """Leases and tickets that concern a machine, and whether more of them are not shown."""

    leases: list[Lease]
    more: bool


async def agent_of(request: PageRequest, agent: str | None) -> Agent | None:
    """Return the agent of a machine; None: it has none, or the reader may not see it."""
    if agent is None or not request.permits(fleet.GET_AGENT):
        return None
    try:
        return await request.get(fleet.GET_AGENT, agent)
    except RefusedError:  # it was removed meanwhile
        return None


async def leases_of(request: PageRequest, names: Sequence[str]) -> LeasesShown | None:
    """Return the live leases and tickets of a machine, by its names and UUIDs.

    None: the reader may not list those of all pools.
    """
    found: list[Lease] = []
    more = False
    try:
        for state in ("granted", "waiting"):
            page = await request.recent(
                leases.LIST_LEASES,
                state=state,
                machine=tuple(names[:NAMES_MAX]),
                limit=LEASES_SHOWN,
            )
            found += page.leases
            more = more or page.next is not None
    except RefusedError:
        return None
    return LeasesShown(found, more)


async def story_of(
    request: PageRequest,
    root: Any,
    agent: Agent | None,
    targets: Iterable[str],
    members: Collection[str],
    consumers: Iterable[ConsumerShown],
) -> Story:
    """Return what happened to a machine: reshapes, claims, and actions on any of these targets.

    `members` are the UUIDs of all its providers, `consumers` the first that hold any of it.
    """
    events = [MachineEvent(time_of(root.created_at), "Created")]
    older = False
    if request.permits(reshapes.LIST_RESHAPES):
        made = await request.recent(reshapes.LIST_RESHAPES, tree=root.uuid, limit=RESHAPES_READ)
        events += map(_reshaped, made.reshapes)
        older = made.next is not None
    if request.permits(admin.LIST_AUDIT):
        for target in dict.fromkeys(targets):
            page = await request.recent(admin.LIST_AUDIT, target=target, limit=ACTIONS_READ)
            events += map(_acted, page.entries)
            older = older or page.next is not None
    if request.permits(feed.WATCH):
        claims = await claims_of(request.service, members, consumers)
        events += starmap(MachineEvent, claims)
    if agent is not None:
        events += _of_agent(agent)
    # Stable: what happened at the same time stays in the order in which it was found.
    events.sort(key=attrgetter("at"), reverse=True)
    return Story(events[:EVENTS_SHOWN], older or len(events) > EVENTS_SHOWN)


def _reshaped(entry: ReshapeEntry) -> MachineEvent:
    reason = f": {entry.reason}" if entry.reason else ""
    return MachineEvent(entry.at, f"Reshaped by {entry.who}{reason}", f"{ROOT}/reshapes/{entry.id}")


def _acted(entry: AuditEntry) -> MachineEvent:
    after: Mapping[str, Any] = entry.after if isinstance(entry.after, dict) else {}
    reason = f": {after['reason']}" if after.get("reason") else ""
    address = address_of(f"{ROOT}/audit", {"target": entry.target}) + f"#action-{entry.id}"
    return MachineEvent(entry.at, f"{entry.action} by {entry.who}{reason}", address)


def _of_agent(agent: Agent) -> Iterator[MachineEvent]:
    address = f"{ROOT}/agents/{agent.id}"
    if agent.registered_at is not None:
        yield MachineEvent(agent.registered_at, "Its agent registered this boot", address)
    if agent.failure is not None:
        text = f"Failing since: {agent.failure.code} {agent.failure.message}"
        yield MachineEvent(agent.failure.since, text, address)
