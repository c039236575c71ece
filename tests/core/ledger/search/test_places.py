"""Places and nearest misses agree with a naive search, and the words are right."""

from random import Random

import pytest
from msgspec.structs import replace

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import CandidateQuery
from moorage.core.ledger.search.misses import Misses, missing
from moorage.core.ledger.search.places import Fitting, fitting
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder, group
from tests.core.ledger.search.naive import Records, naive_by_anchor
from tests.core.ledger.search.whole import explain, to_end

SEEDS = 10
QUESTIONS = 100
MOST = 3


@pytest.mark.parametrize("seed", range(SEEDS))
def test_places_are_those_of_a_naive_search(seed: int) -> None:
    """The first by name, each with a real candidate; the count is right where it says so."""
    found = 0
    for number in range(QUESTIONS):
        random = Random(f"places/{seed}/{number}")
        records = world.some_fleet(random, random.randint(0, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        query = replace(world.some_query(random, len(records)), limit=None)
        where = f"Random('places/{seed}/{number}'): {query}"
        known = naive_by_anchor(records, query)
        names = sorted(records[root].provider.name for root in known)
        seen = to_end(fitting(catalog, query, MOST))
        shared = any(
            share.provider not in _tree(records, one.root)
            for one in seen.places
            for share in one.shares
        )
        if not (shared or catalog.sharing):
            assert [one.name for one in seen.places] == names[:MOST], where
        assert bool(seen.places) == bool(known), where
        if seen.exact:
            assert len(seen.places) + seen.more == len(known), where
        else:
            assert len(seen.places) + seen.more >= len(seen.places), where
        for place in seen.places:
            taken = {(share.provider, frozenset(share.takes.items())) for share in place.shares}
            assert any(taken == allocations for allocations, _ in known[place.root]), where
            for share in place.shares:
                for name, left in share.left.items():
                    assert left >= 0, where
                    held = records[share.provider].inventories[name]
                    whole = int((held.total - held.reserved) * held.allocation_ratio)
                    assert left == whole - held.used - share.takes[name], where
        found += len(seen.places)
    assert found > QUESTIONS / 5


def _tree(records: Records, root: ProviderId) -> set[ProviderId]:
    return {uuid for uuid, record in records.items() if record.provider.root == root}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_misses_are_of_the_nearest(seed: int) -> None:
    """Whatever fits nowhere: places are named once each, with what each lacks."""
    named = 0
    for number in range(QUESTIONS):
        random = Random(f"misses/{seed}/{number}")
        records = world.some_fleet(random, random.randint(0, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        query = world.some_query(random, len(records))
        where = f"Random('misses/{seed}/{number}'): {query}"
        explained = explain(catalog, query)
        if explained.found or not explained.exhausted:
            continue
        misses = to_end(missing(catalog, query, explained, MOST))
        assert len(misses.nearest) <= MOST and misses.more >= 0, where
        assert len({(one.part, one.provider) for one in misses.nearest}) == len(misses.nearest)
        for one in misses.nearest:
            record = records[one.provider]
            assert (one.name, one.root) == (record.provider.name, record.provider.root), where
            assert one.lacks and all(one.lacks), where
        named += len(misses.nearest)
    assert named > QUESTIONS / 5


def test_the_nearest_come_first() -> None:
    """By what they lack, then by name; others as near are counted."""
    builder = Builder(chunk_rows=2)
    for number in range(6):
        builder.add(f"r{number}", VCPU=Inventory(8, used=8 - number % 3))
    builder.add("other", DISK_GB=9)
    query = CandidateQuery((group(VCPU=4),))
    misses = to_end(missing(builder.catalog, query, explain(builder.catalog, query), 3))
    seen = [(one.name, one.lacks) for one in misses.nearest]
    assert seen == [
        ("r2", ("has 2 of the required 4 VCPU",)),
        ("r5", ("has 2 of the required 4 VCPU",)),
        ("r1", ("has 1 of the required 4 VCPU",)),
    ]
    assert misses.more == 3


def test_trees_that_serve_some_parts() -> None:
    """Which part a tree lacks; of trees whose parts compete, that they serve each alone."""
    builder = Builder()
    builder.add("host", VCPU=4)
    builder.add("card", "host", CUSTOM_VF=2)
    builder.add("lone", CUSTOM_BM=1)
    parts = CandidateQuery((group("_A", VCPU=1), group("_B", CUSTOM_BM=1)))
    assert _lacks(builder, parts) == {"host": ("lacks _B",), "lone": ("lacks _A",)}
    both = CandidateQuery((group("_A", VCPU=3), group("_B", VCPU=3)))
    assert _lacks(builder, both) == {
        "host": ("serves each part alone, but not all of them together",)
    }
    unknown = CandidateQuery((group(VCPU=1, required="NEVER"),))
    assert _lacks(builder, unknown)["host"] == (
        "does not meet: has the traits that the unsuffixed group requires",
    )


def _lacks(builder: Builder, query: CandidateQuery) -> dict[str, tuple[str, ...]]:
    explained = explain(builder.catalog, query)
    assert not explained.found
    misses: Misses = to_end(missing(builder.catalog, query, explained, 20))
    return {one.name: one.lacks for one in misses.nearest}


def test_more_places_are_counted() -> None:
    """Of 1,200 machines the first are named, and the rest is counted exactly."""
    builder = Builder(chunk_rows=64)
    for number in range(1_200):
        builder.add(f"r{number:04d}", VCPU=96)
    seen: Fitting = to_end(fitting(builder.catalog, CandidateQuery((group(VCPU=4),)), 20))
    assert [one.name for one in seen.places] == [f"r{number:04d}" for number in range(20)]
    assert (seen.more, seen.exact) == (1_180, True)
    assert seen.places[0].shares[0].left == {"VCPU": 92}
    nowhere: Fitting = to_end(fitting(builder.catalog, CandidateQuery((group(VCPU=97),)), 20))
    assert (nowhere.places, nowhere.more) == ((), 0)
