"""Traits and aggregates of a provider."""

from moorage.core.errors import Code
from moorage.core.ledger import traits_aggregates
from moorage.core.ledger.facts import Changes
from moorage.core.limits import AGGREGATES_MAX
from tests.core.ledger.build import (
    NOW,
    P1,
    P2,
    Refused,
    add_provider,
    add_tags,
    add_trait,
    aggregate_id,
    facts,
)

SSD = "STORAGE_DISK_SSD"
A1, A2 = aggregate_id(1), aggregate_id(2)


def test_traits_are_replaced_and_aggregates_stay() -> None:
    """Replacing the traits raises the generation and keeps the aggregates."""
    known = facts()
    add_provider(known, P1, generation=3)
    add_trait(known, "CUSTOM_GOLD")
    add_tags(known, P1, {SSD}, {A1})
    changes, state = traits_aggregates.replace_traits(known, NOW, P1, 3, frozenset({"CUSTOM_GOLD"}))
    assert state.generation == 4
    assert state.tags.traits == {"CUSTOM_GOLD"}
    assert state.tags.aggregates == {A1}
    known.apply(changes)
    assert (known.trait_uses[SSD], known.trait_uses["CUSTOM_GOLD"]) == (0, 1)


def test_the_same_traits_change_nothing() -> None:
    """Writing equal traits does not raise the generation."""
    known = facts()
    add_provider(known, P1, generation=3)
    add_tags(known, P1, {SSD})
    changes, state = traits_aggregates.replace_traits(known, NOW, P1, 3, frozenset({SSD}))
    assert changes == Changes()
    assert state.generation == 3


def test_deleting_traits_raises_the_generation_only_if_there_were_any() -> None:
    """Deleting the traits of a provider without any changes nothing."""
    known = facts()
    add_provider(known, P1, generation=3)
    add_tags(known, P1, {SSD}, {A1})
    known.apply(traits_aggregates.delete_traits(known, NOW, P1))
    assert known.providers[P1].generation == 4
    assert known.tags_of(P1).traits == frozenset()
    assert known.tags_of(P1).aggregates == {A1}
    assert traits_aggregates.delete_traits(known, NOW, P1) == Changes()


def test_trait_refusals() -> None:
    """The provider is checked first, then its generation, then the traits."""
    known = facts()
    add_provider(known, P1, generation=3)
    unknown = frozenset({"CUSTOM_B", SSD, "CUSTOM_A"})
    with Refused(Code.PROVIDER_NOT_FOUND):
        traits_aggregates.replace_traits(known, NOW, P2, 3, unknown)
    with Refused(Code.PROVIDER_NOT_FOUND):
        traits_aggregates.delete_traits(known, NOW, P2)
    with Refused(Code.PROVIDER_GENERATION):
        traits_aggregates.replace_traits(known, NOW, P1, 2, unknown)
    with Refused(Code.TRAIT_UNKNOWN) as refusal:
        traits_aggregates.replace_traits(known, NOW, P1, 3, unknown)
    assert refusal.message == "No such trait CUSTOM_A, CUSTOM_B"


def test_aggregates_are_replaced_with_a_generation() -> None:
    """A request with a generation checks it and raises it, even if nothing differs."""
    known = facts()
    add_provider(known, P1, generation=3)
    add_tags(known, P1, {SSD}, {A1})
    changes, state = traits_aggregates.replace_aggregates(known, NOW, P1, frozenset({A1, A2}), 3)
    assert state.generation == 4
    assert state.tags.aggregates == {A1, A2}
    assert state.tags.traits == {SSD}
    known.apply(changes)
    _, state = traits_aggregates.replace_aggregates(known, NOW, P1, frozenset({A1, A2}), 4)
    assert state.generation == 5


def test_aggregates_without_a_generation_keep_it() -> None:
    """Before 1.19 the generation is neither checked nor raised."""
    known = facts()
    add_provider(known, P1, generation=3)
    changes, state = traits_aggregates.replace_aggregates(known, NOW, P1, frozenset({A1}), None)
    assert (state.generation, changes.providers) == (3, {})


def test_aggregate_refusals() -> None:
    """An unknown provider and an outdated generation are refused."""
    known = facts()
    add_provider(known, P1, generation=3)
    with Refused(Code.PROVIDER_NOT_FOUND):
        traits_aggregates.replace_aggregates(known, NOW, P2, frozenset(), None)
    with Refused(Code.PROVIDER_GENERATION) as refusal:
        traits_aggregates.replace_aggregates(known, NOW, P1, frozenset(), 2)
    assert "resource provider generation conflict" in refusal.message


def test_aggregates_of_one_provider_are_bounded() -> None:
    """More than `AGGREGATES_MAX` aggregates are refused, with or without a generation."""
    known = facts()
    add_provider(known, P1, generation=3)
    most = frozenset(aggregate_id(number) for number in range(AGGREGATES_MAX))
    for generation in (3, None):
        _, state = traits_aggregates.replace_aggregates(known, NOW, P1, most, generation)
        assert state.tags.aggregates == most
        with Refused(Code.LIMIT_EXCEEDED):
            more = most | {aggregate_id(AGGREGATES_MAX)}
            traits_aggregates.replace_aggregates(known, NOW, P1, more, generation)
