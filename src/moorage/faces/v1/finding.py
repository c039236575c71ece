"""Finds things of all kinds by a text: those that the caller may list."""

from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any, NamedTuple

from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Agent, State
from moorage.core.ids import AgentId, is_prefix
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import FIND_LIMIT_MAX, FIND_TEXT_LENGTH_MAX, FIND_TEXT_LENGTH_MIN, PAGE_MAX
from moorage.core.texts import check_plain
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.access.roles import Role, permits
from moorage.service.admission.queries import LeaseFilter
from moorage.service.admission.views import LeaseView
from moorage.service.ledger.queries import ConsumerFilter
from moorage.service.values import check_text
from moorage.wire.finding import FindAsked, Findings, Found
from moorage.wire.labels import holder_of, says
from moorage.wire.operations import admin, fleet, leases, ledger, pools, reshapes
from moorage.wire.operations import finding as operations
from moorage.wire.operations.operation import Operation

AGENTS_AT_A_TIME = 1_024
"""Agents that are looked at before other work may run: about a millisecond."""

Finding = Request[None, FindAsked]


class Search(NamedTuple):
    """A kind of things, the operation that lists them, and what finds them.

    `find` receives the request, the case-folded text and how many to return at most.
    """

    listed_by: Operation[Any]
    find: Callable[[Finding, str, int], Awaitable[list[Found]]]


async def find(request: Finding) -> Findings:
    """Return what a text finds among the things that the caller may list."""
    asked = request.parameters
    check_plain("text", asked.text)
    check_text("text", asked.text.strip(), FIND_TEXT_LENGTH_MAX, FIND_TEXT_LENGTH_MIN)
    if not 1 <= asked.limit <= FIND_LIMIT_MAX:
        raise Error(Code.INVALID, f"limit must be from 1 to {FIND_LIMIT_MAX}.")
    async with request.service.finding.of(request.caller.identity):
        return await _found(request, asked.text.strip().casefold(), asked.limit)


async def _found(request: Finding, text: str, most: int) -> Findings:
    answer = Findings(found=[], more=[])
    for search in SEARCHES:
        if _may_list(request, search.listed_by):
            # One more than is returned shows that there are more.
            found = await search.find(request, text, most + 1)
            for kind in dict.fromkeys(one.kind for one in found):
                alike = [one for one in found if one.kind == kind]
                answer.found.extend(alike[:most])
                if len(alike) > most:
                    answer.more.append(kind)
    return answer


def _may_list(request: Finding, operation: Operation[Any]) -> bool:
    access = operation.access
    assert access.role is not None
    bound = request.project is not None and not access.projects
    return permits(Role(access.role), request.role) and not bound


async def _providers(request: Finding, text: str, most: int) -> list[Found]:
    service = request.service
    catalog = await service.index.current()
    uuids = await service.turns.driven(catalog.names_with(text, most))
    if is_prefix(text):
        begun, _ = await service.reads.providers_page(None, most, text)
        uuids = [*dict.fromkeys([*begun, *uuids])][:most]  # the name may be the UUID
    records = [record for uuid in uuids if (record := catalog.record(uuid)) is not None]
    return [
        Found(
            kind="provider",
            id=one.provider.uuid,
            name=one.provider.name,
            detail="" if one.provider.withheld is None else one.provider.withheld.reason,
        )
        for one in records
    ]


async def _agents(request: Finding, text: str, most: int) -> list[Found]:
    service = request.service
    found = await service.turns.driven(_agents_with(request, text, most))
    return [
        Found(
            kind="agent",
            id=one.uuid,
            name=one.uuid if one.facts is None else one.facts.hostname,
            detail=f"{one.group}, {one.liveness.value}",
        )
        for one in found
    ]


def _agents_with(request: Finding, text: str, most: int) -> Steps[list[Agent]]:
    directory = request.service.fleet.directory
    ids: list[AgentId] = [one.uuid for one in directory.agents()]
    found = []
    for number, uuid in enumerate(ids):
        if number % AGENTS_AT_A_TIME == AGENTS_AT_A_TIME - 1:
            yield
        agent = directory.get(uuid)
        if agent is not None and agent.state is State.ACTIVE and _says(agent, text):
            found.append(agent)
            if len(found) == most:
                break
    return found


def _says(agent: Agent, text: str) -> bool:
    host = "" if agent.facts is None else agent.facts.hostname
    return says(text, host, agent.labels) or (is_prefix(text) and agent.uuid.startswith(text))


async def _groups(request: Finding, text: str, most: int) -> list[Found]:
    groups = sorted(one.name for one in request.service.fleet.directory.groups())
    named = islice((name for name in groups if text in name.casefold()), most)
    return [Found(kind="group", id=name, name=name, detail="group of agents") for name in named]


async def _pools(request: Finding, text: str, most: int) -> list[Found]:
    found = await request.service.admission.queries.pools_with(text, most)
    return [
        Found(kind="pool", id=one.name, name=one.name, detail=_limit(one.spec.limit))
        for one in found
    ]


def _limit(limit: int | None) -> str:
    return "one unit for each slot" if limit is None else f"limit {limit}"


async def _leases(request: Finding, text: str, most: int) -> list[Found]:
    queries = request.service.admission.queries
    found: dict[str, LeaseView] = {}
    if is_prefix(text):
        begun, _, _ = await queries.leases(None, min(most, PAGE_MAX), id_prefix=text)
        found |= {view.lease.id: view for view in begun}
    for state in ("granted", "waiting"):
        said, _, _ = await queries.leases(None, most, state=state, only=LeaseFilter(text=text))
        found |= {view.lease.id: view for view in said}
    return [_lease_found(view) for view in found.values()]


def _lease_found(view: LeaseView) -> Found:
    lease = view.lease
    return Found(
        kind="ticket" if lease.state == "waiting" else "lease",
        id=lease.id,
        name=holder_of(lease.owner, lease.labels),
        detail=f"{lease.state}, {', '.join(need.pool for need in lease.needs)}",
    )


async def _consumers(request: Finding, text: str, most: int) -> list[Found]:
    reads = request.service.reads
    found: list[Found] = []
    if is_prefix(text):
        begun = await reads.consumers_page(None, most, ConsumerFilter(prefix=text))
        found += [
            Found(
                kind="consumer",
                id=one.uuid,
                name=one.uuid,
                detail=f"{one.consumer_type or 'no type'} of {one.user_id} in {one.project_id}",
            )
            for one in begun.consumers
        ]
    # Identifiers of projects keep their case.
    project = request.parameters.text.strip()
    some = await reads.consumers_page(None, 1, ConsumerFilter(project_id=project))
    if some.consumers:
        found.append(Found(kind="project", id=project, name=project, detail="has consumers"))
    return found


async def _reshapes(request: Finding, text: str, most: int) -> list[Found]:
    if not is_prefix(text):
        return []
    return [
        Found(kind="reshape", id=one.id, name=one.id, detail=f"by {one.who}")
        for one in await request.service.reshapes.begun(text, most)
    ]


async def _tokens(request: Finding, text: str, most: int) -> list[Found]:
    tokens = await request.service.access.list()
    said = (one for one in tokens if text in one.name.casefold() or one.id.startswith(text))
    return [
        Found(kind="token", id=one.id, name=one.name, detail=one.role) for one in islice(said, most)
    ]


SEARCHES = (
    Search(ledger.LIST_PROVIDERS, _providers),
    Search(fleet.LIST_AGENTS, _agents),
    Search(fleet.LIST_GROUPS, _groups),
    Search(pools.LIST_POOLS, _pools),
    Search(leases.LIST_LEASES, _leases),
    Search(ledger.LIST_CONSUMERS, _consumers),
    Search(reshapes.LIST_RESHAPES, _reshapes),
    Search(admin.LIST_TOKENS, _tokens),
)
"""All kinds, in the order in which they are shown."""

HANDLERS: Handlers = {operations.FIND: find}
