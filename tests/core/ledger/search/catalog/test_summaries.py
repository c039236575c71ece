"""Summaries of chunks stay correct bounds after any changes and searches."""

from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import CandidateOrder, CandidateQuery, Group
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.catalog import catalog, columns
from moorage.core.ledger.search.catalog.catalog import Loader
from moorage.core.ledger.search.catalog.summaries import BUCKETS, FLOORS, bucket, buckets
from moorage.core.ledger.search.catalog.summaries_check import unsound
from moorage.core.limits import MAX_INT
from tests.core.ledger.search import world
from tests.core.ledger.search.naive import Records, naive_candidates
from tests.core.ledger.search.whole import candidates, preferred, to_end


def random_changes(random: Random, records: Records) -> Changes:
    """Change a few providers: mostly claims, but also inventories, tags and deletions."""
    changes = Changes()
    for uuid in random.sample(sorted(records), min(len(records), random.choice((1, 1, 2, 8)))):
        record = records[uuid]
        kind = random.random()
        if kind < 0.6:
            held = {
                name: replace(each, used=max(0, each.used + random.randint(-3, 3)))
                for name, each in record.inventories.items()
            }
        elif kind < 0.75:
            held = {name: world.some_inventory(random) for name in world.CLASSES}
        elif kind < 0.85:
            held = dict(list(record.inventories.items())[1:])
        elif kind < 0.95 or any(r.provider.parent == uuid for r in records.values()):
            tags = world.some_tags(random, 0.2)
            records[uuid] = replace(record, tags=tags)
            changes.tags[uuid] = tags
            continue
        else:
            del records[uuid]
            changes.providers[uuid] = None
            continue
        records[uuid] = replace(record, inventories=held)
        for name in record.inventories.keys() | held.keys():
            changes.inventories[uuid, name] = held.get(name)
    return changes


def search_randomly(random: Random, followed: Catalog, providers: int) -> None:
    """Execute a random search, which may tighten bounds."""
    query = world.some_query(random, providers)
    candidates(followed, query)
    for preference in ("random", "pack", "spread"):
        preferred(followed, query, CandidateOrder(preference, random.randint(0, 9)), 5)  # type: ignore[arg-type] # one of the three


@pytest.mark.parametrize("seed", range(16))
def test_bounds_hold_after_any_changes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are exact and bounds are correct after each batch and each search."""
    random = Random(f"summaries/{seed}")
    monkeypatch.setattr(catalog, "MANY", random.choice((1, 4, 10**9)))
    monkeypatch.setattr(columns, "TREE_FOLLOWED_MAX", random.choice((1, 2, 16)))
    records = world.some_fleet(random, random.randint(1, 40))
    followed = world.fleet_of(records, random.choice((3, 8, 64)))
    for _ in range(10):
        followed.apply(random_changes(random, records))
        rebuilt = world.fleet_of(records, random.choice((3, 64)))
        assert followed.differences(rebuilt) == []
        search_randomly(random, followed, len(records))
        assert followed.differences(rebuilt) == []


@pytest.mark.parametrize("seed", range(8))
def test_bounds_follow_claims_on_lone_hosts(seed: int) -> None:
    """Claims and releases on different hosts keep every bound exact or marked as loose.

    Most of them change neither the largest amount of a chunk nor a bucket, and take the fast path.
    """
    random = Random(f"lone/{seed}")
    followed = world.empty_fleet(chunk_rows=32)
    held: dict[ProviderId, Inventory] = {}
    for number in range(60):
        provider = world.single_provider(number).provider
        total = random.choice((20, 50, 1_000))
        held[provider.uuid] = Inventory(total, used=random.randint(0, total))
        offered = {(provider.uuid, "VCPU"): held[provider.uuid]}
        followed.apply(Changes(providers={provider.uuid: provider}, inventories=offered))
    quiet = 0
    for step in range(300):
        if step % 5 == 0:
            for name in ("pack", "spread"):
                query = CandidateQuery((Group("", {"VCPU": random.choice((1, 7, 30))}),))
                preferred(followed, query, CandidateOrder(name), 40)  # type: ignore[arg-type] # one of the two
        gauges = followed.summaries.classes.values()
        quiet += not any(g.fullest_loose.any() or g.emptiest_loose.any() for g in gauges)
        uuid = random.choice(sorted(held))
        used = held[uuid].used + random.randint(-6, 6)
        held[uuid] = replace(held[uuid], used=min(max(0, used), held[uuid].total))
        followed.apply(Changes(inventories={(uuid, "VCPU"): held[uuid]}))
        wrong = [line for part in unsound(followed.summaries, followed.chunks) for line in part]
        assert wrong == [], step
    assert quiet > 30


@pytest.mark.parametrize("seed", range(10))
def test_no_chunk_with_a_candidate_is_skipped(seed: int) -> None:
    """No chunk has more anchors than its summaries permit, so no candidate is missed."""
    found = skipped = 0
    for number in range(30):
        random = Random(f"prospects/{seed}/{number}")
        records = world.some_fleet(random, random.randint(1, 12))
        followed = world.fleet_of(records, random.choice((1, 2, 4)))
        followed.apply(random_changes(random, records))
        query = world.some_query(random, 12)
        search = Search(followed, query)
        if not to_end(search.beginning()):
            continue
        most = search.prospects()
        for chunk in followed.chunks:
            rows = search.anchor_rows(chunk).tolist()
            opened = [row for row in rows if next(search.open(chunk, row), None) is not None]
            assert len(opened) <= most[chunk.number], f"prospects/{seed}/{number}: {query}"
            found += len(opened)
            skipped += most[chunk.number] == 0
        everything = set(map(world.plain, candidates(followed, query).candidates))
        assert everything == naive_candidates(records, query)
    assert found > 8 and skipped > 8


def test_wrong_summaries_are_reported() -> None:
    """The comparison of catalogs finds a fault in each kind of summary."""

    def plant(kind: str) -> list[str]:
        records = world.some_fleet(Random("planted"), 20)
        wrong = world.fleet_of(records, 8)
        gauge = wrong.summaries.classes["VCPU"]
        slot = int(np.flatnonzero(gauge.chunks == 0)[0])
        for highest in (True, False):
            gauge.tighten(slot, highest)
        if kind == "most":
            gauge.most[slot] = 0
        elif kind == "at_least":
            gauge.at_least[0, slot] += 1
        elif kind == "fullest":
            gauge.fullest[0, slot] = -1.0
        elif kind == "emptiest":
            gauge.emptiest[0, slot] = 2.0
        elif kind == "loose fullest":
            gauge.fullest[0, slot] = np.inf
        elif kind == "loose emptiest":
            gauge.emptiest[0, slot] = -np.inf
        elif kind == "bucket":
            wrong.chunks[0].columns["VCPU"].bucket[:] = 0
        elif kind == "rows":
            wrong.summaries.rows.rows[0] += 1
        elif kind == "slots":
            gauge.chunks[gauge.take(0)] = -1
        elif kind == "uses":
            uses = wrong.summaries.traits["CUSTOM_A"]
            uses.rows[uses.chunks >= 0] += 1
        return wrong.differences(world.fleet_of(records, 8))

    assert plant("nothing") == []
    for kind in (
        "most",
        "at_least",
        "fullest",
        "emptiest",
        "loose fullest",
        "loose emptiest",
        "bucket",
        "rows",
        "slots",
        "uses",
    ):
        assert any("summaries" in line for line in plant(kind)), kind


def test_buckets_are_in_order() -> None:
    """Each amount is in the last bucket that begins at or below it."""
    for number in range(BUCKETS):
        assert bucket(FLOORS[number]) == number
        assert bucket(FLOORS[number + 1] - 1) == number
    assert bucket(MAX_INT) == BUCKETS - 1
    some = np.array([0, 1, 7, 8, 9, 10, 1000, MAX_INT], dtype=np.int32)
    assert buckets(some).tolist() == [bucket(each) for each in some.tolist()]


def test_unused_names_have_no_summaries() -> None:
    """Summaries exist only for classes, traits and aggregates in use."""
    records = world.some_fleet(Random("gone"), 30)
    followed = world.fleet_of(records, 8)
    assert followed.summaries.classes and followed.summaries.traits
    children_first = dict.fromkeys(reversed(records))
    for uuid in children_first:
        followed.apply(Changes(providers={uuid: None}))
        assert followed.differences(followed) == []
    assert followed.summaries.classes == {}
    assert followed.summaries.traits == followed.summaries.aggregates == {}
    assert not followed.summaries.rows.rows.any()


def test_no_chunk_is_searched_if_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No chunk is searched for more than any host has left; otherwise only likely ones are."""
    changes = Changes()
    for number in range(400):
        record = world.single_provider(number)
        changes.providers[record.provider.uuid] = record.provider
        changes.inventories[record.provider.uuid, "VCPU"] = Inventory(100, used=number // 10)
    followed = world.empty_fleet(chunk_rows=8)
    followed.apply(changes)
    looked: list[int] = []
    sieve = Search.anchor_rows

    def counted(self: Search, chunk: object) -> object:
        looked.append(1)
        return sieve(self, chunk)  # type: ignore[arg-type] # handed on as it came

    monkeypatch.setattr(Search, "anchor_rows", counted)
    for amount, chunks in ((101, 0), (100, 2)):
        query = CandidateQuery((Group("", {"VCPU": amount}),))
        looked.clear()
        assert bool(candidates(followed, query).candidates) == bool(chunks)
        assert (len(looked) > 0) == (chunks > 0) and len(looked) <= 2 * chunks
    # Once the ten empty hosts are used, the bound falls.
    followed.apply(
        Changes(inventories={(world.uuid_of(n), "VCPU"): Inventory(100, used=1) for n in range(10)})
    )
    looked.clear()
    assert not candidates(followed, CandidateQuery((Group("", {"VCPU": 100}),))).candidates
    assert not looked


@pytest.mark.parametrize("seed", range(10))
def test_a_loaded_catalog_is_equal(seed: int) -> None:
    """Loading pieces in any order, even children first, gives the same catalog as `apply`."""
    random = Random(f"loading/{seed}")
    records = world.some_fleet(random, random.randint(1, 60))
    loaded = world.empty_fleet(chunk_rows=random.choice((4, 16)))
    loader = Loader(loaded)
    order = sorted(records)
    random.shuffle(order)
    while order:
        piece, order = order[:7], order[7:]
        loader.take([(records[u].provider, records[u].inventories, records[u].tags) for u in piece])
    loader.finish({}, {})
    assert loaded.differences(world.fleet_of(records)) == []
    assert set(loaded.places) == set(records)


def test_a_missing_root_is_refused() -> None:
    """A snapshot without the root of a provider means corrupt rows, so an error is raised."""
    orphan = replace(
        world.single_provider(1).provider, root=ProviderId("nobody"), parent=ProviderId("nobody")
    )
    loader = Loader(world.empty_fleet())
    loader.take([(orphan, {}, world.single_provider(1).tags)])
    with pytest.raises(LookupError, match="nobody"):
        loader.finish({}, {})
