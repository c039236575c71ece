"""What a claim may choose from: the candidates there are, in the order that was asked for."""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import SHARING_TRAIT, Inventory
from moorage.core.ledger.requests import Candidate, CandidateQuery, Group, Order, Preference
from moorage.core.ledger.search import Catalog, claim_choice
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.catalog.summaries import Gauge
from moorage.core.ledger.search.tree_preference import Rows
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder
from tests.core.ledger.search.naive import Records, naive_candidates
from tests.core.ledger.search.whole import candidates, preferred

PREFERENCES: tuple[Preference, ...] = ("random", "pack", "spread")


def chosen(builder: Builder, group: Group, order: Order, wanted: int = 10) -> list[str]:
    """Return the providers of the candidates, one each, in their order."""
    answer = preferred(builder.catalog, CandidateQuery((group,)), order, wanted)
    return [name for candidate in answer.candidates for name in candidate.allocations]


@pytest.mark.parametrize("seed", range(10))
def test_preferred_are_candidates(seed: int) -> None:
    """Every one is a candidate, none comes twice, and there is one whenever there are any."""
    answered = 0
    for number in range(100):
        random = Random(f"preferred/{seed}/{number}")
        records = world.some_fleet(random, random.randint(1, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        query = world.some_query(random, len(records))
        order = Order(random.choice(PREFERENCES), random.randint(0, 99))
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
    """Who packs gets the fullest first, who spreads the emptiest."""
    one = Group("", {"VCPU": 1})
    assert chosen(rack(), one, Order("pack")) == ["nearly", "half", "empty"]
    assert chosen(rack(), one, Order("spread")) == ["empty", "half", "nearly"]
    assert chosen(rack(), one, Order("pack"), 1) == ["nearly"]
    assert chosen(rack(), Group("", {"VCPU": 2}), Order("pack")) == ["half", "empty"]


def test_fullness_counts_the_whole_tree_and_the_classes_asked_for() -> None:
    """What is used elsewhere in the tree counts, what is used of other classes does not."""
    builder = Builder()
    for name, used, disk in (("a", 1, 0), ("b", 3, 0), ("c", 0, 9)):
        builder.add(name, DISK_GB=Inventory(10, used=disk))
        builder.add(f"{name}0", name, VCPU=Inventory(4, used=used))
        builder.add(f"{name}1", name, VCPU=Inventory(4, used=4))
    one = Group("", {"VCPU": 1})
    assert chosen(builder, one, Order("pack")) == ["b0", "a0", "c0"]
    assert chosen(builder, one, Order("spread")) == ["c0", "a0", "b0"]


def test_chance_depends_on_the_seed_alone() -> None:
    """The same seed gives the same order; over many seeds everybody is the first about as often."""
    one = Group("", {"VCPU": 1})
    firsts = [chosen(rack(), one, Order("random", seed))[0] for seed in range(300)]
    assert firsts == [chosen(rack(), one, Order("random", seed))[0] for seed in range(300)]
    assert all(firsts.count(name) > 70 for name in ("half", "empty", "nearly"))


def test_one_tree_does_not_fill_the_offer() -> None:
    """Of one tree only a few candidates are given, however many it has, so that others are, too."""
    builder = Builder()
    for host in "abc":
        builder.add(host)
        for number in range(8):
            builder.add(f"{host}{number}", host, VCPU=1)
    found = chosen(builder, Group("", {"VCPU": 1}), Order("pack"), 10)
    assert sorted(name[0] for name in found) == [*"aaaabbbbcc"]


def test_a_search_given_up_says_so() -> None:
    """When the steps are used up before anything was found, the answer is not exhausted."""
    builder = Builder()
    builder.add("host")
    for number in range(6):
        builder.add(f"p{number}", "host", VCPU=1, traits="X" if number else "X Y")
    groups = tuple(Group(f"_{n}", {"VCPU": 1}) for n in range(6))
    query = CandidateQuery(groups, same_subtree=(frozenset({"_0", "_1"}),))
    answer = preferred(builder.catalog, query, Order(), 5, steps_max=3)
    assert answer.candidates == [] and not answer.exhausted


def fullness(records: Records, root: ProviderId, classes: set[str]) -> float:
    """Return how full a tree is, class by class, from nothing but the records."""
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
    """Up to `WHOLE_MAX` chunks the trees come strictly by fullness, as brute force has them."""
    opened: list[ProviderId] = []
    opens = Search.open

    def noted(self: Search, chunk: Chunk, anchor: int) -> Iterator[Candidate]:
        opened.append(chunk.record(anchor).provider.uuid)
        return opens(self, chunk, anchor)

    monkeypatch.setattr(Search, "open", noted)
    compared = 0
    for number in range(40):
        random = Random(f"exact/{seed}/{number}")
        records = world.some_fleet(random, random.randint(2, 16))
        catalog = world.fleet_of(records, random.choice((1, 2, 4)))
        assert len(catalog.chunks) <= claim_choice.WHOLE_MAX
        query = world.some_query(random, len(records))
        classes = {name for group in query.groups for name in group.resources}
        # Sharing providers give to trees that are not theirs: then a candidate does not tell whose.
        sharing = any(SHARING_TRAIT in record.tags.traits for record in records.values())
        roots = {
            records[next(iter(each))[0]].provider.root
            for each, _ in naive_candidates(records, query)
        }
        for preference, sign in (("pack", -1.0), ("spread", 1.0)):
            opened.clear()
            preferred(catalog, query, Order(preference), 1_000)  # type: ignore[arg-type] # one of the two
            told = [sign * fullness(records, root, classes) for root in opened]
            where = f"exact/{seed}/{number}: {query}"
            assert told == pytest.approx(sorted(told)), where
            assert len(set(opened)) == len(opened), where
            assert sharing or roots <= set(opened), where
        compared += len(opened) > 1
    assert compared > 3


def racks(hosts: int, used: Callable[[int], int], chunk_rows: int = 8) -> Catalog:
    """Return hosts of 100 units of two classes, of each of which so much is used."""
    changes = Changes()
    for number in range(hosts):
        provider = world.lone(number).provider
        changes.providers[provider.uuid] = provider
        for name in ("VCPU", "DISK_GB"):
            changes.inventories[provider.uuid, name] = Inventory(100, used=used(number))
    catalog = world.empty_fleet(chunk_rows)
    catalog.apply(changes)
    assert len(catalog.chunks) > 4 * claim_choice.WHOLE_MAX
    return catalog


def looked_into(monkeypatch: pytest.MonkeyPatch) -> list[Chunk]:
    """Return a list of the chunks that are looked into from now on."""
    seen: list[Chunk] = []
    sieve = Search.anchor_rows

    def noted(self: Search, chunk: Chunk) -> Rows:
        seen.append(chunk)
        return sieve(self, chunk)

    monkeypatch.setattr(Search, "anchor_rows", noted)
    return seen


FOUR = CandidateQuery((Group("", {"VCPU": 4, "DISK_GB": 4}),))


def test_packing_finds_the_one_host_that_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among full hosts with a little left, and empty ones, the begun one is found by the bounds."""
    catalog = racks(1_000, lambda number: 98 if number < 600 else 40 * (number == 777))
    seen = looked_into(monkeypatch)
    for preference, first in (("pack", 777), ("spread", 600)):
        seen.clear()
        found = preferred(catalog, FOUR, Order(preference), 1).candidates  # type: ignore[arg-type] # one of the two
        assert [*found[0].allocations] == [world.uuid_of(first)]
        assert len(seen) == 1
    # It is filled: the bounds of its chunk fall when they are met again.
    uuid = world.uuid_of(777)
    full = {(uuid, name): Inventory(100, used=99) for name in ("VCPU", "DISK_GB")}
    catalog.apply(Changes(inventories=full))
    assert [*preferred(catalog, FOUR, Order("pack"), 1).candidates[0].allocations] != [uuid]
    assert catalog.differences(catalog) == []


@pytest.mark.parametrize("preference", PREFERENCES)
def test_few_chunks_are_looked_into(
    preference: Preference, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where bounds tell nothing, and where one host in 100 fits, it is so many and no more."""
    random = Random("few")
    seen = looked_into(monkeypatch)
    for catalog in (
        racks(2_000, lambda number: random.randint(0, 95)),
        racks(2_000, lambda number: 50 if number % 100 == 7 else 99),
    ):
        for wanted in (1, 10):
            seen.clear()
            answer = preferred(catalog, FOUR, Order(preference, wanted), wanted)
            assert answer.candidates
            assert len(seen) == len(set(seen)) <= claim_choice.CHUNKS_MAX + wanted


def test_one_question_does_not_pay_for_all_that_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a release everywhere a question makes few bounds exact, and the next ones go on."""
    catalog = racks(2_000, lambda number: 90 - number % 7)
    keys = [(uuid, name) for uuid in catalog.places for name in ("VCPU", "DISK_GB")]
    for first in range(0, len(keys), 10):
        catalog.apply(
            Changes(inventories={key: Inventory(100, used=10) for key in keys[first : first + 10]})
        )
    monkeypatch.setattr(claim_choice, "TIGHTENED_MAX", 5)
    tightens, counted = Gauge.tighten, Counter[str]()

    def noted(self: Gauge, slot: int, highest: bool) -> None:
        counted["tightened"] += 1
        tightens(self, slot, highest)

    monkeypatch.setattr(Gauge, "tighten", noted)
    every = 2 * len(catalog.chunks)
    for _ in range(len(catalog.chunks)):
        counted.clear()
        assert preferred(catalog, FOUR, Order("pack"), 3).candidates
        assert counted["tightened"] <= 2 * claim_choice.TIGHTENED_MAX < every
    assert not counted["tightened"]
    assert catalog.differences(catalog) == []


@pytest.mark.parametrize("preference", PREFERENCES)
def test_what_only_one_host_can_serve_is_found(preference: Preference) -> None:
    """However misleading the summaries are, the answer is empty only if nothing fits."""
    changes = Changes()
    for number in range(1_000):
        provider = world.lone(number).provider
        changes.providers[provider.uuid] = provider
        for name, full in (("VCPU", number % 2), ("DISK_GB", 1 - number % 2)):
            used = 100 * full if number != 555 else 0
            changes.inventories[provider.uuid, name] = Inventory(100, used=used)
    catalog = world.empty_fleet(chunk_rows=8)
    catalog.apply(changes)
    found = preferred(catalog, FOUR, Order(preference, 3), 5)
    assert [[*each.allocations] for each in found.candidates] == [[world.uuid_of(555)]]
    assert preferred(catalog, FOUR, Order(preference, 3), 5) == found


def test_by_chance_every_host_is_as_likely() -> None:
    """Hosts in chunks with few that fit are the first as often as those in chunks with many."""
    fitting = {number for number in range(800) if number < 64 or number % 25 == 3}
    catalog = racks(800, lambda number: 10 if number in fitting else 98)
    rounds = 40 * len(fitting)
    firsts = Counter(
        next(iter(preferred(catalog, FOUR, Order("random", seed), 1).candidates[0].allocations))
        for seed in range(rounds)
    )
    assert firsts.keys() == {world.uuid_of(number) for number in fitting}
    expected = rounds / len(fitting)
    deviation = sum((count - expected) ** 2 / expected for count in firsts.values())
    # Chi square has a mean of n - 1 and a deviation of sqrt(2 (n - 1)).
    freedom = len(fitting) - 1
    assert deviation < freedom + 4 * (2 * freedom) ** 0.5
    # The control: a choice of the chunk before the host is nowhere near that.
    by_chunk = Counter(
        Random(seed).choice([n for n in fitting if n // 7 == chunk])
        for seed in range(rounds)
        for chunk in [Random(-seed - 1).choice(sorted({n // 7 for n in fitting}))]
    )
    crowded = sum((count - expected) ** 2 / expected for count in by_chunk.values())
    assert crowded > freedom + 40 * (2 * freedom) ** 0.5


def test_by_chance_every_host_is_as_likely_where_bounds_are_wide() -> None:
    """Rows that the summaries allow for and that do not fit count for nothing, wherever."""
    changes, fitting = Changes(), set[ProviderId]()
    for number in range(112):
        uuid = world.lone(number).provider.uuid
        changes.providers[uuid] = world.lone(number).provider
        # In every other chunk one host fits; of the others each has room for one of two classes.
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
        next(iter(preferred(catalog, FOUR, Order("random", seed), 1).candidates[0].allocations))
        for seed in range(rounds)
    )
    deviation = sum((firsts[uuid] - 40) ** 2 / 40 for uuid in fitting)
    assert deviation < 63 + 4 * (2 * 63) ** 0.5


def test_a_batch_is_spread_over_several_chunks() -> None:
    """The candidates of a large batch by chance are all different and come from several chunks."""
    catalog = racks(2_000, lambda number: 0, chunk_rows=25)
    found = preferred(catalog, FOUR, Order("random", 7), 136).candidates
    hosts = [next(iter(each.allocations)) for each in found]
    assert len(set(hosts)) == 136
    chunks = Counter(catalog.places[uuid][0].number for uuid in hosts)
    assert len(chunks) >= claim_choice.CHUNKS_WANTED
    assert max(chunks.values()) <= 2 * 136 // claim_choice.CHUNKS_WANTED
