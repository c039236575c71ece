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
    """A new set of traits raises the generation and leaves the aggregates."""
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
    """Writing the traits a provider has leaves its generation."""
    known = facts()
    add_provider(known, P1, generation=3)
    add_tags(known, P1, {SSD})
    changes, state = traits_aggregates.replace_traits(known, NOW, P1, 3, frozenset({SSD}))
    assert changes == Changes()
    assert state.generation == 3


def test_deleting_traits_raises_the_generation_only_if_there_were_any() -> None:
    """Taking nothing away is no change."""
    known = facts()
    add_provider(known, P1, generation=3)
    add_tags(known, P1, {SSD}, {A1})
    known.apply(traits_aggregates.delete_traits(known, NOW, P1))
    assert known.providers[P1].generation == 4
    assert known.tags_of(P1).traits == frozenset()
    assert known.tags_of(P1).aggregates == {A1}
    assert traits_aggregates.delete_traits(known, NOW, P1) == Changes()


def test_trait_refusals() -> None:
    """Unknown provider, old generation, unknown trait: in this order."""
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


def test_aggregates_exist_by_being_named() -> None:
    """With a generation it is checked and rises by one, changed or not."""
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


def test_aggregates_without_a_generation_leave_it() -> None:
    """Before 1.19 nothing is checked and nothing is raised."""
    known = facts()
    add_provider(known, P1, generation=3)
    changes, state = traits_aggregates.replace_aggregates(known, NOW, P1, frozenset({A1}), None)
    assert (state.generation, changes.providers) == (3, {})


def test_aggregate_refusals() -> None:
    """Unknown provider and old generation."""
    known = facts()
    add_provider(known, P1, generation=3)
    with Refused(Code.PROVIDER_NOT_FOUND):
        traits_aggregates.replace_aggregates(known, NOW, P2, frozenset(), None)
    with Refused(Code.PROVIDER_GENERATION) as refusal:
        traits_aggregates.replace_aggregates(known, NOW, P1, frozenset(), 2)
    assert "resource provider generation conflict" in refusal.message


def test_aggregates_of_one_provider_are_bounded() -> None:
    """As many as may be are taken, one more is refused with or without a generation."""
    known = facts()
    add_provider(known, P1, generation=3)
    most = frozenset(aggregate_id(number) for number in range(AGGREGATES_MAX))
    for generation in (3, None):
        _, state = traits_aggregates.replace_aggregates(known, NOW, P1, most, generation)
        assert state.tags.aggregates == most
        with Refused(Code.LIMIT_EXCEEDED):
            more = most | {aggregate_id(AGGREGATES_MAX)}
            traits_aggregates.replace_aggregates(known, NOW, P1, more, generation)
