"""Agents that offer less than a query needs, although their machines are meant to have room."""

from collections.abc import Callable, Iterable
from itertools import islice

from msgspec import Struct

from moorage.core.fleet.model import Agent
from moorage.core.fleet.offers import why_less, why_nothing, why_withheld
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import admits, has_room, may_record
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import CandidateQuery
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.conditions import conditions
from moorage.core.ledger.search.groups import GroupPart, terms
from moorage.core.ledger.search.steps import Steps

AGENTS_A_STEP = 50
"""Agents that are looked at before others have their turn."""

Meets = Callable[[ProviderId], bool]


class NotOffered(Struct, frozen=True):
    """A provider that would serve a part of the query if its agent offered all that is desired."""

    agent: Agent
    provider: ProviderId
    resource_class: str
    reason: str

    @property
    def detail(self) -> str:
        """The operator's reason for the policy, or the machine's for its failure; else empty."""
        if self.reason == self.agent.policy:
            return self.agent.policy_reason
        return "" if self.agent.failure is None else self.agent.failure.message


def not_offering(
    catalog: Catalog, agents: Iterable[Agent], query: CandidateQuery
) -> Steps[list[NotOffered]]:
    """Return the agents that would serve a part of the query, with the first such provider of each.

    Traits, aggregates and the tree that a part requires are met; only what the agent offers, or
    that its tree is withheld, is in the way. It pauses after every few agents, so each agent is as
    of a different moment.
    """
    found: list[NotOffered] = []
    waiting = iter([agent for agent in agents if agent.root is not None and _offers_less(agent)])
    while portion := list(islice(waiting, AGENTS_A_STEP)):
        meeting = [(term, _meeting(catalog, term)) for term in terms(query.groups)]
        for agent in portion:
            place = _in_the_way(catalog, agent, meeting)
            if place is not None:
                found.append(NotOffered(agent, *place, _reason(agent, *place)))
        yield
    return found


def _offers_less(agent: Agent) -> bool:
    """Return whether anything of the machine is withheld, or less than is desired is offered."""
    if why_nothing(agent) is not None:
        return True
    return any(
        why_less(agent, part, managed) is not None
        for part in agent.parts.values()
        for managed in part.classes.values()
    )


def _meeting(catalog: Catalog, term: GroupPart) -> Meets:
    """Return a function: does a provider meet all of a part's conditions that are no amounts?

    The function is valid until the catalog changes.
    """
    tree = term.group.in_tree
    asked = conditions(term, None if tree is None else catalog.places.get(tree))
    rest = [condition for condition in asked if not condition.name]

    def meets(provider: ProviderId) -> bool:
        chunk, row = catalog.places[provider]
        for condition in rest:
            rows = condition.rows(chunk)
            if rows is None or not rows[row]:
                return False
        return True

    return meets


def _in_the_way(
    catalog: Catalog, agent: Agent, meeting: list[tuple[GroupPart, Meets]]
) -> tuple[ProviderId, str] | None:
    """Return the first provider of the machine that only its agent keeps from serving a part.

    And the class of which too little is offered.
    """
    assert agent.root is not None
    for provider in catalog.tree_of(agent.root):
        record = catalog.record(provider)
        assert record is not None
        for term, meets in meeting:
            name = _only_not_offered(record.inventories.get, term)
            if name is not None and meets(provider):
                return provider, name
    return None


def _only_not_offered(
    inventory_of: Callable[[str], Inventory | None], term: GroupPart
) -> str | None:
    """Return the class of which inventories would serve a part, but too little is offered now.

    None: they would not serve it anyway, or they do.
    """
    short: str | None = None
    for name, amount in term.resources.items():
        inventory = inventory_of(name)
        if inventory is None or not admits(inventory, amount):
            return None
        if not may_record(inventory, amount):
            return None
        if short is None and not has_room(inventory, amount):
            short = name
    return short


def _reason(agent: Agent, provider: ProviderId, name: str) -> str:
    """Return why the agent offers too little of a class at a provider."""
    reason = why_withheld(agent) or why_nothing(agent)
    part = agent.parts.get(provider)
    if reason is None and part is not None and name in part.classes:
        reason = why_less(agent, part, part.classes[name])
    return reason or "withheld"
