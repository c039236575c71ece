"""Changes a catalog while it is searched, and defines what an answer must contain then."""

from collections.abc import Generator
from random import Random
from typing import Self, TypeVar

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.search import Catalog
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import SHARING
from tests.core.ledger.search.naive import Plain, Records

T = TypeVar("T")

CHANGES_MAX = 12
"""Most changes during one search: the model answers the query again after each."""


class ConcurrentWriter:
    """Changes a catalog between the pieces of a search, and keeps all its states."""

    def __init__(self, random: Random, records: Records, catalog: Catalog) -> None:
        self.random = random
        self.records = records
        self.catalog = catalog
        self.past = [dict(records)]
        self.probability = random.choice((0.5, 0.5, 0.1))
        """The probability of a change after a piece; if it is low, changes come late."""

    @classmethod
    def of_random_catalog(cls, random: Random) -> Self:
        """Return changes of a small random catalog."""
        records = world.some_fleet(random, random.randint(4, 11))
        return cls(random, records, world.fleet_of(records, random.choice((1, 4, 1024))))

    def change(self) -> None:
        """Delete, create, create again, move or change a few providers."""
        random, before = self.random, self.records
        after = dict(before)
        for _ in range(random.randint(1, 3)):
            self._change_one(after)
        changes = world.changes_of(
            {uuid: record for uuid, record in after.items() if before.get(uuid) != record}
        )
        for uuid, old in before.items():
            new = after.get(uuid)
            if new is None:
                changes.providers[uuid] = None
            else:
                for name in old.inventories.keys() - new.inventories.keys():
                    changes.inventories[uuid, name] = None
        self.catalog.apply(changes)
        self.records = after
        self.past.append(dict(after))

    def _change_one(self, records: Records) -> None:
        random = self.random
        fresh = world.some_fleet(random, 12)
        uuid = random.choice(list(fresh))
        change = random.choice(("gone", "tags", "used", "again", "new", "moved"))
        alone = all(record.provider.parent != uuid for record in records.values())
        if change in ("tags", "used") and uuid in records:
            record = records[uuid]
            tags = fresh[uuid].tags if change == "tags" else record.tags
            inventories = fresh[uuid].inventories if change == "used" else record.inventories
            records[uuid] = ProviderRecord(record.provider, inventories, tags, 0)
        elif change == "gone" and alone:
            records.pop(uuid, None)
        elif alone and (change == "again" or (change == "moved") == (uuid in records)):
            parent = random.choice([None, *(other for other in records if other != uuid)])
            self._put(records, fresh[uuid], parent, again=change == "again")

    def _put(
        self, records: Records, record: ProviderRecord, parent: ProviderId | None, again: bool
    ) -> None:
        """Create a provider, or move one that has no children."""
        uuid = record.provider.uuid
        root = uuid if parent is None else records[parent].provider.root
        old = records.get(uuid)
        made = record.provider.created_at
        if old is not None:
            made = Instant(old.provider.created_at + again)
        provider = replace(record.provider, parent=parent, root=root, created_at=made)
        records[uuid] = ProviderRecord(provider, record.inventories, record.tags, 0)

    def during(self, work: Generator[None, None, T]) -> T:
        """Execute a search or a listing, and change the catalog after some of its pieces."""
        while True:
            try:
                next(work)
            except StopIteration as end:
                answer: T = end.value
                return answer
            if len(self.past) <= CHANGES_MAX and self.random.random() < self.probability:
                self.change()


def is_unchanged(past: list[Records], root: ProviderId) -> bool:
    """Return whether the tree of a root has had the same members all the time."""
    trees = [
        {uuid for uuid, record in records.items() if record.provider.root == root}
        for records in past
    ]
    times = {records[root].provider.created_at for records in past if root in records}
    return trees[0] == set.intersection(*trees) == set.union(*trees) and len(times) == 1


def is_steady(each: Plain, past: list[Records], steady: set[ProviderId]) -> bool:
    """Return whether a candidate is of steady trees, with a provider that has never shared."""
    uuids = {uuid for uuid, _ in each[0]} | {uuid for _, by in each[1] for uuid in by}
    return all(past[0][uuid].provider.root in steady for uuid in uuids) and any(
        all(SHARING not in records[uuid].tags.traits for records in past) for uuid in uuids
    )
