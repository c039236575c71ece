"""Of parts that each fit alone, those are named that do not fit together."""

from random import Random

from moorage.core.ledger.search.explain import competing, only
from moorage.core.ledger.search.groups import terms
from tests.core.ledger.search import world
from tests.core.ledger.search.naive import naive_candidates
from tests.core.ledger.search.whole import explain, to_end

QUESTIONS = 1000


def test_the_parts_fit_nowhere_and_each_is_needed() -> None:
    """Beside a search by brute force, for all queries of which the explanation names parts."""
    judged = fewer = 0
    for number in range(QUESTIONS):
        random = Random(f"competing/{number}")
        records = world.some_fleet(random, random.randint(2, 8))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        query = world.some_query(random, len(records))
        nearest = explain(catalog, query).nearest
        if nearest is None or "each part alone" not in nearest:
            continue
        where = f"Random('competing/{number}'): {query}"
        parts = to_end(competing(catalog, query))
        everything = terms(query.groups)
        assert not naive_candidates(records, only(query, parts)), where
        judged += 1
        if len(everything) > 2:
            fewer += len(parts) < len(everything)
            for part in parts:
                rest = [each for each in parts if each is not part]
                assert naive_candidates(records, only(query, rest)), where
    assert judged > 5 and fewer > 1, (judged, fewer)
