"""What is answered from rows rather than from the index: consumers and what they use."""

from dataclasses import dataclass

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.model import Consumer
from moorage.store.api import Plan, Query
from moorage.store.rows import consumers_from_rows, key_set


@dataclass(slots=True)
class Usages:
    """What a project, or one user of it, uses."""

    amounts: list[tuple[str | None, str, int]]
    """(consumer type, resource class, sum), sorted."""
    consumers: dict[str | None, int]
    """Number of consumers by consumer type."""


ProviderAllocation = tuple[ConsumerId, int, dict[str, int], Instant]
"""(consumer, its generation, amounts by resource class, when the consumer last changed)."""


def consumer_load(uuid: ConsumerId) -> Plan[Consumer | None]:
    """Load one consumer with its allocations."""
    asked = (key_set([uuid]),)
    consumers, allocations = yield [
        Query("consumers_load", asked),
        Query("allocations_load_by_consumer", asked),
    ]
    return consumers_from_rows(consumers, allocations).get(uuid)


def provider_allocations_load(provider: ProviderId) -> Plan[list[ProviderAllocation]]:
    """Load every allocation on one provider, by consumer."""
    (rows,) = yield [Query("allocations_load_by_provider", (provider,))]
    found: dict[ConsumerId, ProviderAllocation] = {}
    for consumer, generation, name, amount, updated_at in rows:
        found.setdefault(consumer, (consumer, generation, {}, updated_at))[2][name] = amount
    return list(found.values())


def usages_load(project_id: str, user_id: str | None) -> Plan[Usages]:
    """Sum up what a project uses; with `user_id` only that user's consumers."""
    if user_id is None:
        statements = [
            Query("usages_load_by_project", (project_id,)),
            Query("consumers_count_by_project", (project_id,)),
        ]
    else:
        statements = [
            Query("usages_load_by_user", (project_id, user_id)),
            Query("consumers_count_by_user", (project_id, user_id)),
        ]
    amounts, counts = yield statements
    return Usages([(kind, name, amount) for kind, name, amount in amounts], dict(counts))
