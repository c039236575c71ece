"""Batches like those of the transactor, and a seeded stream of them, for tests of the store."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import apsw

from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger import allocations, inventory, providers, traits_aggregates, vocabulary
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import NO_TAGS, Described
from moorage.store import changelog, check
from moorage.store.api import Engine, Plan
from moorage.store.batch import batch_save
from moorage.store.ledger import load as ledger_load
from moorage.store.ledger import save as ledger_save
from moorage.store.ledger.save import LedgerPart

CLASSES = frozenset({"VCPU", "MEMORY_MB", "DISK_GB"})
TRAITS = frozenset({"HW_CPU_X86_AVX2", "STORAGE_DISK_SSD"})
NOW = Instant(1_700_000_000_000_000)

Decision = Callable[[Facts, Instant], Changes]


def index_load() -> Plan[tuple[int, int, Changes]]:
    """Load the epoch, the revision and everything that an index keeps; for `read_aside`."""
    changes = Changes()

    def taken(providers: list[Described]) -> None:
        for provider, inventories, held in providers:
            changes.providers[provider.uuid] = provider
            for name, offered in inventories.items():
                changes.inventories[provider.uuid, name] = offered
            if held is not NO_TAGS:
                changes.tags[provider.uuid] = held

    snapshot = yield from changelog.snapshot_read(taken)
    changes.classes.update(snapshot.classes)
    changes.traits.update(snapshot.traits)
    return snapshot.epoch, snapshot.revision, changes


def differences_load() -> Plan[list[str]]:
    """Check a database as the service does, but in one snapshot; to be read aside."""
    found = yield from check.file_differences_load()
    for plan in () if found else check.content_plans(CLASSES, TRAITS):
        found += yield from plan
    return found


def provider_id(n: int) -> ProviderId:
    """Return the n-th provider's UUID."""
    return ProviderId(f"{n:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa")


def consumer_id(n: int) -> ConsumerId:
    """Return the n-th consumer's UUID."""
    return ConsumerId(f"{n:08d}-cccc-4ccc-8ccc-cccccccccccc")


def aggregate_id(n: int) -> AggregateId:
    """Return the n-th aggregate's UUID."""
    return AggregateId(f"{n:08d}-dddd-4ddd-8ddd-dddddddddddd")


@dataclass
class Batch:
    """The work of one transaction."""

    keys: Keys
    decisions: list[Decision]


async def run(engine: Engine, batch: Batch, now: Instant = NOW) -> int:
    """Load, decide, save and commit a batch; return its revision."""
    async with engine.transaction() as transaction:
        facts = await transaction.run(ledger_load.facts_load(batch.keys, CLASSES, TRAITS))
        before, merged = ledger_save.before_of(facts), Changes()
        for decide in batch.decisions:
            changes = decide(facts, now)
            facts.apply(changes)
            merged.update(changes)
        saved = await transaction.run(batch_save([LedgerPart(before, merged)], [], now))
        await transaction.commit()
    return 0 if saved is None else saved[1]


async def facts_of(engine: Engine, **keys: set[str]) -> Facts:
    """Load facts outside of a batch."""
    async with engine.transaction() as transaction:
        return await transaction.run(ledger_load.facts_load(Keys(**keys), CLASSES, TRAITS))  # type: ignore[arg-type]  # plain strings stand for ids


def provider_new(n: int, parent: int | None = None, **totals: int) -> Batch:
    """Create the n-th provider, named `name-n`, with inventories of these totals."""
    uuid = provider_id(n)
    above = None if parent is None else provider_id(parent)

    def create(facts: Facts, now: Instant) -> Changes:
        return providers.create(facts, now, uuid, f"name-{n}", above)[0]

    def offer(facts: Facts, now: Instant) -> Changes:
        specs = {name: InventorySpec(total) for name, total in totals.items()}
        return inventory.replace_all(facts, now, uuid, 0, specs, True)[0]

    known = {uuid} if above is None else {uuid, above}
    classes = vocabulary.customs(totals)
    return Batch(
        Keys(providers=known, names={f"name-{n}"}, classes=classes),
        [create, offer] if totals else [create],
    )


def provider_deleted(n: int) -> Batch:
    """Delete the n-th provider."""
    uuid = provider_id(n)
    keys = Keys(providers={uuid}, tags={uuid}, parents={uuid})
    return Batch(keys, [lambda facts, _: providers.delete(facts, uuid)])


def provider_renamed(n: int, name: str) -> Batch:
    """Give the n-th provider another name."""
    uuid = provider_id(n)
    return Batch(
        Keys(providers={uuid}, names={name}),
        [lambda facts, now: providers.update(facts, now, uuid, name, False, None, True)[0]],
    )


def tagged(n: int, traits: set[str], aggregates: set[AggregateId] = frozenset()) -> Batch:  # type: ignore[assignment]  # an empty set that is never changed
    """Give the n-th provider exactly these traits and aggregates."""
    uuid = provider_id(n)

    def give(facts: Facts, now: Instant) -> Changes:
        generation = facts.providers[uuid].generation
        changes = traits_aggregates.replace_traits(facts, now, uuid, generation, frozenset(traits))[
            0
        ]
        facts.apply(changes)
        changes.update(
            traits_aggregates.replace_aggregates(facts, now, uuid, frozenset(aggregates), None)[0]
        )
        return changes

    customs = vocabulary.customs(traits)
    return Batch(Keys(providers={uuid}, tags={uuid}, traits=customs), [give])


def claimed(n: int, amounts: dict[int, dict[str, int]], user: str = "user") -> Batch:
    """Set the n-th consumer's allocations to these amounts, by provider number."""
    wanted = {provider_id(at): dict(on) for at, on in amounts.items()}
    request = ConsumerRequest(consumer_id(n), wanted, "project", user)
    classes = vocabulary.customs(name for of in amounts.values() for name in of)
    return Batch(
        Keys(consumers={consumer_id(n)}, providers=set(wanted), classes=classes),
        [lambda facts, now: allocations.replace_for(facts, now, [request])],
    )


def custom_name_new(resource_class: str | None = None, trait: str | None = None) -> Batch:
    """Create a custom resource class, a custom trait, or both."""
    batch = Batch(Keys(), [])
    if resource_class is not None:
        batch.keys.classes.add(resource_class)
        batch.decisions.append(
            lambda facts, now: vocabulary.class_create(facts, now, resource_class)[0]
        )
    if trait is not None:
        batch.keys.traits.add(trait)
        batch.decisions.append(lambda facts, now: vocabulary.trait_ensure(facts, now, trait)[0])
    return batch


def together(*batches: Batch) -> Batch:
    """Combine several batches into one."""
    whole = Batch(Keys(), [])
    for batch in batches:
        whole.keys.update(batch.keys)
        whole.decisions += batch.decisions
    return whole


def stream(seed: int, providers_count: int = 12) -> Iterator[Batch]:
    """Yield batches endlessly, the same for the same seed: claims, releases, moves, tags."""
    random = Random(seed)
    yield together(
        *(provider_new(n, VCPU=1_000, DISK_GB=1_000) for n in range(providers_count)),
        custom_name_new(trait="CUSTOM_FAST"),
    )
    holders: list[int] = []
    fresh = 0
    while True:
        parts = []
        for _ in range(random.randint(1, 5)):
            at = random.sample(range(providers_count), random.randint(1, 2))
            parts.append(
                claimed(fresh, {n: {"VCPU": 1, "DISK_GB": random.randint(1, 9)} for n in at})
            )
            holders.append(fresh)
            fresh += 1
        if len(holders) > 20:
            for _ in range(random.randint(1, 6)):
                parts.append(claimed(holders.pop(random.randrange(len(holders))), {}))
        if random.random() < 0.3:
            traits = {"CUSTOM_FAST"} if random.random() < 0.5 else {"STORAGE_DISK_SSD"}
            at_one = random.randrange(providers_count)
            parts.append(tagged(at_one, traits, {aggregate_id(random.randrange(3))}))
        yield together(*parts)


TABLES = "provider provider_tags consumer holder resource_class trait clock change"


def digest(connection: apsw.Connection) -> tuple[int, str]:
    """Return the revision, and a hash of all rows of the ledger."""
    content = hashlib.sha256()
    for table in TABLES.split():
        rows = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
        content.update(repr(rows).encode())
    ((revision,),) = connection.execute("SELECT revision FROM clock").fetchall()
    return int(str(revision)), content.hexdigest()
