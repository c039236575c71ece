"""The traits and the aggregates of a provider.

Source: Placement API reference, "Resource provider traits" and "Resource provider aggregates".
"""

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Reported, Tags
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

    What vanishes belongs to no group of reporters any more.

    Raises PROVIDER_NOT_FOUND, PROVIDER_GENERATION, TRAIT_UNKNOWN.
    """
    provider = find(facts, uuid)
    check_generation(provider, generation)
    before = facts.tags_of(uuid)
    # Traits of the provider exist, even if not loaded: a report names only its own traits.
    unknown = sorted(trait for trait in traits - before.traits if not facts.has_trait(trait))
    if unknown:
        raise Error(
            Code.TRAIT_UNKNOWN,
            f"No such trait {', '.join(unknown)}",
        )
    if traits == before.traits:
        return Changes(), TagState(provider.generation, before)
    after = replace(
        before, traits=traits, updated_at=now, reported=without_vanished(before, traits)
    )
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
    after = replace(facts.tags_of(uuid), aggregates=aggregates, updated_at=now)
    changes = Changes(tags={uuid: after})
    if generation is not None:
        provider = changes.providers[uuid] = touched(provider, now)
    return changes, TagState(provider.generation, after)


def set_reported(facts: Facts, now: Instant, uuid: ProviderId, after: Reported) -> Changes:
    """Store what the reports of a group have set on a provider; its generation does not change."""
    before = facts.tags_of(uuid)
    others = [one for one in before.reported if one.group != after.group]
    own = [after] if after else []
    reported = tuple(sorted([*others, *own], key=lambda one: one.group))
    if reported == before.reported:
        return Changes()
    return Changes(tags={uuid: replace(before, reported=reported, updated_at=now)})


def without_vanished(before: Tags, traits: frozenset[str]) -> tuple[Reported, ...]:
    """Return what reports have set, without traits that are no longer there."""
    left = [replace(one, traits=one.traits & traits) for one in before.reported]
    return tuple(one for one in left if one)
