"""Sums of inventories: equal to those of a plain loop, and all as of the moment of the snapshot."""

from random import Random

import pytest
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import shown_capacity
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Inventory, Provider, Withheld
from moorage.core.ledger.search.capacity_sums import (
    A_STEP,
    CapacitySum,
    Closed,
    Grouping,
    snapshot,
    stocks,
    summed,
)
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.packed_catalog import Restorer, View
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder
from tests.core.ledger.search.naive import Records
from tests.core.ledger.search.whole import to_end

FLEETS = 60
EVERYTHING = 10_000

Plain = dict[tuple[str, str], list[int]]


def figures(sums: list[CapacitySum]) -> Plain:
    """Return the figures of sums by class and group."""
    return {
        (one.resource_class, one.group): [
            one.providers, one.total, one.held_back, one.capacity, one.used, one.free
        ]
        for one in sums
    }  # fmt: skip


def plainly(records: Records, by: Grouping) -> Plain:
    """Return the same figures, from a loop over all inventories."""
    found: Plain = {}
    for record in records.values():
        tags = {"class": [], "trait": record.tags.traits, "aggregate": record.tags.aggregates}
        for name, inventory in record.inventories.items():
            units = shown_capacity(inventory)
            free = max(0, units - inventory.used)
            held_back = inventory.reserved
            mine = [1, inventory.total, held_back, units, inventory.used, free]
            for group in [*tags[by]] or [""]:
                sums = found.get((name, group), [0] * len(mine))
                found[name, group] = [a + b for a, b in zip(sums, mine, strict=True)]
    return found


def ratios_of(records: Records, by: Grouping) -> dict[tuple[str, str], set[float]]:
    """Return the allocation ratios that there are, by class and group."""
    found: dict[tuple[str, str], set[float]] = {}
    for record in records.values():
        tags = {"class": [], "trait": record.tags.traits, "aggregate": record.tags.aggregates}
        for name, inventory in record.inventories.items():
            for group in [*tags[by]] or [""]:
                found.setdefault((name, group), set()).add(inventory.allocation_ratio)
    return found


def restored(catalog: Catalog) -> Catalog:
    """Return the catalog as a start reads it from a file."""
    again = world.empty_fleet()
    restorer = Restorer(again)
    for part in View.of(catalog).parts():
        restorer.take(part)
    restorer.finish()
    return again


def test_inventories_are_added_up_by_class() -> None:
    """The class of most providers comes first, then by name; an empty catalog has none."""
    assert to_end(stocks(world.empty_fleet().chunks)) == []
    fleet = Builder(chunk_rows=2)
    most = 2**31 - 1
    fleet.add("A", VCPU=Inventory(8, used=3), MEMORY_MB=Inventory(most, used=most))
    fleet.add("B", VCPU=Inventory(8, used=2), MEMORY_MB=most)
    fleet.add("C", VCPU=8, MEMORY_MB=most)
    fleet.add("D", DISK_GB=5, VCPU=1)
    expected = [("VCPU", 5, 25), ("MEMORY_MB", most, 3 * most), ("DISK_GB", 0, 5)]
    assert to_end(stocks(fleet.catalog.chunks)) == expected
    assert to_end(stocks(restored(fleet.catalog).chunks)) == expected


def test_sums_by_class_are_those_of_a_plain_loop() -> None:
    """For random fleets they are equal, after a start from a file, too."""
    for seed in range(FLEETS):
        records = world.some_fleet(Random(f"stocks/{seed}"), 9)
        expected = {key[0]: (one[4], one[1]) for key, one in plainly(records, "class").items()}
        catalog = world.fleet_of(records, 4)
        for each in (catalog, restored(catalog)):
            assert {one[0]: one[1:] for one in to_end(stocks(each.chunks))} == expected, seed


@pytest.mark.parametrize("by", ["class", "trait", "aggregate"])
def test_sums_are_those_of_a_plain_loop(by: Grouping) -> None:
    """For random fleets all figures are equal, in the order of class and group; none is missing."""
    several = 0
    for seed in range(FLEETS):
        records = world.some_fleet(Random(f"sums/{seed}"), 9)
        catalog = world.fleet_of(records, 4)
        sums, left_out = to_end(summed(snapshot(catalog), by, None, 2, EVERYTHING))
        keys = [(one.resource_class, one.group) for one in sums]
        assert (figures(sums), left_out, keys) == (plainly(records, by), 0, sorted(keys)), seed
        ratios = ratios_of(records, by)
        for one in sums:
            assert 0 <= one.free <= one.capacity, "free units are offered"
            there = ratios[one.resource_class, one.group]
            assert one.ratio == (there.pop() if len(there) == 1 else None)
        several += len(sums) > 2
    assert several > FLEETS // 2


def test_changes_meanwhile_do_not_count() -> None:
    """What is added, used and removed between the pieces is not in the sums of the snapshot.

    The control: without the copy of the references, the sums are those of no moment.
    """
    builder = Builder()
    for number in range(3 * A_STEP):
        builder.add(f"host-{number:04}", VCPU=4)
    catalog = builder.catalog
    work = summed(snapshot(catalog), "class", None, 1, EVERYTHING)
    torn = summed([chunk.records for chunk in catalog.chunks], "class", None, 1, EVERYTHING)
    next(work)
    next(torn)
    builder.add("later", VCPU=100)
    catalog.apply(Changes(inventories={(ProviderId("host-0700"), "VCPU"): Inventory(4, used=4)}))
    catalog.apply(Changes(providers={ProviderId("host-0701"): None}))
    (then,), _ = to_end(work)
    count = 3 * A_STEP
    assert figures([then]) == {("VCPU", ""): [count, 4 * count, 0, 4 * count, 0, 4 * count]}
    (mixed,), _ = to_end(torn)
    assert mixed.total != then.total
    (now,), _ = to_end(summed(snapshot(catalog), "class", None, 1, EVERYTHING))
    total = 4 * (count - 1) + 100
    assert figures([now]) == {("VCPU", ""): [count, total, 0, total, 4, total - 4]}
    assert now.fullest[0].name == "host-0700"


def test_the_fullest_and_the_emptiest() -> None:
    """They are few, by fullness and then by name; what has neither capacity nor usage is neither.

    A provider of which more is used than it has is the fullest.
    """
    builder = Builder()
    offers = {
        "a": Inventory(10, used=5),
        "b": Inventory(10, used=10),
        "c": Inventory(10),
        "d": Inventory(10, used=5),
        "gone": Inventory(10, offered=0),
        "lost": Inventory(10, offered=0, used=3),
    }
    for name in sorted(offers, reverse=True):
        builder.add(name, VCPU=offers[name])
    (one,), _ = to_end(summed(snapshot(builder.catalog), "class", "VCPU", 3, EVERYTHING))
    assert [each.name for each in one.fullest] == ["lost", "b", "a"]
    assert [each.name for each in one.emptiest] == ["c", "a", "d"]
    assert (one.providers, one.total, one.capacity, one.used, one.free) == (6, 60, 40, 23, 20)


def test_what_is_withheld_is_counted_where_it_begins() -> None:
    """Those that an operator has drained come first, then by name; only the first have names."""
    reasons = {"a": "late", "b": "drained: disks", "c": None, "d": "drained"}
    providers = [
        Provider(
            uuid=ProviderId(name), name=name, generation=0, parent=None, root=ProviderId(name),
            created_at=Instant(0), updated_at=Instant(0),
            withheld=None if why is None else Withheld(why, ProviderId(name)),
        )
        for name, why in reasons.items()
    ]  # fmt: skip
    below = replace(providers[0], uuid=ProviderId("below"), parent=ProviderId("a"))
    for most in (2, 9):
        closed = Closed(most)
        for one in [*providers, below]:
            closed.add(one)
        assert closed.number == 3
        assert [(name, why) for _, name, why in closed.first] == [
            ("b", "drained: disks"), ("d", "drained"), ("a", "late")
        ][:most]  # fmt: skip


def test_more_lines_than_asked_for_are_counted() -> None:
    """The first lines are returned, and the number of the others; other classes do not count."""
    builder = Builder()
    for number in range(7):
        builder.add(f"host-{number}", traits=f"T{number}", VCPU=1, DISK=2)
    sums, left_out = to_end(summed(snapshot(builder.catalog), "trait", "VCPU", 0, 5))
    assert [one.group for one in sums] == [f"T{number}" for number in range(5)]
    assert left_out == 2
    assert [one.fullest for one in sums] == [[]] * 5
