"""Answers offer all trees in turn, even while the catalog changes."""

from collections import Counter
from collections.abc import Callable, Iterator
from math import ceil
from random import Random

import pytest
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Inventory, Provider, Tags
from moorage.core.ledger.requests import CandidateAnswer, CandidateOrder, CandidateQuery, Start
from moorage.core.ledger.search import Catalog, budget, preferring, searched
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CANDIDATES_MAX
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import SHARING, Builder, group
from tests.core.ledger.search.changing import ConcurrentWriter, is_steady, is_unchanged
from tests.core.ledger.search.naive import Plain, Records, naive_by_anchor, naive_candidates
from tests.core.ledger.search.whole import candidates, to_end

FLEETS = 60


def anchors_of(answer: CandidateAnswer) -> Counter[str]:
    """Return the number of candidates by tree, for catalogs without sharing providers."""
    roots = {record.provider.uuid: record.provider.root for record in answer.summaries}
    return Counter(roots[next(iter(each.allocations))] for each in answer.candidates)


def hosts_with_ports(hosts: int, ports: int) -> Builder:
    """Return hosts with this number of one-unit ports each."""
    builder = Builder()
    for host in range(hosts):
        builder.add(f"host{host}")
        for port in range(ports):
            builder.add(f"host{host}port{port}", f"host{host}", NIC=1)
    return builder


THREE_PORTS = tuple(group(f"_{number}", NIC=1) for number in range(3))


def test_a_limit_spreads_over_all_hosts() -> None:
    """Of 40 hosts with 1,320 combinations each, an answer of 1,000 has 25 candidates per host."""
    builder = hosts_with_ports(40, 12)
    start = Start(0, 0, 17)
    query = CandidateQuery(THREE_PORTS, group_policy="isolate", limit=1000)
    for _ in range(3):
        answer = candidates(builder.catalog, query, start)
        assert anchors_of(answer) == {f"host{number}": 25 for number in range(40)}
        start = answer.then


def test_an_empty_catalog_gives_nothing_from_any_start() -> None:
    """A search of an empty catalog, which has no chunks, finds nothing from any start."""
    query = CandidateQuery((group(VCPU=1),))
    for start in (Start(), Start(3, 5, 7)):
        answer = candidates(Builder().catalog, query, start)
        assert (answer.candidates, answer.summaries, answer.exhausted) == ([], [], True)


def test_small_limits_reach_all_hosts() -> None:
    """Consecutive answers offer all hosts, even if the limit is below their number."""
    builder = hosts_with_ports(40, 12)
    start, seen = Start(5, 3, 1), Counter[str]()
    query = CandidateQuery(THREE_PORTS, group_policy="isolate", limit=16)
    for _ in range(5):
        answer = candidates(builder.catalog, query, start)
        assert len(answer.candidates) == 16
        seen += anchors_of(answer)
        start = answer.then
    assert seen == {f"host{number}": 2 for number in range(40)}


def test_random_starts_are_spread_over_few_fitting_hosts() -> None:
    """If 8 hosts in 2 of 20 chunks fit, random starts make each the first equally often."""
    changes = Changes()
    fitting = {*range(35, 42), 77}
    for number in range(140):
        provider = world.single_provider(number).provider
        changes.providers[provider.uuid] = provider
        used = 0 if number in fitting else 8
        changes.inventories[provider.uuid, "VCPU"] = Inventory(8, used=used)
    catalog = world.empty_fleet(chunk_rows=8)
    catalog.apply(changes)
    assert len(catalog.chunks) == 20
    query = CandidateQuery((group(VCPU=1),), limit=1)
    random, firsts = Random("spread"), Counter[str]()
    for _ in range(800):
        start = Start(random.getrandbits(32), 0, 1 + random.getrandbits(31))
        firsts.update([*candidates(catalog, query, start).candidates[0].allocations])
    assert firsts.keys() == {world.uuid_of(number) for number in fitting}
    # 100 each are expected, with a deviation of less than 10.
    assert all(60 < count < 140 for count in firsts.values()), firsts


def random_queries(seed: str) -> Iterator[tuple[str, Random, Records, CandidateQuery]]:
    """Yield catalogs with queries, and descriptions that reproduce them."""
    for number in range(FLEETS):
        random = Random(f"{seed}/{number}")
        records = world.some_fleet(random, random.randint(4, 11))
        for question in range(8):
            query = world.some_query(random, len(records))
            yield f"Random('{seed}/{number}'), question {question}: {query}", random, records, query


@pytest.mark.parametrize("seed", range(6))
def test_every_fitting_tree_is_offered_in_turn(seed: int) -> None:
    """Every tree with a candidate is offered within ceil(trees / limit) consecutive answers."""
    judged = 0
    for where, random, records, query in random_queries(f"turn/{seed}"):
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        expected = naive_by_anchor(records, query)
        limit, start = random.randint(1, 3), world.some_start(random)
        cut = world.replace_limit(query, limit)
        offered: set[Plain] = set()
        for _ in range(ceil(len(expected) / limit)):
            answer = candidates(catalog, cut, start)
            offered |= {world.plain(each) for each in answer.candidates}
            start = answer.then
        assert all(offered & theirs for theirs in expected.values()), where
        judged += len(expected) > limit
    assert judged > FLEETS // 6


@pytest.mark.parametrize("seed", range(4))
def test_candidates_are_spread_evenly_over_trees(seed: int) -> None:
    """If a limit cuts, no tree has two candidates more than one with further candidates."""
    judged = 0
    for where, random, mixed, query in random_queries(f"level/{seed}"):
        records = {
            uuid: replace(record, tags=replace(record.tags, traits=record.tags.traits - {SHARING}))
            for uuid, record in mixed.items()
        }
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        expected = naive_by_anchor(records, query)
        limit = random.randint(2, 9)
        answer = candidates(catalog, world.replace_limit(query, limit), world.some_start(random))
        given = anchors_of(answer)
        hungry = [given[root] for root, theirs in expected.items() if given[root] < len(theirs)]
        assert not hungry or min(hungry) >= max(given.values()) - 1, where
        judged += bool(hungry) and len(expected) > 1
    assert judged > 3


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_an_answer_is_capped_as_by_a_limit(most: int) -> None:
    """The cap applies without a limit or with a higher one, and only then sets `capped`."""
    builder = hosts_with_ports(3, 4)
    query = CandidateQuery(THREE_PORTS, group_policy="isolate")
    everything = candidates(builder.catalog, query)
    assert len(everything.candidates) == 72 and not everything.capped
    for limit in (None, 1, 7, 100):
        answer = candidates(builder.catalog, replace(query, limit=limit), Start(), most)
        assert len(answer.candidates) == min(most, limit or 72, 72)
        assert answer.capped == (most < 72 and most < (limit or 72))
        assert max(anchors_of(answer).values()) - min(anchors_of(answer).values()) <= 1


def test_closed_anchors_are_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With bounded memory for open anchors, all candidates are still found once."""
    builder = hosts_with_ports(12, 4)
    query = CandidateQuery(THREE_PORTS, group_policy="isolate")
    expected = {world.plain(each) for each in candidates(builder.catalog, query).candidates}
    monkeypatch.setattr("moorage.core.ledger.search.candidates.OPENING_STEPS_MAX", 50)
    for start in (Start(), Start(0, 0, 5)):
        found = candidates(builder.catalog, query, start).candidates
        assert len(found) == len(expected) == 12 * 24
        assert {world.plain(each) for each in found} == expected
    cut = candidates(builder.catalog, replace(query, limit=12))
    assert len(anchors_of(cut)) == 12


def test_an_empty_catalog_is_searched_from_any_start() -> None:
    """All providers may have been deleted since the search that returned the start."""
    query = CandidateQuery((group("", VCPU=1),))
    for start in (Start(), Start(1, 0, 5)):
        assert candidates(Builder().catalog, query, start).candidates == []


@pytest.mark.parametrize("pause", range(1, 6))
def test_a_provider_that_joins_an_aggregate_occurs_once(
    pause: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sharing provider that joins an aggregate is still only one candidate."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)
    builder = Builder(chunk_rows=1)
    builder.add("shared", traits=SHARING, DISK_GB=10)
    builder.add("host1", aggregates="rack", DISK_GB=10)
    builder.add("host2", aggregates="rack", DISK_GB=10)
    search = searched(builder.catalog, CandidateQuery((group(DISK_GB=1),)), Start(), CANDIDATES_MAX)
    for _ in range(pause):
        next(search)
    tags = Tags(frozenset({SHARING}), frozenset({AggregateId("rack")}))
    builder.catalog.apply(Changes(tags={ProviderId("shared"): tags}))
    answer = to_end(search)
    assert sorted(answer.picks) == [("host1",), ("host2",), ("shared",)]


@pytest.mark.parametrize("pause", range(1, 5))
@pytest.mark.parametrize("moved", [False, True])
def test_in_tree_is_checked_again_after_a_move(
    pause: int, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sharing provider is checked again if the provider named by `in_tree` moves."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)

    def found(work: Callable[[Catalog, CandidateQuery], Steps[CandidateAnswer]]) -> list[object]:
        builder = Builder(chunk_rows=1)
        builder.add("shared", traits=SHARING, aggregates="rack", NIC=8)
        builder.add("host", aggregates="rack", VCPU=8)
        if moved:
            builder.add("marked", "shared")
        demanding = replace(group(VCPU=1, NIC=1), in_tree=ProviderId("marked"))
        search = work(builder.catalog, CandidateQuery((demanding,)))
        for _ in range(pause):
            if next(search, search) is search:
                return []
        marked, host, now = ProviderId("marked"), ProviderId("host"), Instant(9)
        image = Provider(marked, "marked", 0, host, host, now, now)
        builder.catalog.apply(Changes(providers={marked: image}))
        return [each.allocations for each in to_end(search).candidates]

    assert found(lambda catalog, query: searched(catalog, query, Start(), CANDIDATES_MAX)) == []
    assert found(lambda catalog, query: preferring(catalog, query, CandidateOrder("pack"), 8)) == []


@pytest.mark.parametrize("seed", range(10))
def test_changes_during_a_search(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each candidate was right at some time, none occurs twice, and steady ones are found."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 1)
    changed = 0
    for number in range(FLEETS):
        random = Random(f"pause/{seed}/{number}")
        few = random.choice((0, 20, 1000))
        monkeypatch.setattr("moorage.core.ledger.search.candidates.OPENING_STEPS_MAX", few)
        writer = ConcurrentWriter.of_random_catalog(random)
        records, catalog = writer.records, writer.catalog
        query = world.some_query(random, len(records))
        search = searched(catalog, query, world.some_start(random), CANDIDATES_MAX)
        answer = writer.during(search)
        found = [world.plain(each) for each in answer.candidates]
        moments = [naive_candidates(then, query) for then in writer.past]
        where = f"Random('pause/{seed}/{number}'): {query}"
        assert len(set(found)) == len(found), where
        assert set(found) <= set().union(*moments), where
        shown = {record.provider.uuid for record in answer.summaries}
        assert all(uuid in shown for each in answer.candidates for uuid in each.allocations), where
        steady = {each for each in records if is_unchanged(writer.past, each)}
        always = set.intersection(*moments)
        assert {each for each in always if is_steady(each, writer.past, steady)} <= set(found), (
            where
        )
        changed += bool(found) and len(writer.past) > 2
    assert changed > FLEETS // 6
