"""Explanations: where a query fits, or why it finds no candidates."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, Group, TraitFilter
from moorage.core.ledger.search.explain import Explanation, Step, explaining
from moorage.core.ledger.search.misses import Misses, missing
from moorage.core.ledger.search.places import Fitting, fitting
from moorage.core.ledger.search.validation import check_known, check_sense
from moorage.faces.query_strings.pasted import pasted_query
from moorage.faces.v1.decoding import body_decode
from moorage.faces.v1.routing import Handlers, Request
from moorage.faces.web import Limits, RefusalError
from moorage.service.fleet.not_offered import NotOffered, not_offering
from moorage.service.values import uuid_of
from moorage.wire.ledger import (
    ExplainAsked,
    Explained,
    ExplainedAgent,
    ExplainedMiss,
    ExplainedPart,
    ExplainedPlace,
    ExplainedShare,
    ExplainedStep,
    GroupAsked,
    Question,
)
from moorage.wire.operations import ledger as operations

AGENTS_NAMED_MAX = 20
"""Agents that an explanation names; the others it only counts."""


PLACES_NAMED_MAX = 20
"""Places that an explanation names, where it fits or nearly fits."""


async def explain_query(request: Request[None, ExplainAsked]) -> Explained:
    """Explain the query in the address."""
    asked = request.parameters
    if bool(asked.candidates) == bool(asked.query):
        raise RefusalError(HTTPStatus.BAD_REQUEST, "Pass either query or candidates.")
    if asked.candidates:
        return await _explained(request, pasted_query(asked.candidates, Limits()))
    return await _explained(request, query_of(body_decode(asked.query.encode(), Question)))


async def explain(request: Request[Question, None]) -> Explained:
    """Explain the query in the body."""
    return await _explained(request, query_of(request.body))


HANDLERS: Handlers = {
    operations.EXPLAIN_BY_QUERY: explain_query,
    operations.EXPLAIN: explain,
}


async def _explained(request: Request[Any, Any], query: CandidateQuery) -> Explained:
    service = request.service
    catalog = await service.index.current()
    check_known(catalog, query)
    reading = service.searches.reading
    explanation = await reading(explaining(catalog, query))
    explained = shown(explanation)
    if request.project is not None:
        return without_figures(explained)
    if explained.found:
        return with_places(explained, await reading(fitting(catalog, query, PLACES_NAMED_MAX)))
    if explained.exhausted:
        near = await reading(missing(catalog, query, explanation, PLACES_NAMED_MAX))
        explained = with_misses(explained, near)
    agents = service.fleet.directory.agents()
    return with_agents(explained, await reading(not_offering(catalog, agents, query)))


def shown(explained: Explanation) -> Explained:
    """Convert an explanation to its wire form."""
    return Explained(
        found=explained.found,
        exhausted=explained.exhausted,
        parts=[
            ExplainedPart(
                suffix=part.suffix,
                resource_class=part.resource_class,
                steps=_steps(part.steps),
                nearest=part.nearest,
            )
            for part in explained.parts
        ],
        trees=_steps(explained.trees),
        without=explained.without,
        nearest=explained.nearest,
    )


def _steps(steps: list[Step]) -> list[ExplainedStep]:
    return [ExplainedStep(condition=step.condition, left=step.left) for step in steps]


def with_agents(explained: Explained, found: list[NotOffered]) -> Explained:
    """Return an explanation that counts agents which offer too little, and names the first."""
    ordered = sorted(found, key=lambda each: (each.agent.group, each.agent.uuid))
    agents = [
        ExplainedAgent(
            agent=each.agent.uuid,
            hostname="" if each.agent.facts is None else each.agent.facts.hostname,
            group=each.agent.group,
            provider=each.provider,
            resource_class=each.resource_class,
            reason=each.reason,
            detail=each.detail,
        )
        for each in ordered[:AGENTS_NAMED_MAX]
    ]
    counts = Counter(each.reason for each in found)
    return replace(explained, not_offered=dict(counts.most_common()), agents=agents)


def with_places(explained: Explained, fitting: Fitting) -> Explained:
    """Return an explanation that names places where it fits."""
    places = [
        ExplainedPlace(
            root=place.root,
            name=place.name,
            shares=[
                ExplainedShare(
                    provider=share.provider, name=share.name, takes=share.takes, left=share.left
                )
                for share in place.shares
            ],
        )
        for place in fitting.places
    ]
    return replace(explained, places=places, more_places=fitting.more, places_exact=fitting.exact)


def with_misses(explained: Explained, misses: Misses) -> Explained:
    """Return an explanation that names the places which lack the least."""
    named = [
        ExplainedMiss(
            part=one.part,
            provider=one.provider,
            name=one.name,
            root=one.root,
            lacks=[*one.lacks],
        )
        for one in misses.nearest
    ]
    return replace(explained, misses=named, more_misses=misses.more)


def without_figures(explained: Explained) -> Explained:
    """Return an explanation for a caller that is bound to a project.

    It names the condition that leaves no candidates, but not how many providers exist or how full
    they are.
    """
    parts = [
        replace(part, steps=_without_counts(part.steps), nearest=None) for part in explained.parts
    ]
    steps = [step for part in explained.parts for step in part.steps] + explained.trees
    nearest = None
    if explained.nearest is not None:
        empty = next((step.condition for step in steps if step.left == 0), None)
        nearest = "No tree can serve all parts together."
        if empty is not None:
            nearest = f"Nothing meets the condition: {empty}"
    return replace(explained, parts=parts, trees=_without_counts(explained.trees), nearest=nearest)


def _without_counts(steps: list[ExplainedStep]) -> list[ExplainedStep]:
    return [replace(step, left=None if step.left else 0) for step in steps]


ADDRESS_LENGTH_MAX = 4_096
"""Longer addresses are not returned: clients, proxies or logs might truncate them."""


def query_of(asked: Question) -> CandidateQuery:
    """Convert a query to the ledger's type. Raises `Error`: INVALID, LIMIT_EXCEEDED."""
    query = CandidateQuery(
        groups=tuple(_group(group) for group in asked.groups),
        group_policy=asked.group_policy,
        same_subtree=tuple(frozenset(suffixes) for suffixes in asked.same_subtree),
        root_traits=TraitFilter(
            tuple(frozenset((name,)) for name in asked.root_required),
            frozenset(asked.root_forbidden),
        ),
    )
    check_sense(query)
    return query


def explaining_address(asked: Question) -> str:
    """Return the address that explains a query; it contains the query, unless that is too long."""
    members = {
        field.name: value
        for field in fields(Question)
        if (value := _brief(getattr(asked, field.name)))
    }
    address = (
        f"{operations.EXPLAIN_BY_QUERY.path}?query={quote(msgspec.json.encode(members), safe='')}"
    )
    return address if len(address) <= ADDRESS_LENGTH_MAX else operations.EXPLAIN.path


def _group(asked: GroupAsked) -> Group:
    return Group(
        suffix=asked.suffix,
        resources=asked.resources,
        traits=TraitFilter(_sets(asked.required), frozenset(asked.forbidden)),
        aggregates=AggregateFilter(
            tuple(frozenset(map(_aggregate, names)) for names in _sets(asked.member_of)),
            frozenset(map(_aggregate, asked.not_member_of)),
        ),
        in_tree=None if asked.in_tree is None else ProviderId(uuid_of(asked.in_tree, "in_tree")),
    )


def _sets(entries: Iterable[str | list[str]]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset((e,) if isinstance(e, str) else e) for e in entries)


def _aggregate(text: str) -> AggregateId:
    return AggregateId(uuid_of(text, "An aggregate"))


def _brief(value: Any) -> Any:
    """Omit empty members of groups."""
    if isinstance(value, list):
        return [_brief(each) for each in value]
    if isinstance(value, GroupAsked):
        members = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: member for name, member in members if member}
    return value
