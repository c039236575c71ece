"""The traits and the aggregates of a provider.

Source: Placement API reference, "Resource provider traits" and "Resource provider aggregates".
"""

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Tags
from moorage.core.ledger.providers import check_generation, find, touched
from moorage.core.limits import AGGREGATES_MAX


class TagState(Struct, frozen=True):
    """A provider's traits, aggregates and generation after a change."""

    generation: int
    tags: Tags


def replace_traits(
    facts: Facts, now: Instant, uuid: ProviderId, generation: int, traits: frozenset[str]
) -> tuple[Changes, TagState]:
    """Replace all traits of the provider. The generation rises only if they change.

    Raises PROVIDER_NOT_FOUND, PROVIDER_GENERATION, TRAIT_UNKNOWN.
    """
    provider = find(facts, uuid)
    check_generation(provider, generation)
    unknown = sorted(trait for trait in traits if not facts.has_trait(trait))
    if unknown:
        raise Error(
            Code.TRAIT_UNKNOWN,
            f"No such trait {', '.join(unknown)}",
        )
    before = facts.tags_of(uuid)
    if traits == before.traits:
        return Changes(), TagState(provider.generation, before)
    after = Tags(traits, before.aggregates, now)
    raised = touched(provider, now)
    return Changes(providers={uuid: raised}, tags={uuid: after}), TagState(raised.generation, after)


def delete_traits(facts: Facts, now: Instant, uuid: ProviderId) -> Changes:
    """Remove all traits of the provider. Raises PROVIDER_NOT_FOUND."""
    generation = find(facts, uuid).generation
    changes, _ = replace_traits(facts, now, uuid, generation, frozenset())
    return changes


def replace_aggregates(
    facts: Facts,
    now: Instant,
    uuid: ProviderId,
    aggregates: frozenset[AggregateId],
    generation: int | None,
) -> tuple[Changes, TagState]:
    """Replace all aggregates of the provider; they need not exist before.

    Without a generation it is not checked and does not rise (before microversion 1.19).
    Raises PROVIDER_NOT_FOUND, PROVIDER_GENERATION, LIMIT_EXCEEDED.
    """
    provider = find(facts, uuid)
    check_generation(provider, generation)
    if len(aggregates) > AGGREGATES_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"{len(aggregates)} aggregates are named; a provider can be in {AGGREGATES_MAX}.",
        )
    after = Tags(facts.tags_of(uuid).traits, aggregates, now)
    changes = Changes(tags={uuid: after})
    if generation is not None:
        provider = changes.providers[uuid] = touched(provider, now)
    return changes, TagState(provider.generation, after)
