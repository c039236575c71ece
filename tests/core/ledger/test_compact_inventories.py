"""Packed inventories behave like a dict of inventories."""

from random import Random

import pytest

from moorage.core.clock import Instant
from moorage.core.ledger.capacity import has_room, shown_capacity
from moorage.core.ledger.compact_inventories import (
    NO_INVENTORIES,
    OWN_FORM,
    Inventories,
    InventoryPacker,
)
from moorage.core.ledger.model import Inventory
from moorage.core.limits import ALLOCATION_RATIO_MAX, MAX_INT

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_A")


def random_inventories(random: Random) -> dict[str, Inventory]:
    """Return random inventories, some of them large."""
    return {
        name: Inventory(
            total=random.choice((1, 8, MAX_INT)),
            reserved=random.choice((0, 3)),
            min_unit=random.choice((1, 2)),
            max_unit=random.choice((4, MAX_INT)),
            step_size=random.choice((1, 2)),
            allocation_ratio=random.choice((0.7, 1.0, 16.0, ALLOCATION_RATIO_MAX)),
            used=random.choice((0, 5, 2**40)),
            created_at=Instant(random.choice((0, 1_700_000_000_000_000))),
            updated_at=Instant(random.choice((0, 1_800_000_000_000_000))),
        )
        for name in random.sample(CLASSES, random.randint(0, len(CLASSES)))
    }


@pytest.mark.parametrize("seed", range(50))
def test_packed_reads_as_the_dict_does(seed: int) -> None:
    """All reads, and their order, are equal to those of the packed dict."""
    plain = random_inventories(Random(seed))
    packed = InventoryPacker().packed(plain)
    assert packed == plain and plain == packed and packed.unpacked() == plain
    assert list(packed.items()) == list(plain.items())
    assert list(packed) == list(plain) and list(packed.values()) == list(plain.values())
    assert len(packed) == len(plain) and bool(packed) == bool(plain)
    for name in CLASSES:
        assert (name in packed) == (name in plain)
        assert packed.get(name) == plain.get(name)
    assert packed != {**plain, "OTHER": Inventory(1)}
    assert repr(packed) == repr(plain)
    for offer in packed.offers:
        assert offer.units == shown_capacity(plain[offer.name])


def test_a_missing_class_is_a_key_error() -> None:
    """A missing class raises KeyError; an empty dict packs to `NO_INVENTORIES`."""
    with pytest.raises(KeyError):
        NO_INVENTORIES["VCPU"]
    assert InventoryPacker().packed({}) is NO_INVENTORIES


def test_many_classes_are_packed_too() -> None:
    """The number of classes is not bounded."""
    plain = {f"CUSTOM_{number}": Inventory(number + 1, used=number) for number in range(100)}
    packed = InventoryPacker().packed(plain)
    assert packed == plain and packed["CUSTOM_99"] == plain["CUSTOM_99"]


def test_equal_offers_are_one_object() -> None:
    """Equal hosts share their offers, whatever is used of each."""
    shelf = InventoryPacker()
    first = shelf.packed({"VCPU": Inventory(8), "DISK_GB": Inventory(100)})
    second = shelf.packed({"VCPU": Inventory(8, used=5), "DISK_GB": Inventory(100, used=9)})
    other = shelf.packed({"VCPU": Inventory(9), "DISK_GB": Inventory(100)})
    assert first.offers is second.offers and first != second
    assert other.offers is not first.offers and other.offers[1] is first.offers[1]


def test_new_figures_keep_the_offers() -> None:
    """A changed used amount needs no new offers."""
    held = InventoryPacker().packed({"VCPU": Inventory(8), "DISK_GB": Inventory(100, used=1)})
    own = bytearray(held.figures)
    OWN_FORM.pack_into(own, 0, 7, 0, 0)
    after = Inventories(held.offers, bytes(own))
    assert list(after.own_figures()) == [7, 0, 0, 1, 0, 0]
    assert after["VCPU"].used == 7 and after["DISK_GB"].used == 1
    assert held["VCPU"].used == 0
    assert has_room(after["VCPU"], 1) and not has_room(after["VCPU"], 2)


def test_renamed() -> None:
    """A renamed class keeps its place in the order."""
    shelf = InventoryPacker()
    held = shelf.packed({"A": Inventory(1), "B": Inventory(2)})
    assert list(shelf.renamed(held, "A", "C").items()) == [("C", Inventory(1)), ("B", Inventory(2))]


def test_the_shelf_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of shared offers is bounded, even if every provider offers something else."""
    monkeypatch.setattr("moorage.core.ledger.compact_inventories.SHARED_MAX", 10)
    shelf = InventoryPacker()
    packed = [shelf.packed({"VCPU": Inventory(total)}) for total in range(1, 40)]
    assert [each["VCPU"].total for each in packed] == list(range(1, 40))
    assert len(shelf._offers) <= 12
