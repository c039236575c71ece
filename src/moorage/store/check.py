"""Checks the database for consistency: computes every sum and every tree from the rows again.

Use `read_aside`: it reads everything. Each difference is one line of text for people. Offers are
derived again from the agents' rows, and compared with what is stored beside the inventories.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from moorage.core.fleet.model import Agent, ManagedClass, Part, State
from moorage.core.fleet.offers import offered, why_withheld
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger.draining import is_drained
from moorage.core.ledger.model import Inventory, Provider, Withheld
from moorage.store.admission import check as admission_check
from moorage.store.api import Damaged, Plan, Query, Row, Stream
from moorage.store.fleet import check as fleet_check
from moorage.store.fleet.rows import agent_from_row
from moorage.store.ledger import check as ledger_check
from moorage.store.ledger.rows import provider_from_row, tags_from_row


def content_plans(
    standard_classes: frozenset[str], standard_traits: frozenset[str]
) -> list[Plan[list[str]]]:
    """Return the plans that check the contents of an undamaged file; run each in its own snapshot.

    A long snapshot stops SQLite from reusing its log, and PostgreSQL from removing dead rows.
    """
    return [
        _sums(),
        _adrift(),
        _words(standard_classes, standard_traits),
        _reported(),
        _trees(),
        admission_check.differences_load(),
        fleet_check.differences_load(),
        ledger_check.differences_load(),
        offers_differences_load(),
    ]


def file_differences_load() -> Plan[list[str]]:
    """Return the damage of the file itself."""
    (pages,) = yield [Query("integrity_check")]
    return [f"file: {row[0]}" for row in pages if row[0] != "ok"]


def _trees() -> Plan[list[str]]:
    """Check the providers in larger trees, their parents, and what is wrong by itself.

    The others cannot be wrong, and nearly all providers of a large fleet are such: reading the rows
    twice, some at a time, takes little memory.
    """
    wanted: set[ProviderId] = set()
    held: dict[ProviderId, Provider] = {}

    def chosen(rows: list[Row]) -> None:
        for uuid, _, generation, parent, root, *_ in rows:
            if parent is not None:
                wanted.update((uuid, parent))
            elif root != uuid or generation < 0:
                wanted.add(uuid)

    def taken(rows: list[Row]) -> None:
        held.update((row[0], provider_from_row(row)[0]) for row in rows if row[0] in wanted)

    yield [Stream("providers_snapshot", (), chosen)]
    yield [Stream("providers_snapshot", (), taken)]
    return tree_differences(held)


def _sums() -> Plan[list[str]]:
    sums, generations, holds = yield [
        Query("inventory_sums_differ"),
        Query("consumer_generations_wrong"),
        Query("allocations_not_positive"),
    ]
    found = [
        f"inventory {name} of provider {provider}: used is {used}, allocations sum up to {total}"
        for provider, name, used, total in sums
    ]
    found += [f"consumer {uuid}: generation {generation}" for uuid, generation in generations]
    return found + [
        f"allocation of consumer {consumer} on {name} of provider {provider}: amount {amount}"
        for consumer, provider, name, amount in holds
    ]


def tree_differences(providers: dict[ProviderId, Provider]) -> list[str]:
    """Return the errors in generations, parents and roots of these providers, in order."""
    found = []
    for uuid, provider in providers.items():
        if provider.generation < 0:
            found.append(f"provider {uuid}: generation {provider.generation}")
        parent = providers.get(provider.parent) if provider.parent is not None else None
        if provider.parent is None:
            if provider.root != uuid:
                found.append(f"provider {uuid}: no parent, but its root is {provider.root}")
        elif parent is None:
            found.append(f"provider {uuid}: its parent {provider.parent} does not exist")
        elif parent.root != provider.root:
            found.append(f"provider {uuid}: root {provider.root}, its parent's is {parent.root}")
        if _loops(providers, provider):
            found.append(f"provider {uuid}: it is its own ancestor")
    return found


def _loops(providers: dict[ProviderId, Provider], start: Provider) -> bool:
    seen: set[ProviderId] = set()
    at: Provider | None = start
    while at is not None and at.parent is not None and at.uuid not in seen:
        seen.add(at.uuid)
        at = providers.get(at.parent)
    return at is not None and at.uuid == start.uuid and start.uuid in seen


def _adrift() -> Plan[list[str]]:
    """Find rows that refer to rows that do not exist."""
    tags, allocations, missing, adrift, idle = yield [
        Query("tags_adrift"),
        Query("allocations_adrift"),
        Query("holders_missing"),
        Query("holders_adrift"),
        Query("consumers_idle"),
    ]
    return [
        *(f"traits and aggregates: provider {provider} does not exist" for (provider,) in tags),
        *(
            f"allocation of consumer {consumer}: provider {provider} has no inventory of {name}"
            for consumer, provider, name in allocations
        ),
        *(
            f"holders of provider {provider}: consumer {consumer} is missing"
            for provider, consumer in missing
        ),
        *(
            f"holders of provider {provider}: consumer {consumer} has no allocation on it"
            for provider, consumer in adrift
        ),
        *(f"consumer {consumer}: it has no allocations" for (consumer,) in idle),
    ]


def _words(standard_classes: frozenset[str], standard_traits: frozenset[str]) -> Plan[list[str]]:
    """Find resource classes and traits that are used but do not exist."""
    classes, traits, used_classes, used_traits = yield [
        Query("resource_classes_snapshot"),
        Query("traits_snapshot"),
        Query("inventory_classes_load"),
        Query("tags_names_load"),
    ]
    known_classes = standard_classes.union(row[0] for row in classes)
    known_traits = standard_traits.union(row[0] for row in traits)
    return [
        *(f"inventory: no resource class {n}" for (n,) in used_classes if n not in known_classes),
        *(f"traits: no trait {n}" for (n,) in used_traits if n not in known_traits),
    ]


def _reported() -> Plan[list[str]]:
    """Find traits that reports have set, according to the rows, but that are not there."""
    (rows,) = yield [Query("tags_reported_snapshot")]
    found = []
    for row in rows:
        tags = tags_from_row(row)
        for one in tags.reported:
            found += [
                f"traits of provider {row[0]}: group '{one.group}' has set {name}, it is not there"
                for name in sorted(one.traits - tags.traits)
            ]
    return found


Held = Mapping[ProviderId, tuple[Provider, dict[str, Inventory]]]
"""Providers with their inventories."""


class _Pair(NamedTuple):
    provider: ProviderId
    resource_class: str

    def __str__(self) -> str:
        return f"inventory {self.resource_class} of provider {self.provider}"


def offers_differences_load() -> Plan[list[str]]:
    """Return the differences between agents and ledger; without agents and offers: none.

    Agents whose rows `fleet/check.py` reports as unreadable are left out.
    """
    (found,) = yield [Query("agents_snapshot")]
    agents: dict[AgentId, Agent] = {}
    for uuid, *_, body in found:
        with suppress(Damaged):
            agents[uuid] = agent_from_row(uuid, body)
    spoken_for = {uuid for agent in agents.values() for uuid in (agent.root, *agent.parts)}
    held: dict[ProviderId, tuple[Provider, dict[str, Inventory]]] = {}

    def taken(rows: list[Row]) -> None:
        held.update(
            (row[0], provider_from_row(row))
            for row in rows
            if row[0] in spoken_for or _may_be_withheld(row)
        )

    yield [Stream("providers_snapshot", (), taken)]
    return offers_differences(agents, held)


def _may_be_withheld(row: Row) -> bool:
    """Does a row say anything of agents or offers, or may it have to, because of its parent?"""
    _, _, _, parent, _, _, _, agent, withheld, inventories = row
    if parent is not None or agent is not None or withheld is not None:
        return True
    return '"offered"' in inventories or '"withheld"' in inventories


def offers_differences(agents: Mapping[AgentId, Agent], held: Held) -> list[str]:
    """Return the differences between agents and the providers and inventories of their machines."""
    managed = {
        _Pair(uuid, name): (agent, part, one)
        for agent in agents.values()
        for uuid, part in agent.parts.items()
        if _is_of(held, uuid, agent)
        for name, one in part.classes.items()
    }
    return [
        *_agents_of(agents, held),
        *_withheld(agents.values(), held),
        *_missing(managed, held),
        *_inventories(managed, held),
    ]


def _is_of(held: Held, uuid: ProviderId, agent: Agent) -> bool:
    """Is a provider, if it exists, the one of this agent? Clients may delete and create it."""
    return uuid not in held or held[uuid][0].agent == agent.uuid


def _agents_of(agents: Mapping[AgentId, Agent], held: Held) -> Iterator[str]:
    for uuid, (provider, _) in held.items():
        if provider.agent is None:
            continue
        agent = agents.get(provider.agent)
        if agent is None or (uuid not in agent.parts and uuid != agent.root):
            yield f"provider {uuid}: it is no part of agent {provider.agent}"


def _withheld(agents: Iterable[Agent], held: Held) -> Iterator[str]:
    """Compare whether each provider is withheld with its agent's root, or with its parent.

    What an operator has drained is withheld by itself.
    """
    # Of a decommissioned agent's machine another one may speak.
    ordered = sorted(agents, key=lambda agent: agent.state is State.ACTIVE)
    reasons = {
        agent.root: why_withheld(agent)
        for agent in ordered
        if agent.root is not None and _speaks_for(agent, held.get(agent.root))
    }
    for uuid, (provider, inventories) in held.items():
        reason = reasons.get(uuid)
        expected = None if reason is None else Withheld(reason, uuid)
        if expected is None and provider.parent is not None and provider.parent in held:
            expected = held[provider.parent][0].withheld
        if uuid not in reasons and is_drained(provider):
            expected = provider.withheld
        if provider.withheld != expected:
            yield f"provider {uuid}: withheld is {_text(provider.withheld)}, not {_text(expected)}"
        for name, inventory in inventories.items():
            if inventory.withheld != (provider.withheld is not None):
                yield f"{_Pair(uuid, name)}: withheld is {inventory.withheld}"


def _speaks_for(agent: Agent, root: tuple[Provider, dict[str, Inventory]] | None) -> bool:
    """Must the root of a machine be as its agent says? Clients may delete and create it."""
    if root is None:
        return False
    provider = root[0]
    if agent.owns_root:
        return provider.agent == agent.uuid
    if agent.state is State.DECOMMISSIONED:  # nothing tells whether it was created again since
        return provider.withheld == Withheld(agent.state, provider.uuid)
    return True


def _text(withheld: Withheld | None) -> str:
    return "null" if withheld is None else f"'{withheld.reason}' because of {withheld.by}"


def _missing(
    managed: Mapping[_Pair, tuple[Agent, Part, ManagedClass]], held: Held
) -> Iterator[str]:
    for pair, (agent, _, one) in managed.items():
        provider = held.get(pair.provider)
        if provider is not None and one.desired and pair.resource_class not in provider[1]:
            yield f"{pair}: it does not exist, but agent {agent.uuid} should have {one.desired}"


def _inventories(
    managed: Mapping[_Pair, tuple[Agent, Part, ManagedClass]], held: Held
) -> Iterator[str]:
    for uuid, (_, inventories) in held.items():
        for name, inventory in inventories.items():
            pair = _Pair(uuid, name)
            if pair not in managed:
                if inventory.offered is not None:
                    yield f"{pair}: offered is {inventory.offered}, but no agent manages it"
                continue
            agent, part, one = managed[pair]
            if inventory.offered != offered(agent, part, one):
                expected = offered(agent, part, one)
                yield f"{pair}: offered is {inventory.offered}, its agent offers {expected}"
            if inventory.total != max(one.desired, 1):
                yield f"{pair}: total is {inventory.total}, its agent should have {one.desired}"
