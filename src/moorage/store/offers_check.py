"""Checks that the ledger offers exactly what the agents of the machines say.

The offers are derived again from the agents' rows, and compared with what is stored beside the
inventories. Each difference is one line of text for people.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from moorage.core.fleet.model import Agent, ManagedClass, Part, State
from moorage.core.fleet.offers import offered, why_withheld
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger.draining import is_drained
from moorage.core.ledger.model import Inventory, Provider, Withheld
from moorage.store.api import Damaged, Plan, Query, Row, Stream
from moorage.store.fleet.rows import agent_from_row
from moorage.store.ledger.rows import provider_from_row

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
    rows: list[Row] = []
    found, _ = yield [Query("agents_snapshot"), Stream("providers_snapshot", (), rows.extend)]
    agents: dict[AgentId, Agent] = {}
    for uuid, *_, body in found:
        with suppress(Damaged):
            agents[uuid] = agent_from_row(uuid, body)
    held = {row[0]: provider_from_row(row) for row in rows}
    return offers_differences(agents, held)


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
