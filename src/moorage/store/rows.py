"""How the ledger's values stand in rows: one function per value and direction."""

from collections.abc import Iterable
from functools import lru_cache

from msgspec import json

from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.model import Consumer, Inventory, Provider, Tags
from moorage.store.api import Row

_encoder = json.Encoder(order="deterministic")


def encode(value: object) -> str:
    """Return a value as JSON text; equal values give equal texts."""
    return _encoder.encode(value).decode()


def key_set(keys: Iterable[str]) -> str:
    """Return a set of keys as the one parameter of a set statement."""
    return encode(sorted(keys))


@lru_cache(maxsize=20_000)
def _traits(text: str) -> frozenset[str]:
    return frozenset(json.decode(text, type=list[str]))


@lru_cache(maxsize=20_000)
def _aggregates(text: str) -> frozenset[AggregateId]:
    return frozenset(AggregateId(uuid) for uuid in json.decode(text, type=list[str]))


def tags_from_row(row: Row) -> Tags:
    """Read (provider, traits, aggregates, updated_at). Equal sets are one object: fleets repeat."""
    return Tags(_traits(row[1]), _aggregates(row[2]), row[3])


def tags_row(provider: ProviderId, tags: Tags) -> Row:
    """Write what `tags_from_row` reads."""
    return (provider, key_set(tags.traits), key_set(tags.aggregates), tags.updated_at)


def inventory_from_row(row: Row) -> Inventory:
    """Read the columns of an inventory after (provider, resource_class)."""
    return Inventory(*row[2:])


def inventory_row(provider: ProviderId, name: str, inventory: Inventory) -> Row:
    """Write what `inventory_from_row` reads."""
    return (
        provider,
        name,
        inventory.total,
        inventory.reserved,
        inventory.min_unit,
        inventory.max_unit,
        inventory.step_size,
        inventory.allocation_ratio,
        inventory.used,
        inventory.created_at,
        inventory.updated_at,
    )


def provider_row(provider: Provider) -> Row:
    """Write all columns of a provider after its uuid."""
    return (
        provider.name,
        provider.generation,
        provider.parent,
        provider.root,
        provider.created_at,
        provider.updated_at,
    )


def consumer_row(consumer: Consumer) -> Row:
    """Write all columns of a consumer after its uuid; its allocations are rows of their own."""
    return (
        consumer.generation,
        consumer.project_id,
        consumer.user_id,
        consumer.consumer_type,
        consumer.created_at,
        consumer.updated_at,
    )


def consumers_from_rows(
    consumers: Iterable[Row], allocations: Iterable[Row]
) -> dict[ConsumerId, Consumer]:
    """Put consumers and the rows of their allocations together."""
    held: dict[ConsumerId, dict[ProviderId, dict[str, int]]] = {}
    for consumer, provider, name, amount in allocations:
        held.setdefault(consumer, {}).setdefault(provider, {})[name] = amount
    return {
        row[0]: Consumer(
            uuid=row[0],
            generation=row[1],
            project_id=row[2],
            user_id=row[3],
            consumer_type=row[4],
            allocations=held.get(row[0], {}),
            created_at=row[5],
            updated_at=row[6],
        )
        for row in consumers
    }
