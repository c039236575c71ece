"""Maps the ledger's values to rows: one function per value and direction."""

from functools import lru_cache

from msgspec import json

from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.model import (
    Allocations,
    Consumer,
    Inventory,
    Provider,
    Reported,
    Tags,
    Withheld,
)
from moorage.store.api import Row
from moorage.store.encoding import encode, key_set

_as_it_is = json.Encoder()


def encode_consumer(consumer: Consumer) -> str:
    """Return a consumer as JSON text; its allocations keep the order of the claim."""
    return _as_it_is.encode(consumer).decode()


@lru_cache(maxsize=20_000)
def _traits(text: str) -> frozenset[str]:
    return frozenset(json.decode(text, type=list[str]))


@lru_cache(maxsize=20_000)
def _aggregates(text: str) -> frozenset[AggregateId]:
    return frozenset(AggregateId(uuid) for uuid in json.decode(text, type=list[str]))


@lru_cache(maxsize=20_000)
def _reported(text: str) -> tuple[Reported, ...]:
    return json.decode(text, type=tuple[Reported, ...])


@lru_cache(maxsize=20_000)
def _tags(traits: str, aggregates: str, updated_at: Instant, reported: str) -> Tags:
    return Tags(_traits(traits), _aggregates(aggregates), updated_at, _reported(reported))


def tags_from_row(row: Row) -> Tags:
    """Read (provider, traits, aggregates, updated_at, reported); equal tags share one object."""
    return _tags(*row[1:])


def tags_of_texts(traits: str, aggregates: str) -> Tags:
    """Read traits and aggregates alone."""
    return Tags(_traits(traits), _aggregates(aggregates))


def tags_row(provider: ProviderId, tags: Tags) -> Row:
    """Write tags; `tags_from_row` reads them."""
    reported = encode(tags.reported)
    return (provider, key_set(tags.traits), key_set(tags.aggregates), tags.updated_at, reported)


_inventories = json.Decoder(dict[str, Inventory])
_allocations = json.Decoder(Allocations)


@lru_cache(maxsize=20_000)
def _withheld(text: str) -> Withheld:
    return json.decode(text, type=Withheld)


def provider_from_row(row: Row) -> tuple[Provider, dict[str, Inventory]]:
    """Read all columns of a provider: the provider, and its inventories by resource class."""
    *first, agent, withheld, inventories = row
    uuid, name, generation, parent, root, created_at, updated_at = first
    # Saves memory: most providers are their own root, and many never change.
    root = uuid if root == uuid else root
    updated_at = created_at if updated_at == created_at else updated_at
    closed = None if withheld is None else _withheld(withheld)
    provider = Provider(uuid, name, generation, parent, root, created_at, updated_at, agent, closed)
    return provider, _inventories.decode(inventories)


def provider_row(provider: Provider) -> Row:
    """Write the columns of a provider between its uuid and its inventories."""
    return (
        provider.name,
        provider.generation,
        provider.parent,
        provider.root,
        provider.created_at,
        provider.updated_at,
        provider.agent,
        None if provider.withheld is None else encode(provider.withheld),
    )


def consumer_row(consumer: Consumer) -> Row:
    """Write all columns of a consumer except its uuid."""
    return (
        consumer.generation,
        consumer.project_id,
        consumer.user_id,
        consumer.consumer_type,
        consumer.created_at,
        consumer.updated_at,
        _as_it_is.encode(consumer.allocations).decode(),
    )


def allocations_from_text(text: str) -> Allocations:
    """Read the allocations of a consumer."""
    return _allocations.decode(text)


def consumer_from_row(row: Row) -> Consumer:
    """Read all columns of a consumer."""
    uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, held = row
    return Consumer(
        uuid,
        generation,
        project_id,
        user_id,
        consumer_type,
        _allocations.decode(held),
        created_at,
        updated_at,
    )
