"""Claims take offered candidates by the rules of all allocations, and skip outdated ones."""

from collections import deque

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ledger.claims import (
    CandidatesNeeded,
    Claimed,
    ClaimRequest,
    OfferedCandidates,
    offer_for,
    take,
)
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import (
    Candidate,
    CandidateOrder,
    CandidateQuery,
    Group,
    Preference,
    TraitFilter,
)
from moorage.core.ledger.search import Catalog
from moorage.core.restart import Restart
from tests.core.ledger.build import (
    C1,
    CLASSES,
    NOW,
    P1,
    P2,
    P3,
    TRAITS,
    Refused,
    add_consumer,
    add_provider,
    consumer_id,
    facts,
)
from tests.core.ledger.search.whole import to_end

QUERY = CandidateQuery((Group("", {"VCPU": 1}),))


def claim_of(n: int, preference: Preference = "pack") -> ClaimRequest:
    """Return the n-th consumer's claim for one unit."""
    return ClaimRequest(
        consumer_id(n), "project", "user", "INSTANCE", QUERY, CandidateOrder(preference)
    )


def offer(*providers: str) -> OfferedCandidates:
    """Return an offer of one unit on each provider."""
    return OfferedCandidates(
        deque(Candidate({uuid: {"VCPU": 1}}, {"": (uuid,)}) for uuid in providers)  # type: ignore[dict-item, misc] # text is an id here
    )


def stock() -> Facts:
    """Return three providers with two, none and two free units."""
    known = facts()
    for uuid, total, used in ((P1, 2, 0), (P2, 2, 2), (P3, 2, 0)):
        add_provider(known, uuid, VCPU=Inventory(total, used=used))
    return known


def execute(known: Facts, offered: OfferedCandidates, *wishes: ClaimRequest) -> list[str]:
    """Execute claims one after another; return the providers that they got."""
    got = []
    for each in wishes:
        changes, claimed = take(known, NOW, each, offered)
        known.apply(changes)
        got += claimed.allocations
    return got


def test_packing_claims_fill_one_provider() -> None:
    """Packing claims use the first candidate until it is full; full candidates are dropped."""
    offered = offer(P1, P2, P3)
    assert execute(stock(), offered, *map(claim_of, range(3))) == [P1, P1, P3]
    assert [list(c.allocations) for c in offered.candidates] == [[P3]]


@pytest.mark.parametrize("preference", ["spread", "random"])
def test_others_take_turns(preference: Preference) -> None:
    """Claims that do not pack use the candidates in turn."""
    wishes = [claim_of(n, preference) for n in range(4)]
    assert execute(stock(), offer(P1, P2, P3), *wishes) == [P1, P3, P1, P3]


def test_deleted_candidates_are_skipped() -> None:
    """A candidate whose provider or inventory was deleted since the search is skipped."""
    known = stock()
    del known.providers[P1]
    del known.inventories[P2]["VCPU"]
    assert execute(known, offer(P1, P2, P3), claim_of(1)) == [P3]


def test_no_candidate_left_needs_another_search() -> None:
    """If no candidate is left, the claim is not refused but needs another search."""
    with pytest.raises(Restart) as again:
        take(stock(), NOW, claim_of(1), offer(P2))
    assert again.value.needs == CandidatesNeeded()


def test_the_answer_of_a_claim() -> None:
    """The answer and the changes contain the new consumer and its allocations."""
    changes, claimed = take(stock(), NOW, claim_of(1), offer(P1))
    assert claimed == Claimed(consumer_id(1), 1, {P1: {"VCPU": 1}}, {"": (P1,)})
    consumer = changes.consumers[consumer_id(1)]
    assert consumer is not None
    assert (consumer.project_id, consumer.consumer_type) == ("project", "INSTANCE")
    used = changes.inventories[P1, "VCPU"]
    assert used is not None and used.used == 1


def test_a_consumer_that_exists_is_refused() -> None:
    """A claim for an existing consumer is refused, whatever the search found."""
    known = stock()
    add_consumer(known, C1, {P1: {"VCPU": 1}})
    with Refused(Code.CONSUMER_GENERATION):
        take(known, NOW, claim_of(1), offer(P3))
    with Refused(Code.CONSUMER_GENERATION):
        take(known, NOW, claim_of(1), OfferedCandidates(refusal=Error(Code.NO_CAPACITY, "")))


def test_searches_that_find_nothing_refuse() -> None:
    """A search of an empty catalog refuses; unknown classes and traits are reported first."""
    catalog = Catalog(CLASSES, TRAITS)
    for query, code in (
        (QUERY, Code.NO_CAPACITY),
        (CandidateQuery((Group("", {"CUSTOM_X": 1}),)), Code.CLASS_UNKNOWN),
        (
            CandidateQuery((Group("", {"VCPU": 1}, TraitFilter((frozenset({"CUSTOM_X"}),))),)),
            Code.TRAIT_UNKNOWN,
        ),
    ):
        found = to_end(offer_for(catalog, query, CandidateOrder(), 10))
        with Refused(code):
            take(facts(), NOW, ClaimRequest(C1, "p", "u", None, query), found)
