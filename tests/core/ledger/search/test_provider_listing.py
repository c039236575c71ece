"""Providers are listed in pieces, without duplicates even if the catalog changes meanwhile."""

from random import Random

import pytest
from msgspec.structs import replace

from moorage.core.ledger.facts import Changes
from moorage.core.ledger.requests import ProviderQuery
from moorage.core.ledger.search import providers_in_order
from tests.core.ledger.search import world
from tests.core.ledger.search.changing import ConcurrentWriter
from tests.core.ledger.search.naive import Records, naive_providers
from tests.core.ledger.search.whole import providers as listed
from tests.core.ledger.search.whole import to_end

FLEETS = 150
HOSTS = 8


@pytest.mark.parametrize("pause", range(1, 5))
@pytest.mark.parametrize("forward", [False, True])
def test_a_provider_that_moves_during_a_listing_is_listed_once(pause: int, forward: bool) -> None:
    """A provider that moves to a tree in another chunk is listed exactly once."""
    records: Records = {world.uuid_of(n): world.single_provider(n) for n in range(HOSTS)}
    catalog = world.fleet_of(records, chunk_rows=3)
    catalog.apply(Changes(providers={world.uuid_of(6 if forward else 1): None}))
    moving, to = (world.uuid_of(n) for n in ((0, 7) if forward else (7, 0)))
    before = catalog.places[moving][0]
    listing = providers_in_order(catalog, ProviderQuery())
    for _ in range(pause):
        next(listing)
    moved = replace(records[moving].provider, parent=to, root=to)
    catalog.apply(Changes(providers={moving: moved}))
    assert catalog.places[moving][0] is not before
    found = [record.provider.uuid for record in to_end(listing)]
    assert found == [each.provider.uuid for each in listed(catalog, ProviderQuery())]


@pytest.mark.parametrize("seed", range(6))
def test_changes_during_a_listing(seed: int) -> None:
    """Each listed provider matched at some time, and those that always matched are listed."""
    changed = 0
    for number in range(FLEETS):
        random = Random(f"listing/{seed}/{number}")
        writer = ConcurrentWriter.of_random_catalog(random)
        query = world.some_listing(random, len(writer.records))
        answer = writer.during(providers_in_order(writer.catalog, query))
        found = [record.provider.uuid for record in answer]
        where = f"Random('listing/{seed}/{number}'): {query}"
        moments = [naive_providers(then, query) for then in writer.past]
        assert len(set(found)) == len(found), where
        assert set(found) <= set().union(*moments), where
        assert set.intersection(*moments) <= set(found), where
        places = [(each.provider.created_at, each.provider.uuid) for each in answer]
        assert places == sorted(places), where
        changed += bool(found) and len(writer.past) > 2
    assert changed > FLEETS // 10
