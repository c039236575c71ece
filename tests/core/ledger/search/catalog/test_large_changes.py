"""Long work on a catalog is done in pieces of a bounded number of providers or chunks."""

import gc
import weakref
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import NO_TAGS, Inventory, Provider, ProviderRecord
from moorage.core.ledger.requests import CandidateQuery, ProviderQuery, TraitFilter
from moorage.core.ledger.search import Catalog, providers_in_order
from moorage.core.ledger.search.catalog.catalog import LOOKED_UP
from moorage.core.ledger.search.catalog.chunk import Place
from moorage.core.ledger.search.catalog.large_changes import (
    PART_PROVIDERS,
    CatalogRemains,
    applying,
)
from moorage.core.ledger.search.explain import explaining
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import group
from tests.core.ledger.search.naive import Records
from tests.core.ledger.search.whole import explain, providers, to_end
from tests.support.pieces import TooMuch, bounded

SEEDS = 30


class Counting(Catalog):
    """A catalog that counts the providers that it changes or compares."""

    def __init__(self, chunk_rows: int = 4) -> None:
        super().__init__(world.STANDARD_CLASSES, world.STANDARD_TRAITS, chunk_rows)
        self.touched = 0

    def apply(self, changes: Changes) -> None:
        uuids = {*changes.providers, *changes.tags, *(uuid for uuid, _ in changes.inventories)}
        self.touched += len(uuids)
        super().apply(changes)

    def _image(self, uuid: ProviderId) -> dict[str, object]:
        self.touched += 1
        return super()._image(uuid)


class Places(dict[ProviderId, Place]):
    """Counts look-ups of providers."""

    looked_up = 0

    def __contains__(self, uuid: object) -> bool:
        self.looked_up += 1
        return super().__contains__(uuid)


def flat(count: int) -> Records:
    """Return the records of this number of single hosts."""
    found: Records = {}
    for number in range(count):
        uuid = world.uuid_of(number)
        provider = Provider(uuid, f"name-{number}", 0, None, uuid, Instant(0), Instant(0))
        found[uuid] = ProviderRecord(provider, {"VCPU": Inventory(8)}, NO_TAGS, 0)
    return found


def test_pieces_are_bounded() -> None:
    """A piece of applying or comparing touches a bounded number of providers."""
    records = flat(1_000)
    changes = world.changes_of(records)
    ours, theirs = Counting(), Counting()
    most = PART_PROVIDERS + 1
    ours.apply(changes)
    theirs.apply(changes)
    used = Changes(inventories={(uuid, "VCPU"): Inventory(8, used=1) for uuid in records})
    to_end(bounded(applying(ours, used), lambda: ours.touched, most))
    theirs.apply(used)

    def compared() -> int:
        return ours.touched + theirs.touched

    comparing: Any = ours.comparing(theirs)
    to_end(bounded(comparing, compared, 2))
    assert ours.differences(theirs) == []


def test_a_comparison_looks_up_few_providers_at_a_time() -> None:
    """Additional providers of the other catalog are found, and in bounded pieces."""
    changes = world.changes_of(flat(1_000))
    ours, theirs = Counting(), Counting()
    theirs.apply(changes)
    places = ours.places = Places()
    comparing: Any = ours.comparing(theirs)
    found = [
        line for part in bounded(comparing, lambda: places.looked_up, LOOKED_UP) for line in part
    ]
    assert places.looked_up == len(theirs)
    assert sum("provider is None" in line for line in found) == len(theirs), found[:3]


def test_a_planted_long_piece_is_found() -> None:
    """`bounded` detects a batch that is applied in one part."""
    changes = world.changes_of(flat(1_000))
    catalog = Counting()
    catalog.apply(changes)
    used = Changes(inventories={key: Inventory(9) for key in changes.inventories})
    with pytest.raises(TooMuch):
        work = applying(catalog, used, size=1_000)
        to_end(bounded(work, lambda: catalog.touched, PART_PROVIDERS))


def test_listings_and_explanations_have_a_piece_per_chunk() -> None:
    """Each piece searches one chunk, and the answer equals that without pieces."""
    catalog = world.fleet_of(flat(400), chunk_rows=16)
    chunks = len(catalog.chunks)
    assert chunks > 20
    assert pieces_of(providers_in_order(catalog, ProviderQuery())) >= chunks
    assert to_end(providers_in_order(catalog, ProviderQuery())) == providers(
        catalog, ProviderQuery()
    )
    few = ProviderQuery(in_tree=world.uuid_of(7))
    assert len(providers(catalog, few)) == 1
    # This also holds where no row has a required trait: many such chunks together take long.
    nobody = ProviderQuery(traits=TraitFilter(required=(frozenset({"CUSTOM_ABSENT"}),)))
    assert pieces_of(providers_in_order(catalog, nobody)) >= chunks

    query = CandidateQuery((group(VCPU=9), group("_A", VCPU=1)))
    passes = pieces_of(explaining(catalog, query)) / chunks
    assert passes >= 3  # each part, its nearest, and the trees
    assert to_end(explaining(catalog, query)) == explain(catalog, query)


def pieces_of(work: Iterable[object]) -> int:
    """Return the number of pieces of this work."""
    return sum(1 for _ in work)


def test_an_explanation_survives_concurrent_changes() -> None:
    """An explanation ends although providers are created, changed and deleted meanwhile."""
    random = Random(5)
    for _ in range(40):
        records = world.some_fleet(random, 30)
        catalog = world.fleet_of(records)
        work = explaining(catalog, world.some_query(random, 30))
        try:
            while True:
                next(work)
                uuid = random.choice(sorted(records))
                if catalog.children_of(uuid) or random.random() < 0.5:
                    catalog.apply(Changes(inventories={(uuid, "VCPU"): None}))
                else:
                    catalog.apply(Changes(providers={uuid: None}))
        except StopIteration as stop:
            assert stop.value.nearest or stop.value.found


def test_a_dropped_catalog_is_emptied_in_pieces() -> None:
    """A dropped catalog is emptied completely, in bounded pieces."""
    catalog = world.fleet_of(flat(3_000), chunk_rows=64)
    owned = CatalogRemains(catalog)

    def left() -> int:
        return -sum(map(len, owned.held()))

    to_end(bounded(owned.emptied(), left, 16 * PART_PROVIDERS))
    assert left() == 0
    assert len(catalog) == 0


def test_a_dropped_catalog_leaves_nothing_to_the_collector() -> None:
    """A dropped catalog is freed without the garbage collector, which ignores frozen objects.

    Otherwise each check of the index would leak a catalog.
    """
    catalog = world.fleet_of(flat(200), chunk_rows=64)
    columns = [weakref.ref(one.used) for chunk in catalog.chunks for one in chunk.columns.values()]
    assert columns
    owned = CatalogRemains(catalog)
    gc.disable()
    try:
        del catalog
        to_end(owned.emptied())
        del owned
        assert [one() for one in columns if one() is not None] == []
    finally:
        gc.enable()
