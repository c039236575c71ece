"""A catalog that follows changes is equal to one that is rebuilt from the rows."""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import NO_TAGS, CustomName, Provider, ProviderRecord
from moorage.core.ledger.requests import CandidateAnswer
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.catalog.large_changes import applying
from tests.core.ledger.search import world
from tests.core.ledger.search.naive import Records
from tests.core.ledger.search.whole import candidates, providers

numbers = st.integers(min_value=0, max_value=9)
seeds = st.integers(min_value=0, max_value=2**32)


class Upkeep(RuleBasedStateMachine):
    """Random changes, as batches commit them, applied to a catalog and to plain records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: Records = {}
        self.catalog = world.empty_fleet(chunk_rows=3)
        self.applied_in_parts = world.empty_fleet(chunk_rows=3)
        """Follows the same changes in small parts."""
        self.changes = Changes()
        self.now = 0
        self.committed: set[ProviderId] = set()
        self.custom_names: dict[str, CustomName] = {}
        self.name = "CUSTOM_NIC"

    def held(self, number: int) -> ProviderId | None:
        """Return one of the existing providers."""
        uuids = sorted(self.records)
        return uuids[number % len(uuids)] if uuids else None

    def put(self, uuid: ProviderId, record: ProviderRecord) -> None:
        """Add an after-image of a provider to the changes."""
        self.records[uuid] = record
        self.changes.providers[uuid] = record.provider

    @rule(number=numbers, parent=st.none() | numbers, sharing=st.booleans(), seed=seeds)
    def create(self, number: int, parent: int | None, sharing: bool, seed: int) -> None:
        """Add a provider with tags and inventories."""
        uuid = world.uuid_of(number)
        if uuid in self.records:
            return
        above = None if parent is None else self.held(parent)
        root = uuid if above is None else self.records[above].provider.root
        self.now += 1
        now = Instant(self.now)
        taken = {record.provider.name for record in self.records.values()}
        name = f"name-{number}" if f"name-{number}" not in taken else f"name-{number}-{self.now}"
        provider = Provider(uuid, name, 0, above, root, now, now)
        self.put(uuid, ProviderRecord(provider, {}, NO_TAGS, 0))
        self.tag(number=sorted(self.records).index(uuid), sharing=sharing, seed=seed)
        self.offer(number=sorted(self.records).index(uuid), seed=seed)

    @rule(number=numbers, listed=st.booleans())
    def delete(self, number: int, listed: bool) -> None:
        """Delete a provider without children, with or without images of its inventories."""
        uuid = self.held(number)
        if uuid is None or any(r.provider.parent == uuid for r in self.records.values()):
            return
        record = self.records.pop(uuid)
        self.changes.providers[uuid] = None
        for key in [key for key in self.changes.inventories if key[0] == uuid]:
            del self.changes.inventories[key]
        self.changes.tags.pop(uuid, None)
        if listed:
            self.changes.tags[uuid] = NO_TAGS
            for name in record.inventories:
                self.changes.inventories[uuid, name] = None

    @rule(number=numbers, parent=st.none() | numbers)
    def move(self, number: int, parent: int | None) -> None:
        """Move a provider with its descendants to another parent or to none."""
        uuid = self.held(number)
        above = None if parent is None else self.held(parent)
        if uuid is None:
            return
        below = {uuid}
        while more := {u for u, r in self.records.items() if r.provider.parent in below} - below:
            below |= more
        if above in below:
            return
        root = uuid if above is None else self.records[above].provider.root
        for each in below:
            record = self.records[each]
            moved = replace(record.provider, root=root)
            if each == uuid:
                moved = replace(moved, parent=above)
            self.put(each, replace(record, provider=moved))

    @rule(number=numbers, other=numbers)
    def swap_names(self, number: int, other: int) -> None:
        """Swap the names of two providers in one batch."""
        first, second = self.held(number), self.held(other)
        if first is None or second is None or first == second:
            return
        names = [self.records[uuid].provider.name for uuid in (second, first)]
        for uuid, name in zip((first, second), names, strict=True):
            record = self.records[uuid]
            self.put(uuid, replace(record, provider=replace(record.provider, name=name)))

    @rule(number=numbers, sharing=st.booleans(), seed=seeds)
    def tag(self, number: int, sharing: bool, seed: int) -> None:
        """Replace a provider's traits and aggregates."""
        uuid = self.held(number)
        if uuid is not None:
            tags = world.some_tags(Random(seed), float(sharing))
            self.records[uuid] = replace(self.records[uuid], tags=tags)
            self.changes.tags[uuid] = tags

    @rule(number=numbers, seed=seeds)
    def offer(self, number: int, seed: int) -> None:
        """Add, change and remove inventories of a provider."""
        uuid = self.held(number)
        if uuid is None:
            return
        random = Random(seed)
        held = dict(self.records[uuid].inventories)
        for name in random.sample(("VCPU", "DISK_GB", self.name), random.randint(1, 3)):
            if random.random() < 0.3:
                held.pop(name, None)
            else:
                held[name] = world.some_inventory(random)
            self.changes.inventories[uuid, name] = held.get(name)
        self.records[uuid] = replace(self.records[uuid], inventories=held)

    @rule(number=numbers, used=st.integers(min_value=0, max_value=9))
    def claim(self, number: int, used: int) -> None:
        """Change the used amounts of a provider and raise its generation."""
        uuid = self.held(number)
        if uuid is None:
            return
        record = self.records[uuid]
        held = {name: replace(i, used=used) for name, i in record.inventories.items()}
        raised = replace(record.provider, generation=record.provider.generation + 1)
        self.put(uuid, replace(record, provider=raised, inventories=held))
        for name, inventory in held.items():
            self.changes.inventories[uuid, name] = inventory

    @precondition(lambda self: not self.changes)
    @rule()
    def rename_class(self) -> None:
        """Rename the custom class in a separate batch, as the ledger does."""
        old, new = self.name, "CUSTOM_NIC" if self.name != "CUSTOM_NIC" else "CUSTOM_NEW"
        self.name = new
        custom_name = CustomName(new, Instant(self.now), Instant(self.now))
        self.custom_names = {new: custom_name}
        self.changes = Changes(classes={old: None, new: custom_name}, renamed_classes={old: new})
        for uuid, record in self.records.items():
            held = {new if n == old else n: i for n, i in record.inventories.items()}
            self.records[uuid] = replace(record, inventories=held)
        self.commit()

    @rule()
    def commit(self) -> None:
        """Apply all changes since the last commit to both catalogs."""
        before = {uuid: self.catalog.record(uuid) for uuid in self.catalog.places}
        self.catalog.apply(self.changes)
        for _ in applying(self.applied_in_parts, self.changes, size=2):
            pass
        self.changes = Changes()
        self.committed = set(self.records)
        for uuid, record in self.records.items():
            now = self.catalog.record(uuid)
            assert now is not None
            assert replace(now, version=0) == record
            old = before.get(uuid)
            if old is not None and old != now:
                assert now.version > old.version
        self.check_rebuilt()

    def rebuilt(self) -> Catalog:
        """Return a catalog that is loaded from the present records."""
        catalog = world.fleet_of(self.records, chunk_rows=5)
        catalog.apply(Changes(classes=dict(self.custom_names)))
        return catalog

    def check_rebuilt(self) -> None:
        """Compare the content and the answers of the catalogs with a rebuilt one."""
        rebuilt = self.rebuilt()
        assert self.catalog.differences(rebuilt) == []
        assert self.applied_in_parts.differences(rebuilt) == []
        assert set(self.catalog.places) == set(self.records) and len(self.catalog) == len(
            self.records
        )
        random = Random(self.now)
        for trait in world.TRAITS:
            used = any(trait in record.tags.traits for record in self.records.values())
            assert self.catalog.trait_in_use(trait) == used
        for _ in range(3):
            query = world.some_query(random, 10)
            ours, theirs = candidates(self.catalog, query), candidates(rebuilt, query)
            assert set(map(world.plain, ours.candidates)) == set(
                map(world.plain, theirs.candidates)
            )
            assert summarized(ours) == summarized(theirs)
            listing = world.some_listing(random, 10)
            assert {r.provider.uuid for r in providers(self.catalog, listing)} == {
                r.provider.uuid for r in providers(rebuilt, listing)
            }

    @invariant()
    def uncommitted_is_unseen(self) -> None:
        """The catalog contains the providers of the last commit, without later changes."""
        assert set(self.catalog.places) == self.committed


Upkeep.TestCase.settings = settings(
    max_examples=300, stateful_step_count=30, deadline=None, derandomize=True, database=None
)
TestUpkeep = Upkeep.TestCase


def summarized(answer: CandidateAnswer) -> set[ProviderId]:
    """Return the providers of an answer's summaries."""
    return {record.provider.uuid for record in answer.summaries}
