"""Random small catalogs and queries from a seeded generator, for comparisons with models."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import SHARING_TRAIT, Inventory, Provider, ProviderRecord, Tags
from moorage.core.ledger.requests import (
    AggregateFilter,
    Candidate,
    CandidateQuery,
    Group,
    ProviderQuery,
    Start,
    TraitFilter,
)
from moorage.core.ledger.search import Catalog
from tests.core.ledger.search.naive import Plain, Records

T = TypeVar("T")

CLASSES = ("VCPU", "DISK_GB", "CUSTOM_NIC")
TRAITS = ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C")
AGGREGATES = tuple(AggregateId(f"a0000000-0000-4000-8000-00000000000{n}") for n in range(3))
STANDARD_CLASSES = frozenset({"VCPU", "DISK_GB"})
STANDARD_TRAITS = frozenset({SHARING_TRAIT})


def uuid_of(number: int) -> ProviderId:
    """Return the UUID of provider `number`."""
    return ProviderId(f"{number:08x}-0000-4000-8000-000000000000")


def empty_fleet(chunk_rows: int = 4) -> Catalog:
    """Return an empty catalog; its chunks are so small that a few providers need several."""
    return Catalog(STANDARD_CLASSES, STANDARD_TRAITS, chunk_rows)


def fleet_of(records: Records, chunk_rows: int = 4) -> Catalog:
    """Return a catalog of these records, as if it was loaded from a snapshot."""
    catalog = empty_fleet(chunk_rows)
    catalog.apply(changes_of(records))
    return catalog


def changes_of(records: Records) -> Changes:
    """Return the changes that create these records."""
    changes = Changes()
    for uuid, record in records.items():
        changes.providers[uuid] = record.provider
        changes.tags[uuid] = record.tags
        for name, inventory in record.inventories.items():
            changes.inventories[uuid, name] = inventory
    return changes


def plain(candidate: Candidate) -> Plain:
    """Return a candidate as a hashable value."""
    return (
        frozenset((u, frozenset(given.items())) for u, given in candidate.allocations.items()),
        frozenset((suffix, frozenset(us)) for suffix, us in candidate.mappings.items()),
    )


def single_provider(number: int) -> ProviderRecord:
    """Return a root provider without inventories and tags."""
    uuid, now = uuid_of(number), Instant(number)
    provider = Provider(uuid, f"name-{number}", 0, None, uuid, now, now)
    return ProviderRecord(provider, {}, Tags(), 0)


def some(random: Random, things: Sequence[T], likely: float) -> frozenset[T]:
    """Return each thing with the probability `likely`."""
    return frozenset(thing for thing in things if random.random() < likely)


def some_inventory(random: Random) -> Inventory:
    """Return an inventory that is often small, often partly used, sometimes over capacity."""
    total = random.choice((1, 2, 4, 4, 8))
    ratio = random.choice((1.0, 1.0, 1.0, 1.5, 0.7, 16.0))
    return Inventory(
        total=total,
        reserved=random.choice((0, 0, 0, 0, 1)),
        min_unit=random.choice((1, 1, 1, 1, 1, 2)),
        max_unit=random.choice((1, 2, 4, 100, 100, 100)),
        step_size=random.choice((1, 1, 1, 1, 1, 2)),
        allocation_ratio=ratio,
        used=random.choice((0, 0, 0, 1, total)),
    )


def some_tags(random: Random, sharing: float) -> Tags:
    """Return traits and aggregates; `sharing` is the probability of a sharing provider."""
    traits = some(random, TRAITS, 0.45)
    if random.random() < sharing:
        traits |= {SHARING_TRAIT}
    return Tags(traits, some(random, AGGREGATES, 0.4))


def some_fleet(random: Random, providers: int) -> Records:
    """Return a forest of providers; parents come before their children."""
    records: Records = {}
    uuids: list[ProviderId] = []
    nesting = random.choice((0.0, 0.4, 0.7))
    sharing = random.choice((0.0, 0.15, 0.4))
    offering = random.choice((0.5, 0.8, 1.0))
    for number in range(providers):
        uuid = uuid_of(number)
        parent = random.choice(uuids) if uuids and random.random() < nesting else None
        root = uuid if parent is None else records[parent].provider.root
        now = Instant(number)
        provider = Provider(uuid, f"name-{number}", 0, parent, root, now, now)
        inventories = {
            name: some_inventory(random) for name in CLASSES if random.random() < offering
        }
        records[uuid] = ProviderRecord(provider, inventories, some_tags(random, sharing), 0)
        uuids.append(uuid)
    return records


def some_traits(random: Random, care: float) -> TraitFilter:
    """Return a condition on traits: none with a `care` of 0, often one with a `care` of 1."""
    required = []
    if random.random() < 0.3 * care:
        required.append(frozenset({random.choice(TRAITS)}))
    if random.random() < 0.2 * care:
        required.append(frozenset(random.sample(TRAITS, 2)))
    few = random.random() < 0.2 * care
    return TraitFilter(tuple(required), frozenset({random.choice(TRAITS)} if few else ()))


def some_aggregates(random: Random, care: float) -> AggregateFilter:
    """Return a condition on aggregates: none with a `care` of 0, often one with a `care` of 1."""
    member_of = []
    if random.random() < 0.25 * care:
        member_of.append(frozenset({random.choice(AGGREGATES)}))
    if random.random() < 0.1 * care:
        member_of.append(frozenset(random.sample(AGGREGATES, 2)))
    few = random.random() < 0.25 * care
    return AggregateFilter(tuple(member_of), frozenset({random.choice(AGGREGATES)} if few else ()))


def some_amounts(random: Random, most: int) -> dict[str, int]:
    """Return amounts of one to `most` classes."""
    names = random.sample(CLASSES, random.randint(1, most))
    return {name: random.choice((1, 1, 1, 1, 1, 2, 2, 4)) for name in names}


def some_group(
    random: Random, suffix: str, resources: dict[str, int], providers: int, care: float
) -> Group:
    """Return a request group; its `in_tree`, if any, may be an unknown provider."""
    in_tree = uuid_of(random.randint(0, providers)) if random.random() < 0.15 * care else None
    return Group(
        suffix, resources, some_traits(random, care), some_aggregates(random, care), in_tree
    )


def some_query(random: Random, providers: int) -> CandidateQuery:
    """Return a query for candidates."""
    care = random.choice((0.0, 0.2, 0.4, 1.0))
    groups = []
    if random.random() < 0.7:
        groups.append(some_group(random, "", some_amounts(random, 3), providers, care))
    suffixes = [f"_{letter}" for letter in "ABC"[: random.choice((0, 1, 1, 2, 2, 3))]]
    if not groups and not suffixes:
        suffixes = ["_A"]
    subtrees = [
        frozenset(random.sample(suffixes, random.randint(1, len(suffixes))))
        for _ in range(random.choice((0, 0, 1, 1, 2)))
        if suffixes
    ]
    for suffix in suffixes:
        named = any(suffix in names for names in subtrees)
        empty = named and bool(groups) and random.random() < 0.35
        amounts = {} if empty else some_amounts(random, 2)
        groups.append(some_group(random, suffix, amounts, providers, care))
    return CandidateQuery(
        groups=tuple(groups),
        group_policy=random.choice(("none", "isolate")),
        same_subtree=tuple(subtrees),
        root_traits=some_traits(random, 1.0) if random.random() < 0.35 * care else TraitFilter(),
        nested=random.random() < 0.8,
    )


def some_listing(random: Random, providers: int) -> ProviderQuery:
    """Return a query for providers."""
    number = random.randint(0, providers)
    return ProviderQuery(
        name=f"name-{number}" if random.random() < 0.15 else None,
        uuid=uuid_of(random.choice((number, number, 0))) if random.random() < 0.15 else None,
        in_tree=uuid_of(random.randint(0, providers)) if random.random() < 0.25 else None,
        resources=some_amounts(random, 2) if random.random() < 0.5 else {},
        traits=some_traits(random, 0.7),
        aggregates=some_aggregates(random, 0.7),
    )


def replace_limit(query: CandidateQuery, limit: int) -> CandidateQuery:
    """Return the same query with a limit."""
    return replace(query, limit=limit)


def some_start(random: Random) -> Start:
    """Return a random start, whose chunk and row may be beyond the last."""
    return Start(
        random.randint(0, 9), random.choice((0, 0, random.randint(0, 9))), random.randint(0, 9)
    )
