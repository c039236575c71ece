"""Creation, renaming and deletion of custom resource classes and traits."""

import pytest

from moorage.core.errors import Code
from moorage.core.ledger import inventory, traits_aggregates, vocabulary
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import CustomName, Inventory
from tests.core.ledger.build import (
    NOW,
    P1,
    THEN,
    Refused,
    add_class,
    add_provider,
    add_trait,
    facts,
)

NO_NAMES = ["", "VCPU", "custom_x", "CUSTOM_", "CUSTOM_x", "CUSTOM_X\n", "CUSTOM_É", "XCUSTOM_A"]
TOO_LONG = "CUSTOM_" + "A" * 249


@pytest.mark.parametrize("name", ["CUSTOM_A", "CUSTOM_0", "CUSTOM__", TOO_LONG[:255]])
def test_custom_names(name: str) -> None:
    """Names have capitals, digits and underscores after the prefix, up to 255 characters."""
    assert vocabulary.is_custom(name)
    changes, made = vocabulary.class_create(facts(), NOW, name)
    assert (
        changes
        == Changes(classes={name: made})
        == Changes(classes={name: CustomName(name, NOW, NOW)})
    )
    changes, (made, new) = vocabulary.trait_ensure(facts(), NOW, name)
    assert new
    assert changes == Changes(traits={name: made})


@pytest.mark.parametrize("name", [*NO_NAMES, TOO_LONG])
def test_invalid_names(name: str) -> None:
    """Other names are refused as invalid."""
    known = facts()
    add_class(known, "CUSTOM_OLD")
    assert not vocabulary.is_custom(name)
    for refused in (
        lambda: vocabulary.class_create(known, NOW, name),
        lambda: vocabulary.class_ensure(known, NOW, name),
        lambda: vocabulary.class_rename(known, NOW, "CUSTOM_OLD", name),
    ):
        with Refused(Code.INVALID) as refusal:
            refused()
        assert "does not match '^CUSTOM_[A-Z0-9_]+$'" in refusal.message
    with Refused(Code.INVALID) as refusal:
        vocabulary.trait_ensure(known, NOW, name)
    assert "no longer than 255 characters" in refusal.message


def test_class_create_refuses_an_existing_class() -> None:
    """Creating an existing class is refused."""
    known = facts()
    add_class(known, "CUSTOM_A")
    with Refused(Code.CLASS_EXISTS) as refusal:
        vocabulary.class_create(known, NOW, "CUSTOM_A")
    assert "Conflicting resource class already exists: CUSTOM_A" in refusal.message


def test_class_ensure_is_idempotent() -> None:
    """Ensuring a class returns whether it was created."""
    known = facts()
    changes, made = vocabulary.class_ensure(known, NOW, "CUSTOM_A")
    assert made
    known.apply(changes)
    assert vocabulary.class_ensure(known, NOW, "CUSTOM_A") == (Changes(), False)


def test_class_rename_keeps_the_creation_time() -> None:
    """Renaming keeps the creation time, and the changes also contain the pair of names."""
    known = facts()
    add_class(known, "CUSTOM_A")
    changes, renamed = vocabulary.class_rename(known, NOW, "CUSTOM_A", "CUSTOM_B")
    assert renamed == CustomName("CUSTOM_B", THEN, NOW)
    assert changes == Changes(
        classes={"CUSTOM_A": None, "CUSTOM_B": renamed}, renamed_classes={"CUSTOM_A": "CUSTOM_B"}
    )


def test_class_rename_refusals() -> None:
    """Standard and unknown classes, and a new name that exists, are refused."""
    known = facts()
    for name in ("CUSTOM_A", "CUSTOM_B"):
        add_class(known, name)
    with Refused(Code.STANDARD_CLASS) as refusal:
        vocabulary.class_rename(known, NOW, "VCPU", "CUSTOM_C")
    assert "Cannot update standard resource class" in refusal.message
    with Refused(Code.CLASS_NOT_FOUND):
        vocabulary.class_rename(known, NOW, "CUSTOM_NO", "CUSTOM_C")
    with Refused(Code.CLASS_EXISTS) as refusal:
        vocabulary.class_rename(known, NOW, "CUSTOM_A", "CUSTOM_B")
    assert "Resource class already exists: CUSTOM_B" in refusal.message


def test_a_class_may_keep_its_own_name() -> None:
    """Renaming a class to its own name changes nothing, not even the time."""
    known = facts()
    add_class(known, "CUSTOM_GOLD")
    changes, kept = vocabulary.class_rename(known, NOW, "CUSTOM_GOLD", "CUSTOM_GOLD")
    assert not changes
    assert kept == known.classes["CUSTOM_GOLD"]


def test_class_delete_refusals() -> None:
    """Standard and unknown classes, and classes with an inventory, cannot be deleted."""
    known = facts()
    add_class(known, "CUSTOM_A")
    add_provider(known, P1, CUSTOM_A=Inventory(1))
    with Refused(Code.STANDARD_CLASS) as refusal:
        vocabulary.class_delete(known, "VCPU")
    assert "Cannot delete standard resource class" in refusal.message
    with Refused(Code.CLASS_NOT_FOUND) as refusal:
        vocabulary.class_delete(known, "CUSTOM_NO")
    assert "No such resource class CUSTOM_NO." in refusal.message
    with Refused(Code.CLASS_IN_USE) as refusal:
        vocabulary.class_delete(known, "CUSTOM_A")
    assert "Class is in use in inventory." in refusal.message


def test_a_batch_counts_the_uses_of_a_class() -> None:
    """An inventory that an earlier request of the batch created or deleted counts."""
    known = facts()
    add_class(known, "CUSTOM_A")
    add_provider(known, P1)
    changes, _ = inventory.create(known, NOW, P1, "CUSTOM_A", InventorySpec(1), True)
    known.apply(changes)
    with Refused(Code.CLASS_IN_USE):
        vocabulary.class_delete(known, "CUSTOM_A")
    known.apply(inventory.delete(known, NOW, P1, "CUSTOM_A"))
    known.apply(vocabulary.class_delete(known, "CUSTOM_A"))
    with Refused(Code.CLASS_UNKNOWN):
        inventory.create(known, NOW, P1, "CUSTOM_A", InventorySpec(1), True)


def test_trait_ensure_is_idempotent() -> None:
    """Ensuring an existing trait returns it unchanged."""
    known = facts()
    add_trait(known, "CUSTOM_T")
    changes, (found, new) = vocabulary.trait_ensure(known, NOW, "CUSTOM_T")
    assert (changes, found, new) == (Changes(), CustomName("CUSTOM_T", THEN, THEN), False)


def test_trait_delete_refusals() -> None:
    """Standard, unknown and used traits cannot be deleted; an unused one can."""
    known = facts()
    add_trait(known, "CUSTOM_T")
    add_provider(known, P1)
    known.apply(traits_aggregates.replace_traits(known, NOW, P1, 0, frozenset({"CUSTOM_T"}))[0])
    with Refused(Code.STANDARD_TRAIT) as refusal:
        vocabulary.trait_delete(known, "STORAGE_DISK_SSD")
    assert "Cannot delete standard trait STORAGE_DISK_SSD." in refusal.message
    with Refused(Code.TRAIT_NOT_FOUND) as refusal:
        vocabulary.trait_delete(known, "CUSTOM_NO")
    assert "No such trait(s): CUSTOM_NO." in refusal.message
    with Refused(Code.TRAIT_IN_USE) as refusal:
        vocabulary.trait_delete(known, "CUSTOM_T")
    assert "The trait CUSTOM_T is in use by a resource provider." in refusal.message
    known.apply(traits_aggregates.delete_traits(known, NOW, P1))
    assert vocabulary.trait_delete(known, "CUSTOM_T") == Changes(traits={"CUSTOM_T": None})
