"""A catalog that was stored as bytes and restored is the same, also after further changes."""

from collections import Counter
from random import Random
from typing import Any, Self

import pytest
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import AgentId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Inventory, ProviderRecord, Reported, Withheld
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.capacity_sums import snapshot
from moorage.core.ledger.search.catalog.large_changes import CatalogRemains
from moorage.core.ledger.search.catalog.packed_catalog import Restorer, View
from tests.core.ledger.search import world
from tests.core.ledger.search.changing import ConcurrentWriter
from tests.core.ledger.search.naive import Records
from tests.core.ledger.search.whole import candidates, providers, to_end

SEEDS = 60


def restored(parts: list[bytes]) -> Catalog:
    """Return a catalog of these parts."""
    catalog = world.empty_fleet()
    restorer = Restorer(catalog)
    for part in parts:
        restorer.take(part)
    restorer.finish()
    return catalog


def stored(catalog: Catalog) -> list[bytes]:
    """Return the parts of a catalog."""
    return list(View.of(catalog).parts())


class Both(Catalog):
    """A catalog whose changes are applied to a second one, too."""

    second: Catalog | None = None

    def apply(self, changes: Changes) -> None:
        super().apply(changes)
        if self.second is not None:
            self.second.apply(changes)


class Writer(ConcurrentWriter):
    """Changes two catalogs."""

    @classmethod
    def of_random_catalog(cls, random: Random) -> Self:
        records = decorated(random, world.some_fleet(random, random.randint(1, 30)))
        chunk_rows = random.choice((1, 4, 16, 1024))
        catalog = Both(world.STANDARD_CLASSES, world.STANDARD_TRAITS, chunk_rows)
        catalog.apply(world.changes_of(records))
        return cls(random, records, catalog)


def decorated(random: Random, records: Records) -> Records:
    """Give providers what the searches do not need: agents, generations, times, reports."""
    found: Records = {}
    for uuid, record in records.items():
        provider, tags = record.provider, record.tags
        if random.random() < 0.3:
            provider = replace(
                provider,
                generation=random.choice((1, 7, 1 << 40)),
                updated_at=Instant(provider.created_at + random.choice((0, 5))),
                agent=AgentId("a-1"),
                withheld=random.choice((None, Withheld("silent", uuid))),
            )
        if random.random() < 0.3:
            reported = (Reported("racks", frozenset(tags.traits), owned=True), Reported("x"))
            tags = replace(tags, updated_at=Instant(9), reported=reported)
        inventories = {
            name: replace(one, offered=random.choice((None, 3)), updated_at=Instant(1 << 50))
            for name, one in record.inventories.items()
        }
        found[uuid] = ProviderRecord(provider, inventories, tags, 0)
    return found


def answers(catalog: Catalog, random: Random) -> list[Any]:
    """Return the answers of random queries; their order may depend on the history of a tree."""
    found: list[Any] = []
    for _ in range(5):
        answer = candidates(catalog, world.some_query(random, 12))
        assert answer.exhausted and not answer.capped
        found.append(Counter(map(world.plain, answer.candidates)))
        found.append({record.provider.uuid: told(record) for record in answer.summaries})
    return [*found, *map(told, providers(catalog, world.some_listing(random, 12)))]


def told(record: ProviderRecord) -> tuple[Any, ...]:
    """Return the content of a record without its version."""
    return record.provider, dict(record.inventories), record.tags


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_restored_catalog_is_equal(seed: int) -> None:
    """It has the same content and answers, at once and after the same changes to both."""
    random = Random(f"restored/{seed}")
    writer = Writer.of_random_catalog(random)
    for _ in range(random.randint(0, 6)):
        writer.change()
    catalog = writer.catalog
    assert isinstance(catalog, Both)
    again = catalog.second = restored(stored(catalog))
    chance = random.randint(0, 1 << 30)
    if random.random() < 0.5:
        assert answers(again, Random(chance)) == answers(catalog, Random(chance))
    for _ in range(random.randint(0, 6)):
        writer.change()
    assert answers(again, Random(chance)) == answers(catalog, Random(chance))
    assert catalog.differences(again) == [] == again.differences(catalog)
    assert list(again.sharing) == list(catalog.sharing)
    assert restored(stored(again)).differences(catalog) == []


def test_a_difference_is_noticed() -> None:
    """The comparison of these tests finds a single unit of one inventory: it is not blind."""
    records = world.some_fleet(Random("a difference"), 30)
    catalog = world.fleet_of(records)
    parts = stored(catalog)
    uuid, name = next((uuid, name) for uuid, r in records.items() for name in r.inventories)
    inventory = records[uuid].inventories[name]
    catalog.apply(Changes(inventories={(uuid, name): replace(inventory, used=inventory.used + 1)}))
    assert any(str(uuid) in line for line in restored(parts).differences(catalog))


def flat(count: int) -> Catalog:
    """Return a catalog of this number of single hosts."""
    catalog = world.empty_fleet()
    changes = Changes()
    for number in range(count):
        record = world.single_provider(number)
        changes.providers[record.provider.uuid] = record.provider
        changes.inventories[record.provider.uuid, "VCPU"] = Inventory(8)
    catalog.apply(changes)
    return catalog


def test_records_are_made_when_they_are_first_read() -> None:
    """Reading one provider makes the records of its chunk; views, sums and the end make none."""
    catalog = restored(stored(flat(30)))
    assert all(chunk.is_packed for chunk in catalog.chunks)
    assert sum(record is not None for chunk in snapshot(catalog) for record in chunk) == 30
    View.of(catalog)
    assert all(chunk.is_packed for chunk in catalog.chunks)
    assert catalog.record(world.uuid_of(3)) is not None
    assert [chunk.is_packed for chunk in catalog.chunks].count(False) == 1
    to_end(CatalogRemains(catalog).emptied())
    assert [chunk.is_packed for chunk in catalog.chunks].count(False) == 1
    assert not catalog.places


def test_a_view_is_of_one_moment() -> None:
    """Later changes do not change the parts of a view."""
    catalog = flat(30)
    view, before = View.of(catalog), restored(stored(catalog))
    catalog.apply(Changes(providers={world.uuid_of(3): None}))
    assert restored(list(view.parts())).differences(before) == []


def test_what_are_no_parts_of_one_catalog_is_refused() -> None:
    """Missing parts, repeated ones and foreign bytes raise an error."""
    parts = stored(flat(30))
    wrong: list[list[bytes]] = [[], parts[1:], parts[:-1], [parts[0], *parts], [b"\x00", *parts]]
    for some in wrong:
        with pytest.raises(Exception):  # noqa: B017 - whichever: the rows are read instead
            restored(some)
