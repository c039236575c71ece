"""Machines as a table, by name, and one machine: its tree, who has it, what happened to it."""

from collections.abc import Iterable, Mapping
from heapq import nsmallest
from http import HTTPStatus
from itertools import chain
from typing import Any, NamedTuple

from moorage.core.ids import ProviderId
from moorage.core.ledger.compact_inventories import OWN, Inventories, InventoryFigures
from moorage.core.ledger.draining import is_drained
from moorage.core.ledger.model import Provider, ProviderRecord
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.capacity_sums import Snapshot, snapshot
from moorage.core.ledger.search.steps import Steps
from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.forms import done
from moorage.faces.dashboard.pages.fleet_data import NEEDS
from moorage.faces.dashboard.pages.machine_story import agent_of, leases_of, story_of
from moorage.faces.dashboard.pages.one_revision import TRIES, as_of
from moorage.faces.dashboard.routing import ROOT, Action, Answer, Data, Page, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.service.app import Service
from moorage.service.values import time_of
from moorage.wire.fleet import Agent
from moorage.wire.operations import fleet, ledger
from moorage.wire.operations.operation import Operation
from moorage.wire.providers import ConsumerPage, ProviderShown

MACHINES_SHOWN = 50
EXPORTED = 1_000
CLOSED: Mapping[str, str] = {
    "late": "its agent is silent",
    "lost": "its agent is silent: lost",
    "no_provision": "an operator has drained it",
    "expunged": "an operator has expunged it",
    "decommissioned": "an operator has decommissioned it",
    "preparing": "it is still preparing",
    "unregistered": "its agent has not registered",
    "failed": "it has failed",
}
"""Reasons for which a tree is withheld, in words."""

TREE_SHOWN_MAX = 200
"""Providers of one machine that its page shows."""

CONSUMERS_SHOWN = 20
"""Consumers of one machine that its page shows; it counts the others."""


Place = tuple[str, str]
"""The place of a provider in the table: its name, and its UUID."""


class Held(NamedTuple):
    """The inventory of one class at one provider."""

    resource_class: str
    total: int
    reserved: int
    capacity: int
    used: int
    ratio: float
    closed: str
    """Why nothing of it, or less than all, is offered; empty: all of it is."""

    @property
    def free(self) -> int:
        """How many more units may be allocated."""
        return max(0, self.capacity - self.used)


class Silence(NamedTuple):
    """A machine's agent, and what its silence closes: every class of the tree, or its own."""

    agent: Agent
    all: bool


class Shown(NamedTuple):
    """A provider of the machine, with what it has."""

    record: ProviderRecord
    held: list[Held]


async def page(request: PageRequest) -> Mapping[str, Any]:
    """Return a window of all providers, by name."""
    after = request.query.get("after", "")
    answer: Mapping[str, Any] = await request.answers.of(
        (MACHINES, after), lambda: _window(request.service, after), fresh=not request.streamed
    )
    return answer


async def _window(service: Service, after: str) -> Mapping[str, Any]:
    catalog = await service.index.current()
    # The event loop does not run in between, so all is as of the same revision.
    records, revision = snapshot(catalog), as_of(service)
    work = named_after(records, _place(after), MACHINES_SHOWN + 1)
    found = await service.searches.reading(work)
    shown = [Shown(one, _held(one)) for one in found[:MACHINES_SHOWN]]
    last = shown[-1].record.provider if len(found) > MACHINES_SHOWN else None
    following = None if last is None else f"{last.name}/{last.uuid}"
    return {"as_of": revision, "shown": shown, "next": following}


def named_after(records: Snapshot, after: Place, limit: int) -> Steps[list[ProviderRecord]]:
    """Return the first providers behind a place, by name; others have their turn in between."""
    found: list[ProviderRecord] = []
    for chunk in records:
        behind = (one for one in chunk if one is not None and _place_of(one) > after)
        found = nsmallest(limit, chain(found, behind), key=_place_of)
        yield
    return found


def _place_of(one: ProviderRecord) -> Place:
    return one.provider.name, one.provider.uuid


def _place(text: str) -> Place:
    """Return the place that an address names: a name, and the UUID of who has it."""
    name, _, uuid = text.rpartition("/")
    return name, uuid


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 providers by UUID, from the cursor on."""
    cursor = request.query.get("cursor") or None
    found = await request.get(NEEDS, cursor=cursor, limit=EXPORTED)
    return await exported(request, "machines", ProviderShown, found.providers, found.next)


class Tree(NamedTuple):
    """A machine as of one revision, which is `as_of`."""

    as_of: str
    root: ProviderRecord
    shown: list[Shown]
    members: frozenset[str]
    """The UUIDs of all its providers."""

    @property
    def agent(self) -> str | None:
        """The first agent that manages any of it."""
        agents = (one.record.provider.agent for one in self.shown)
        return next((agent for agent in agents if agent is not None), None)


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return one machine: the whole tree of a provider, and all about it. Raises RefusedError."""
    tree, held = await _held_tree(request)
    root, found = tree.root.provider, tree.agent
    agent = await agent_of(request, found)
    parts = [one.record.provider.uuid for one in tree.shown]
    return {
        "title": root.name,
        "created": time_of(root.created_at),
        "names": {one.record.provider.uuid: one.record.provider.name for one in tree.shown},
        "as_of": tree.as_of,
        "root": tree.root,
        "move": _move(root, found),
        "shown": tree.shown,
        "members": tree.members,
        "left_out": len(tree.members) - len(tree.shown),
        "agent_id": found,
        "agent": agent,
        "closed": CLOSED,
        "silence": await _silence(request, agent),
        "consumers": held.consumers,
        "more_consumers": max(0, (held.holders or 0) - len(held.consumers)),
        "holders": held.holders or 0,
        "leases": await leases_of(request, [root.name, *parts]),
        "story": await story_of(
            request,
            root,
            agent,
            [root.uuid, *([found] if found else [])],
            tree.members,
            held.consumers,
        ),
    }


def _move(root: Provider, agent: str | None) -> str:
    """Return the button of operators. A machine with an agent is drained on the agent's page."""
    if is_drained(root):
        return "resume"
    return "drain" if agent is None else ""


async def _held_tree(request: PageRequest) -> tuple[Tree, ConsumerPage]:
    """Return a machine and its first consumers, as of one revision unless that keeps changing."""
    asked = ProviderId(request.variables["id"])
    for _ in range(TRIES):
        tree = await _tree(request, asked)
        held = await request.get(ledger.LIST_CONSUMERS, tree=asked, limit=CONSUMERS_SHOWN)
        if held.as_of != tree.as_of:
            # Perhaps only the rows were read later: then the catalog has that revision now.
            tree = await _tree(request, asked)
        if held.as_of == tree.as_of:
            return tree, held
    return tree._replace(as_of=f"{held.as_of} to {tree.as_of}"), held


async def _tree(request: PageRequest, asked: ProviderId) -> Tree:
    catalog = await request.service.index.current()
    tree = catalog.tree_of(asked)
    record = catalog.record(tree[0]) if tree else None
    if record is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, "not_found", f"There is no provider {asked}.")
    root = catalog.record(record.provider.root)
    assert root is not None
    shown = _shown(catalog, tree[:TREE_SHOWN_MAX])
    return Tree(as_of(request.service), root, shown, frozenset(tree))


async def _silence(request: PageRequest, agent: Agent | None) -> Silence | None:
    """Return what the silence of a machine's agent closes."""
    if agent is None:
        return None
    try:
        group = await request.get(fleet.GET_GROUP, agent.group)
    except RefusedError:  # deleted meanwhile, or this reader may not see it
        return None
    return Silence(agent=agent, all=group.silence == "all" or agent.owns_root)


def _shown(catalog: Catalog, uuids: Iterable[ProviderId]) -> list[Shown]:
    records = [record for uuid in uuids if (record := catalog.record(uuid)) is not None]
    return [Shown(record, _held(record)) for record in records]


def _held(record: ProviderRecord) -> list[Held]:
    packed = record.inventories
    assert isinstance(packed, Inventories)  # those of a catalog are packed
    found = zip(packed.offers, packed.own_figures()[::OWN], strict=True)
    return sorted(
        Held(
            offer.name,
            offer.total,
            offer.reserved,
            offer.units,
            used,
            offer.allocation_ratio,
            _closed(record, offer),
        )
        for offer, used in found
    )


def _closed(record: ProviderRecord, offer: InventoryFigures) -> str:
    """Return why nothing, or less than all, of an inventory is offered."""
    withheld = record.provider.withheld
    if withheld is not None:
        return CLOSED.get(withheld.reason, withheld.reason)
    if offer.offered is not None and offer.offered < offer.total:
        return "its agent reports nothing" if not offer.offered else "its agent reports less"
    return ""


async def drain(request: PageRequest) -> str:
    """Place nothing new on a machine that no agent manages; what is allocated stays."""
    return await _moved(request, ledger.DRAIN_PROVIDER, "drained")


async def resume(request: PageRequest) -> str:
    """Use such a machine again."""
    return await _moved(request, ledger.RESUME_PROVIDER, "resumed")


async def _moved(request: PageRequest, move: Operation[Any], notice: str) -> str:
    uuid = request.variables["id"]
    await request.ask(move, uuid, body={"reason": request.form.get("reason", "").strip()})
    return done(f"{MACHINES}/{uuid}", notice)


MACHINES = f"{ROOT}/fleet/machines"

ENTRIES = (
    Page(path=MACHINES, title="Machines", template="machines.html", show=page, needs=NEEDS),
    Data(path=f"{MACHINES}.csv", read=export),
    Data(path=f"{MACHINES}.json", read=export),
    Page(
        path=f"{MACHINES}/{{id}}", title="Machine", template="machine.html", show=show, needs=NEEDS
    ),
    Action(path=f"{MACHINES}/{{id}}/drain", act=drain),
    Action(path=f"{MACHINES}/{{id}}/resume", act=resume),
)
