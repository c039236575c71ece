"""Inventories: creation, changes, deletion and their refusals."""

from collections.abc import Callable

import pytest

from moorage.core.errors import Code
from moorage.core.ledger import inventory
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import InventorySpec, InventoryState
from moorage.core.ledger.model import Inventory
from tests.core.ledger.build import NOW, P1, P2, THEN, Refused, add_class, add_provider, facts, used


def offering(**inventories: Inventory) -> Facts:
    """Return facts with P1 at generation 5 and these inventories."""
    known = facts()
    add_provider(known, P1, generation=5, offer=inventories)
    return known


def test_replace_all_keeps_usage_and_creation_time() -> None:
    """Replacing an inventory changes neither its used amount nor its creation time."""
    known = offering(
        VCPU=Inventory(8, used=3, created_at=THEN, updated_at=THEN), DISK_GB=Inventory(10)
    )
    specs = {"VCPU": InventorySpec(2, allocation_ratio=4.0), "MEMORY_MB": InventorySpec(512)}
    changes, state = inventory.replace_all(known, NOW, P1, 5, specs, True)
    assert state.generation == 6
    assert state.inventories == {
        "VCPU": Inventory(2, allocation_ratio=4.0, used=3, created_at=THEN, updated_at=NOW),
        "MEMORY_MB": Inventory(512, created_at=NOW, updated_at=NOW),
    }
    assert changes.inventories[P1, "DISK_GB"] is None
    assert changes.providers[P1].generation == 6  # type: ignore[union-attr]  # it is there


def test_replace_all_raises_the_generation_without_a_difference() -> None:
    """Writing equal inventories raises the generation, too."""
    known = offering(VCPU=Inventory(8))
    _, state = inventory.replace_all(known, NOW, P1, 5, {"VCPU": InventorySpec(8)}, True)
    assert state.generation == 6


def test_replace_all_refusals() -> None:
    """Unknown provider, outdated generation, unknown class and class in use have separate codes."""
    known = offering(VCPU=used(Inventory(8), 1), DISK_GB=Inventory(8))
    with Refused(Code.PROVIDER_NOT_FOUND):
        inventory.replace_all(known, NOW, P2, 5, {}, True)
    with Refused(Code.PROVIDER_GENERATION) as refusal:
        inventory.replace_all(known, NOW, P1, 4, {}, True)
    assert "resource provider generation conflict" in refusal.message
    with Refused(Code.CLASS_UNKNOWN) as refusal:
        inventory.replace_all(known, NOW, P1, 5, {"CUSTOM_NO": InventorySpec(1)}, True)
    assert "No such resource class CUSTOM_NO." in refusal.message
    with Refused(Code.INVENTORY_IN_USE) as refusal:
        inventory.replace_all(known, NOW, P1, 5, {}, True)
    assert f"Inventory for 'VCPU' on resource provider '{P1}' in use." in refusal.message


@pytest.mark.parametrize(
    ("spec", "full_reserve", "allowed"),
    [
        (InventorySpec(8, reserved=8), True, True),
        (InventorySpec(8, reserved=8), False, False),
        (InventorySpec(8, reserved=7), False, True),
        (InventorySpec(8, reserved=9), True, False),
        (InventorySpec(8, allocation_ratio=0.1), True, True),
        (InventorySpec(8, allocation_ratio=0.1), False, False),
        (InventorySpec(8, allocation_ratio=0.0), True, True),
        (InventorySpec(8, allocation_ratio=-1.0), True, False),
        (InventorySpec(1, allocation_ratio=-1e30), False, False),
    ],
)
def test_the_capacity_may_not_be_negative(
    spec: InventorySpec, full_reserve: bool, allowed: bool
) -> None:
    """Before 1.26 the capacity must be positive, since then not negative, in every request."""
    known = offering(DISK_GB=Inventory(8))
    writes: list[Callable[[], tuple[Changes, InventoryState]]] = [
        lambda: inventory.create(known, NOW, P1, "VCPU", spec, full_reserve),
        lambda: inventory.update(known, NOW, P1, "DISK_GB", 5, spec, full_reserve),
        lambda: inventory.replace_all(known, NOW, P1, 5, {"VCPU": spec}, full_reserve),
    ]
    for write in writes:
        if allowed:
            assert write()[1].generation == 6
            continue
        with Refused(Code.INVALID) as refusal:
            write()
        assert "reserved value is greater than" in refusal.message
        assert ("or equal to total" in refusal.message) is not full_reserve


def test_create_adds_one_class_and_leaves_the_others() -> None:
    """A new inventory raises the generation; the answer contains all inventories."""
    known = offering(VCPU=Inventory(8))
    add_class(known, "CUSTOM_GPU")
    changes, state = inventory.create(known, NOW, P1, "CUSTOM_GPU", InventorySpec(2), True)
    assert set(changes.inventories) == {(P1, "CUSTOM_GPU")}
    assert set(state.inventories) == {"VCPU", "CUSTOM_GPU"}
    assert state.generation == 6


def test_create_refusals() -> None:
    """An unknown provider, an unknown class and an existing inventory are refused."""
    known = offering(VCPU=Inventory(8))
    with Refused(Code.PROVIDER_NOT_FOUND):
        inventory.create(known, NOW, P2, "VCPU", InventorySpec(1), True)
    with Refused(Code.CLASS_UNKNOWN) as refusal:
        inventory.create(known, NOW, P1, "CUSTOM_NO", InventorySpec(1), True)
    assert "No such resource class CUSTOM_NO" in refusal.message
    with Refused(Code.INVENTORY_EXISTS) as refusal:
        inventory.create(known, NOW, P1, "VCPU", InventorySpec(1), True)
    assert refusal.message.startswith("Update conflict: ")


def test_update_may_shrink_below_the_usage() -> None:
    """An inventory may become smaller than its usage: the machine may have lost memory."""
    known = offering(VCPU=used(Inventory(8), 6))
    _, state = inventory.update(known, NOW, P1, "VCPU", 5, InventorySpec(1), True)
    assert (state.inventories["VCPU"].total, state.inventories["VCPU"].used) == (1, 6)


def test_update_refusals() -> None:
    """The provider is checked first, then its generation, the class, and the inventory."""
    known = offering(VCPU=Inventory(8))
    spec = InventorySpec(1)
    with Refused(Code.PROVIDER_NOT_FOUND):
        inventory.update(known, NOW, P2, "VCPU", 5, spec, True)
    with Refused(Code.PROVIDER_GENERATION):
        inventory.update(known, NOW, P1, "VCPU", 6, spec, True)
    with Refused(Code.CLASS_NOT_FOUND) as refusal:
        inventory.update(known, NOW, P1, "CUSTOM_NO", 5, spec, True)
    assert "No such resource class CUSTOM_NO." in refusal.message
    with Refused(Code.INVENTORY_UNKNOWN) as refusal:
        inventory.update(known, NOW, P1, "DISK_GB", 5, spec, True)
    assert refusal.message == "No inventory of class DISK_GB found."


def test_delete_raises_the_generation() -> None:
    """Deletion of one or all inventories raises the generation."""
    known = offering(VCPU=Inventory(8), DISK_GB=Inventory(8))
    changes = inventory.delete(known, NOW, P1, "VCPU")
    assert changes.inventories == {(P1, "VCPU"): None}
    known.apply(changes)
    assert known.providers[P1].generation == 6
    known.apply(inventory.delete_all(known, NOW, P1))
    assert known.inventories_of(P1) == {}
    assert known.providers[P1].generation == 7


def test_delete_refusals() -> None:
    """Unknown providers and classes, and missing or used inventories, are refused."""
    known = offering(VCPU=used(Inventory(8), 1))
    with Refused(Code.PROVIDER_NOT_FOUND):
        inventory.delete(known, NOW, P2, "VCPU")
    with Refused(Code.CLASS_NOT_FOUND):
        inventory.delete(known, NOW, P1, "CUSTOM_NO")
    with Refused(Code.INVENTORY_NOT_FOUND) as refusal:
        inventory.delete(known, NOW, P1, "DISK_GB")
    assert "No inventory of class DISK_GB" in refusal.message
    with Refused(Code.INVENTORY_IN_USE) as refusal:
        inventory.delete(known, NOW, P1, "VCPU")
    assert "Inventory for 'VCPU' on resource provider" in refusal.message
    with Refused(Code.PROVIDER_NOT_FOUND):
        inventory.delete_all(known, NOW, P2)
    with Refused(Code.INVENTORY_IN_USE):
        inventory.delete_all(known, NOW, P1)
