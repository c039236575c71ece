"""The real and the naive search find the same in thousands of random catalogs."""

from random import Random

import pytest

from tests.core.ledger.search import world
from tests.core.ledger.search.naive import naive_candidates, naive_providers, naive_summaries
from tests.core.ledger.search.whole import candidates, providers

BATCHES = 40
FLEETS_PER_BATCH = 100
QUESTIONS_PER_FLEET = 5


@pytest.mark.parametrize("seed", range(BATCHES))
def test_same_candidates_as_naive(seed: int) -> None:
    """Candidates and summaries are equal for 20,000 pairs of catalog and query."""
    answered = 0
    for number in range(FLEETS_PER_BATCH):
        random = Random(f"{seed}/{number}")
        records = world.some_fleet(random, random.randint(1, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        for question in range(QUESTIONS_PER_FLEET):
            query = world.some_query(random, len(records))
            expected = naive_candidates(records, query)
            answer = candidates(catalog, query)
            found = [world.plain(candidate) for candidate in answer.candidates]
            where = f"Random('{seed}/{number}'), question {question}: {query}"
            assert answer.exhausted, where
            assert set(found) == expected, where
            assert len(found) == len(expected), f"duplicates: {where}"
            shown = naive_summaries(records, query, expected)
            assert len(answer.summaries) == len(shown), where
            assert {record.provider.uuid for record in answer.summaries} == shown, where
            answered += bool(expected)
    assert answered > FLEETS_PER_BATCH, "too few queries had an answer"


@pytest.mark.parametrize("seed", range(5))
def test_a_limit_only_cuts(seed: int) -> None:
    """With a limit, from any start, the search finds that many of the same candidates."""
    for number in range(FLEETS_PER_BATCH):
        random = Random(f"limit/{seed}/{number}")
        records = world.some_fleet(random, random.randint(1, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        query = world.some_query(random, len(records))
        limit, start = random.randint(1, 6), world.some_start(random)
        cut = world.replace_limit(query, limit)
        where = f"Random('limit/{seed}/{number}'), start {start}: {cut}"
        everything = {world.plain(c) for c in candidates(catalog, query).candidates}
        answer = candidates(catalog, cut, start)
        found = [world.plain(candidate) for candidate in answer.candidates]
        assert len(set(found)) == len(found) == min(limit, len(everything)), where
        assert set(found) <= everything, where
        assert {r.provider.uuid for r in answer.summaries} == naive_summaries(
            records, cut, found
        ), where
        assert candidates(catalog, cut, start) == answer, where


def test_same_listing_as_naive() -> None:
    """Real and naive listings of providers are equal."""
    answered = 0
    for number in range(400):
        random = Random(f"listing/{number}")
        records = world.some_fleet(random, random.randint(1, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        for _ in range(5):
            query = world.some_listing(random, len(records))
            found = [record.provider.uuid for record in providers(catalog, query)]
            where = f"Random('listing/{number}'): {query}"
            expected = naive_providers(records, query)
            assert set(found) == expected and len(found) == len(expected), where
            answered += bool(expected)
    assert answered > 400
