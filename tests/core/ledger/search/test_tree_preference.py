"""The candidates that a claim gets are right, and in the preferred order."""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import SHARING_TRAIT, Inventory
from moorage.core.ledger.requests import (
    Candidate,
    CandidateOrder,
    CandidateQuery,
    Group,
    Preference,
)
from moorage.core.ledger.search import Catalog, claim_choice
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.catalog.summaries import Gauge
from moorage.core.ledger.search.claim_choice import Rows
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder
from tests.core.ledger.search.naive import Records, naive_candidates
from tests.core.ledger.search.whole import candidates, preferred

PREFERENCES: tuple[Preference, ...] = ("random", "pack", "spread")


def preferred_hosts(
    builder: Builder, group: Group, order: CandidateOrder, wanted: int = 10
) -> list[str]:
    """Return the providers of the candidates in order."""
    answer = preferred(builder.catalog, CandidateQuery((group,)), order, wanted)
    return [name for candidate in answer.candidates for name in candidate.allocations]


@pytest.mark.parametrize("seed", range(10))
def test_preferred_are_candidates(seed: int) -> None:
    """Preferred ones are candidates, without duplicates, and exist if there are candidates."""
    answered = 0
    for number in range(100):
        random = Random(f"preferred/{seed}/{number}")
        records = world.some_fleet(random, random.randint(1, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        query = world.some_query(random, len(records))
        order = CandidateOrder(random.choice(PREFERENCES), random.randint(0, 99))
        wanted = random.randint(1, 12)
        where = f"Random('preferred/{seed}/{number}'), {order}, {wanted}: {query}"
        everything = {world.plain(each) for each in candidates(catalog, query).candidates}
        answer = preferred(catalog, query, order, wanted)
        found = [world.plain(each) for each in answer.candidates]
        assert len(set(found)) == len(found) <= wanted, where
        assert set(found) <= everything, where
        assert bool(found) == bool(everything), where
        assert preferred(catalog, query, order, wanted) == answer, where
        answered += bool(found)
    assert answered > 15


def rack() -> Builder:
    """Return three hosts of 4 units that are half full, empty, and nearly full."""
    builder = Builder()
    for name, used in (("half", 2), ("empty", 0), ("nearly", 3)):
        builder.add(name, VCPU=Inventory(4, used=used))
    return builder


def test_pack_and_spread() -> None:
    """`pack` prefers the fullest hosts, `spread` the emptiest."""
    one = Group("", {"VCPU": 1})
    assert preferred_hosts(rack(), one, CandidateOrder("pack")) == ["nearly", "half", "empty"]
    assert preferred_hosts(rack(), one, CandidateOrder("spread")) == ["empty", "half", "nearly"]
    assert preferred_hosts(rack(), one, CandidateOrder("pack"), 1) == ["nearly"]
    assert preferred_hosts(rack(), Group("", {"VCPU": 2}), CandidateOrder("pack")) == [
        "half",
        "empty",
    ]


def test_fullness_is_of_the_whole_tree_and_the_requested_classes() -> None:
    """Fullness is that of the whole tree, in the requested classes only."""
    builder = Builder()
    for name, used, disk in (("a", 1, 0), ("b", 3, 0), ("c", 0, 9)):
        builder.add(name, DISK_GB=Inventory(10, used=disk))
        builder.add(f"{name}0", name, VCPU=Inventory(4, used=used))
        builder.add(f"{name}1", name, VCPU=Inventory(4, used=4))
    one = Group("", {"VCPU": 1})
    assert preferred_hosts(builder, one, CandidateOrder("pack")) == ["b0", "a0", "c0"]
    assert preferred_hosts(builder, one, CandidateOrder("spread")) == ["c0", "a0", "b0"]


def test_random_order_depends_only_on_the_seed() -> None:
    """Equal seeds give equal orders; over many seeds each host is the first equally often."""
    one = Group("", {"VCPU": 1})
    firsts = [
        preferred_hosts(rack(), one, CandidateOrder("random", seed))[0] for seed in range(300)
    ]
    assert firsts == [
        preferred_hosts(rack(), one, CandidateOrder("random", seed))[0] for seed in range(300)
    ]
    assert all(firsts.count(name) > 70 for name in ("half", "empty", "nearly"))


def test_the_candidates_of_one_tree_are_bounded() -> None:
    """The number of candidates per tree is bounded, so that other trees are offered, too."""
    builder = Builder()
    for host in "abc":
        builder.add(host)
        for number in range(8):
            builder.add(f"{host}{number}", host, VCPU=1)
    found = preferred_hosts(builder, Group("", {"VCPU": 1}), CandidateOrder("pack"), 10)
    assert sorted(name[0] for name in found) == [*"aaaabbbbcc"]


def test_a_search_that_gives_up_is_not_exhausted() -> None:
    """If the steps are used up before a candidate is found, the answer is not exhausted."""
    builder = Builder()
    builder.add("host")
    for number in range(6):
        builder.add(f"p{number}", "host", VCPU=1, traits="X" if number else "X Y")
    groups = tuple(Group(f"_{n}", {"VCPU": 1}) for n in range(6))
    query = CandidateQuery(groups, same_subtree=(frozenset({"_0", "_1"}),))
    answer = preferred(builder.catalog, query, CandidateOrder(), 5, steps_max=3)
    assert answer.candidates == [] and not answer.exhausted


def fullness(records: Records, root: ProviderId, classes: set[str]) -> float:
    """Return the sum over classes of the used share of a tree, from the records."""
    total = 0.0
    for name in sorted(classes):
        used = capacity = 0.0
        for record in records.values():
            if record.provider.root == root and name in record.inventories:
                held = record.inventories[name]
                used += held.used
                capacity += (held.total - held.reserved) * held.allocation_ratio
        total += used / max(capacity, 1.0)
    return total


@pytest.mark.parametrize("seed", range(8))
def test_the_order_is_exact_in_few_chunks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In up to `WHOLE_MAX` chunks, trees are opened strictly by fullness."""
    opened: list[ProviderId] = []
    opens = Search.open

    def recorded(self: Search, chunk: Chunk, anchor: int) -> Iterator[Candidate]:
        opened.append(chunk.record(anchor).provider.uuid)
        return opens(self, chunk, anchor)

    monkeypatch.setattr(Search, "open", recorded)
    compared = 0
    for number in range(40):
        random = Random(f"exact/{seed}/{number}")
        records = world.some_fleet(random, random.randint(2, 16))
        catalog = world.fleet_of(records, random.choice((1, 2, 4)))
        assert len(catalog.chunks) <= claim_choice.WHOLE_MAX
        query = world.some_query(random, len(records))
        classes = {name for group in query.groups for name in group.resources}
        # A candidate of sharing providers does not show which tree it was found in.
        sharing = any(SHARING_TRAIT in record.tags.traits for record in records.values())
        roots = {
            records[next(iter(each))[0]].provider.root
            for each, _ in naive_candidates(records, query)
        }
        for preference, sign in (("pack", -1.0), ("spread", 1.0)):
            opened.clear()
            preferred(catalog, query, CandidateOrder(preference), 1_000)  # type: ignore[arg-type] # one of the two
            order = [sign * fullness(records, root, classes) for root in opened]
            where = f"exact/{seed}/{number}: {query}"
            assert order == pytest.approx(sorted(order)), where
            assert len(set(opened)) == len(opened), where
            assert sharing or roots <= set(opened), where
        compared += len(opened) > 1
    assert compared > 3


def catalog_of_hosts(hosts: int, used: Callable[[int], int], chunk_rows: int = 8) -> Catalog:
    """Return hosts with 100 units of two classes, of which `used` returns the used amount."""
    changes = Changes()
    for number in range(hosts):
        provider = world.single_provider(number).provider
        changes.providers[provider.uuid] = provider
        for name in ("VCPU", "DISK_GB"):
            changes.inventories[provider.uuid, name] = Inventory(100, used=used(number))
    catalog = world.empty_fleet(chunk_rows)
    catalog.apply(changes)
    assert len(catalog.chunks) > 4 * claim_choice.WHOLE_MAX
    return catalog


def searched_chunks(monkeypatch: pytest.MonkeyPatch) -> list[Chunk]:
    """Return a list to which every chunk is added that is searched from now on."""
    seen: list[Chunk] = []
    sieve = Search.anchor_rows

    def recorded(self: Search, chunk: Chunk) -> Rows:
        seen.append(chunk)
        return sieve(self, chunk)

    monkeypatch.setattr(Search, "anchor_rows", recorded)
    return seen


FOUR = CandidateQuery((Group("", {"VCPU": 4, "DISK_GB": 4}),))


def test_packing_finds_the_one_partly_used_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds lead to the one partly used host among nearly full and empty ones."""
    catalog = catalog_of_hosts(1_000, lambda number: 98 if number < 600 else 40 * (number == 777))
    seen = searched_chunks(monkeypatch)
    for preference, first in (("pack", 777), ("spread", 600)):
        seen.clear()
        found = preferred(catalog, FOUR, CandidateOrder(preference), 1).candidates  # type: ignore[arg-type] # one of the two
        assert [*found[0].allocations] == [world.uuid_of(first)]
        assert len(seen) == 1
    # Once it is full, the bounds of its chunk are lowered by the next search.
    uuid = world.uuid_of(777)
    full = {(uuid, name): Inventory(100, used=99) for name in ("VCPU", "DISK_GB")}
    catalog.apply(Changes(inventories=full))
    assert [*preferred(catalog, FOUR, CandidateOrder("pack"), 1).candidates[0].allocations] != [
        uuid
    ]
    assert catalog.differences(catalog) == []


@pytest.mark.parametrize("preference", PREFERENCES)
def test_few_chunks_are_searched(preference: Preference, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of searched chunks is bounded even if the summaries do not help."""
    random = Random("few")
    seen = searched_chunks(monkeypatch)
    for catalog in (
        catalog_of_hosts(2_000, lambda number: random.randint(0, 95)),
        catalog_of_hosts(2_000, lambda number: 50 if number % 100 == 7 else 99),
    ):
        for wanted in (1, 10):
            seen.clear()
            answer = preferred(catalog, FOUR, CandidateOrder(preference, wanted), wanted)
            assert answer.candidates
            assert len(seen) == len(set(seen)) <= claim_choice.CHUNKS_MAX + wanted


def test_one_search_tightens_few_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After releases everywhere, each search tightens only a few bounds."""
    catalog = catalog_of_hosts(2_000, lambda number: 90 - number % 7)
    keys = [(uuid, name) for uuid in catalog.places for name in ("VCPU", "DISK_GB")]
    for first in range(0, len(keys), 10):
        catalog.apply(
            Changes(inventories={key: Inventory(100, used=10) for key in keys[first : first + 10]})
        )
    monkeypatch.setattr(claim_choice, "TIGHTENED_MAX", 5)
    tightens, counted = Gauge.tighten, Counter[str]()

    def recorded(self: Gauge, slot: int, highest: bool) -> None:
        counted["tightened"] += 1
        tightens(self, slot, highest)

    monkeypatch.setattr(Gauge, "tighten", recorded)
    every = 2 * len(catalog.chunks)
    for _ in range(len(catalog.chunks)):
        counted.clear()
        assert preferred(catalog, FOUR, CandidateOrder("pack"), 3).candidates
        assert counted["tightened"] <= 2 * claim_choice.TIGHTENED_MAX < every
    assert not counted["tightened"]
    assert catalog.differences(catalog) == []


@pytest.mark.parametrize("preference", PREFERENCES)
def test_the_only_fitting_host_is_found(preference: Preference) -> None:
    """The answer is empty only if nothing fits, however misleading the summaries are."""
    changes = Changes()
    for number in range(1_000):
        provider = world.single_provider(number).provider
        changes.providers[provider.uuid] = provider
        for name, full in (("VCPU", number % 2), ("DISK_GB", 1 - number % 2)):
            used = 100 * full if number != 555 else 0
            changes.inventories[provider.uuid, name] = Inventory(100, used=used)
    catalog = world.empty_fleet(chunk_rows=8)
    catalog.apply(changes)
    found = preferred(catalog, FOUR, CandidateOrder(preference, 3), 5)
    assert [[*each.allocations] for each in found.candidates] == [[world.uuid_of(555)]]
    assert preferred(catalog, FOUR, CandidateOrder(preference, 3), 5) == found


def test_random_hosts_are_equally_likely() -> None:
    """With `random`, the number of fitting hosts in a chunk does not change their chances."""
    fitting = {number for number in range(800) if number < 64 or number % 25 == 3}
    catalog = catalog_of_hosts(800, lambda number: 10 if number in fitting else 98)
    rounds = 40 * len(fitting)
    firsts = Counter(
        next(
            iter(
                preferred(catalog, FOUR, CandidateOrder("random", seed), 1)
                .candidates[0]
                .allocations
            )
        )
        for seed in range(rounds)
    )
    assert firsts.keys() == {world.uuid_of(number) for number in fitting}
    expected = rounds / len(fitting)
    deviation = sum((count - expected) ** 2 / expected for count in firsts.values())
    # Chi square has a mean of n - 1 and a deviation of sqrt(2 (n - 1)).
    freedom = len(fitting) - 1
    assert deviation < freedom + 4 * (2 * freedom) ** 0.5
    # A choice of the chunk first and of the host second would fail this test.
    by_chunk = Counter(
        Random(seed).choice([n for n in fitting if n // 7 == chunk])
        for seed in range(rounds)
        for chunk in [Random(-seed - 1).choice(sorted({n // 7 for n in fitting}))]
    )
    crowded = sum((count - expected) ** 2 / expected for count in by_chunk.values())
    assert crowded > freedom + 40 * (2 * freedom) ** 0.5


def test_random_hosts_are_equally_likely_with_wide_bounds() -> None:
    """Rows that the summaries allow but that do not fit do not change the chances."""
    changes, fitting = Changes(), set[ProviderId]()
    for number in range(112):
        uuid = world.single_provider(number).provider.uuid
        changes.providers[uuid] = world.single_provider(number).provider
        # In every other chunk only one host fits; the others have room for one of two classes.
        is_full = number % 7 and not number // 7 % 2
        lacks = ("VCPU" if number % 2 else "DISK_GB") if is_full else ""
        fitting |= set() if lacks else {uuid}
        for name in ("VCPU", "DISK_GB"):
            changes.inventories[uuid, name] = Inventory(100, used=98 if name == lacks else 10)
    catalog = world.empty_fleet(chunk_rows=8)
    catalog.apply(changes)
    assert len(catalog.chunks) == 16 and len(fitting) == 64
    rounds = 40 * len(fitting)
    firsts = Counter(
        next(
            iter(
                preferred(catalog, FOUR, CandidateOrder("random", seed), 1)
                .candidates[0]
                .allocations
            )
        )
        for seed in range(rounds)
    )
    deviation = sum((firsts[uuid] - 40) ** 2 / 40 for uuid in fitting)
    assert deviation < 63 + 4 * (2 * 63) ** 0.5


def test_a_batch_is_spread_over_several_chunks() -> None:
    """The random candidates of a large batch are all different and from several chunks."""
    catalog = catalog_of_hosts(2_000, lambda number: 0, chunk_rows=25)
    found = preferred(catalog, FOUR, CandidateOrder("random", 7), 136).candidates
    hosts = [next(iter(each.allocations)) for each in found]
    assert len(set(hosts)) == 136
    chunks = Counter(catalog.places[uuid][0].number for uuid in hosts)
    assert len(chunks) >= claim_choice.CHUNKS_WANTED
    assert max(chunks.values()) <= 2 * 136 // claim_choice.CHUNKS_WANTED
