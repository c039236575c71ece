"""Bulk changes write only differences, and change a tree as a whole or not at all."""

from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from msgspec import UNSET

from moorage.core.errors import Code
from moorage.core.ids import ProviderId
from moorage.core.ledger.bulk import (
    BulkResult,
    ProviderSpec,
    Trial,
    Upserted,
    parents_first,
    trees,
    upsert_tree,
)
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory
from tests.core.ledger.build import (
    C1,
    NOW,
    P1,
    P2,
    P3,
    P4,
    add_consumer,
    add_provider,
    add_tags,
    aggregate_id,
    facts,
    provider_id,
)

FOUR = {"VCPU": InventorySpec(4)}
SSD = frozenset({"STORAGE_DISK_SSD"})
A1 = frozenset({aggregate_id(1)})


def stock() -> Facts:
    """Return a tree of P1 above P2, and P3 by itself; P1 has inventory, traits, aggregates."""
    known = facts()
    add_provider(known, P1, name="one", generation=7, VCPU=Inventory(4))
    add_provider(known, P2, name="two", parent=P1)
    add_provider(known, P3, name="three", DISK_GB=Inventory(10))
    add_tags(known, P1, SSD, A1)
    return known


def upsert(
    known: Facts, *specs: ProviderSpec, create_names: bool = False
) -> tuple[Changes, list[Upserted]]:
    """Execute one tree's part of a request; all known providers may move."""
    return upsert_tree(known, NOW, list(specs), set(known.providers), create_names)


def outcome(known: Facts, *specs: ProviderSpec, create_names: bool = False) -> list[Any]:
    """Return the outcomes, or the codes of refusals."""
    _, answers = upsert(known, *specs, create_names=create_names)
    return [each.refusal.code if each.refusal else each.outcome for each in answers]


def test_a_matching_provider_is_unchanged() -> None:
    """A spec that already matches changes nothing, whether it is complete or empty."""
    for spec in (
        ProviderSpec(P1),
        ProviderSpec(P1, "one", None, FOUR, SSD, A1),
        ProviderSpec(P1, inventories={"VCPU": InventorySpec(4)}),
    ):
        changes, answers = upsert(stock(), spec)
        assert not changes
        assert answers == [Upserted(P1, BulkResult.UNCHANGED, 7)]


@pytest.mark.parametrize(
    "spec",
    [
        ProviderSpec(P1, "other"),
        ProviderSpec(P1, parent=P3),
        ProviderSpec(P1, inventories={}),
        ProviderSpec(P1, inventories={"VCPU": InventorySpec(5)}),
        ProviderSpec(P1, inventories={"VCPU": InventorySpec(4, allocation_ratio=2.0)}),
        ProviderSpec(P1, inventories={**FOUR, "DISK_GB": InventorySpec(1)}),
        ProviderSpec(P1, traits=frozenset()),
        ProviderSpec(P1, aggregates=frozenset()),
    ],
)
def test_every_difference_is_written(spec: ProviderSpec) -> None:
    """Every difference is written, and the same spec again changes nothing."""
    known = stock()
    assert outcome(known, spec) == [BulkResult.UPDATED]
    changes, answers = upsert(known, spec)
    assert not changes and answers[0].outcome is BulkResult.UNCHANGED


def test_only_what_is_named_changes() -> None:
    """A spec with only traits changes neither inventories, aggregates, name nor parent."""
    changes, (answer,) = upsert(stock(), ProviderSpec(P1, traits=frozenset()))
    assert changes.inventories == {} and set(changes.tags) == {P1}
    assert changes.tags[P1].aggregates == A1
    assert answer == Upserted(P1, BulkResult.UPDATED, 8)


def test_used_amounts_stay() -> None:
    """Changed inventories keep their used amounts."""
    known = stock()
    add_consumer(known, C1, {P1: {"VCPU": 3}})
    changes, _ = upsert(known, ProviderSpec(P1, inventories={"VCPU": InventorySpec(9)}))
    after = changes.inventories[P1, "VCPU"]
    assert after is not None and (after.total, after.used) == (9, 3)


def test_a_new_tree_in_any_order() -> None:
    """Children may precede their parents in the request."""
    known = facts()
    specs = [
        ProviderSpec(P3, "c", P2),
        ProviderSpec(P2, "b", P1),
        ProviderSpec(P1, "a", None, FOUR),
    ]
    assert outcome(known, *specs) == [BulkResult.CREATED] * 3
    assert {known.providers[uuid].root for uuid in (P1, P2, P3)} == {P1}


REFUSALS: list[tuple[Code, ProviderSpec]] = [
    (Code.INVALID, ProviderSpec(P4)),
    (Code.INVALID, ProviderSpec(P4, "")),
    (Code.INVALID, ProviderSpec(P4, "x" * 201)),
    (Code.INVALID, ProviderSpec(P3, "x" * 201)),
    (Code.DUPLICATE_PROVIDER, ProviderSpec(P4, "one")),
    (Code.DUPLICATE_PROVIDER, ProviderSpec(P3, "one")),
    (Code.PARENT_UNKNOWN, ProviderSpec(P3, parent=P4)),
    (Code.TREE_LOOP, ProviderSpec(P1, parent=P2)),
    (Code.INVENTORY_IN_USE, ProviderSpec(P1, inventories={})),
    (Code.CLASS_UNKNOWN, ProviderSpec(P3, inventories={"CUSTOM_X": InventorySpec(1)})),
    (Code.TRAIT_UNKNOWN, ProviderSpec(P3, traits=frozenset({"CUSTOM_X"}))),
    (Code.INVALID, ProviderSpec(P3, inventories={"VCPU": InventorySpec(0)})),
    (Code.INVALID, ProviderSpec(P3, inventories={"VCPU": InventorySpec(1, reserved=-1)})),
    (Code.INVALID, ProviderSpec(P3, inventories={"VCPU": InventorySpec(1, reserved=2)})),
    (Code.INVALID, ProviderSpec(P3, inventories={"VCPU": InventorySpec(2**31)})),
    (Code.INVALID, ProviderSpec(P3, inventories={"VCPU": InventorySpec(1, step_size=0)})),
    (
        Code.INVALID,
        ProviderSpec(P3, inventories={"VCPU": InventorySpec(1, allocation_ratio=1e39)}),
    ),
]


@pytest.mark.parametrize(("code", "spec"), REFUSALS)
def test_a_refusal_undoes_the_whole_tree(code: Code, spec: ProviderSpec) -> None:
    """A refusal undoes the whole tree: the faulty spec gets its code, the others `TREE_REFUSED`."""
    known = stock()
    add_consumer(known, C1, {P1: {"VCPU": 1}})
    good = ProviderSpec(provider_id(9), "nine", None, FOUR, SSD, A1)
    before = deepcopy(known)
    changes, answers = upsert(known, good, spec)
    assert not changes
    codes = {each.uuid: each.refusal.code for each in answers if each.refusal}
    assert codes == {good.uuid: Code.TREE_REFUSED, spec.uuid: code}
    generations = {each.uuid: each.generation for each in answers}
    stored = known.providers.get(spec.uuid)
    assert generations == {good.uuid: None, spec.uuid: stored.generation if stored else None}
    assert comparable(known) == comparable(before)


def test_unknown_names_are_created_on_demand() -> None:
    """Unknown custom classes and traits are created only on demand, other names never."""
    spec = ProviderSpec(
        P3, inventories={"CUSTOM_X": InventorySpec(1)}, traits=frozenset({"CUSTOM_T"})
    )
    assert outcome(stock(), spec) == [Code.CLASS_UNKNOWN]
    changes, _ = upsert(stock(), spec, create_names=True)
    assert set(changes.classes) == {"CUSTOM_X"} and set(changes.traits) == {"CUSTOM_T"}
    wrong = ProviderSpec(P3, inventories={"GPU": InventorySpec(1)})
    assert outcome(stock(), wrong, create_names=True) == [Code.INVALID]


def test_a_provider_of_an_unknown_tree_is_not_moved() -> None:
    """A provider is not moved if its whole tree was not loaded."""
    spec = ProviderSpec(P2, parent=P3)
    _, (answer,) = upsert_tree(stock(), NOW, [spec], set(), False)
    assert answer.refusal is not None and answer.refusal.code is Code.PROVIDER_GENERATION


def test_an_unforeseen_error_undoes_everything() -> None:
    """An exception in a later step undoes the earlier steps in the facts."""
    known = stock()
    before = comparable(deepcopy(known))
    broken = ProviderSpec(P3, inventories={"VCPU": None})  # type: ignore[dict-item] # the fault
    with pytest.raises(AttributeError):
        upsert(known, ProviderSpec(P4, "four"), broken)
    assert comparable(known) == before


def test_parents_first_keeps_all_providers() -> None:
    """Each provider occurs once, after its parent; a cycle of parents is accepted."""
    ring = [ProviderSpec(P1, parent=P2), ProviderSpec(P2, parent=P3), ProviderSpec(P3, parent=P1)]
    assert sorted(spec.uuid for spec in parents_first(ring)) == [P1, P2, P3]
    line = [ProviderSpec(P1), ProviderSpec(P3, parent=P2), ProviderSpec(P2, parent=P1)]
    assert [spec.uuid for spec in parents_first(line)] == [P1, P2, P3]


def test_specs_are_grouped_by_tree() -> None:
    """Specs are grouped by present trees, new parents, and the trees of the new parents."""
    roots = {P1: P1, P2: P1, P3: P3, P4: P3}
    known = roots.get
    five, six, seven = (provider_id(n) for n in (5, 6, 7))

    def grouped(*specs: ProviderSpec) -> list[list[ProviderId]]:
        return sorted(sorted(each.uuid for each in tree) for tree in trees(specs, known))

    assert grouped(ProviderSpec(P2), ProviderSpec(P1)) == [[P1, P2]]
    assert grouped(ProviderSpec(P2), ProviderSpec(P3)) == [[P2], [P3]]
    assert grouped(ProviderSpec(P2), ProviderSpec(P4, parent=P1)) == [[P2, P4]]
    assert grouped(ProviderSpec(five), ProviderSpec(six, parent=None)) == [[five], [six]]
    assert grouped(
        ProviderSpec(six, parent=five), ProviderSpec(seven, parent=six), ProviderSpec(P1)
    ) == [[P1], [six, seven]]


def comparable(known: Facts) -> dict[str, Any]:
    """Return the parts of the facts that decisions depend on."""
    return {
        "providers": known.providers,
        "inventories": {uuid: held for uuid, held in known.inventories.items() if held},
        "tags": {
            uuid: (known.tags_of(uuid).traits, known.tags_of(uuid).aggregates)
            for uuid in known.providers
        },
        "names": known.names,
        "children": {uuid: below for uuid, below in known.children.items() if below},
        "consumers": known.consumers,
        "words": (known.classes, known.traits),
        "uses": (+Counter(known.class_uses), +Counter(known.trait_uses)),
    }


def some_spec(random: Random) -> ProviderSpec:
    """Return a random spec for one of six providers."""
    custom = random.random() < 0.2
    classes = random.sample(["VCPU", "DISK_GB", *(["CUSTOM_X"] if custom else [])], 2)
    uuids = [provider_id(n) for n in range(1, 7)]
    return ProviderSpec(
        random.choice(uuids),
        random.choice((None, *"abcdefghijkl")),
        random.choice((UNSET, UNSET, None, *uuids)),
        random.choice(
            (None, {name: InventorySpec(random.choice((0, 1, 1, 2, 2, 3, 3))) for name in classes})
        ),
        random.choice((None, frozenset(random.sample(["STORAGE_DISK_SSD", "CUSTOM_T"], 1)))),
        random.choice((None, frozenset({aggregate_id(random.randint(1, 2))}))),
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_change_completely_or_not_at_all(seed: int) -> None:
    """A random tree is as specified or as before, and applying changes is idempotent."""
    random = Random(f"bulk/{seed}")
    known = facts()
    done = 0
    for _ in range(200):
        size = random.randint(1, 3)
        specs = list(
            {spec.uuid: spec for spec in (some_spec(random) for _ in range(size))}.values()
        )
        before = deepcopy(known)
        changes, answers = upsert(known, *specs, create_names=random.random() < 0.5)
        if any(each.refusal for each in answers):
            assert all(each.refusal for each in answers) and not changes
            assert comparable(known) == comparable(before)
            continue
        done += 1
        assert all(outcome(deepcopy(known), spec) == [BulkResult.UNCHANGED] for spec in specs)
        once = deepcopy(known)
        known.apply(changes)
        assert comparable(known) == comparable(once)
        before.apply(changes)
        assert comparable(before) == comparable(once)
    assert done > 20


def test_steps_are_undone_in_reverse() -> None:
    """Names that were passed around are restored."""
    known = stock()
    before = comparable(deepcopy(known))
    trial = Trial(known, NOW)
    one, three = known.providers[P1], known.providers[P3]
    for provider, name in ((one, "x"), (three, "one"), (one, "three")):
        renamed = Changes()
        renamed.providers[provider.uuid] = type(provider)(
            provider.uuid, name, 0, None, provider.root, NOW, NOW
        )
        trial.step(renamed)
    assert known.names["one"] == P3
    trial.take_back()
    assert comparable(known) == before
