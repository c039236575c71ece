"""Claims take what is offered by the rules of every allocation, and pass over what is gone."""

from collections import deque

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ledger.claims import CandidatesNeeded, Claimed, Offer, Wish, offer_for, take
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import (
    Candidate,
    CandidateQuery,
    Group,
    Order,
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


def wish(n: int, preference: Preference = "pack") -> Wish:
    """Return the n-th consumer's wish for one unit."""
    return Wish(consumer_id(n), "project", "user", "INSTANCE", QUERY, Order(preference))


def offer(*providers: str) -> Offer:
    """Return an offer of one unit on each provider."""
    return Offer(
        deque(Candidate({uuid: {"VCPU": 1}}, {"": (uuid,)}) for uuid in providers)  # type: ignore[dict-item, misc] # text is an id here
    )


def stock() -> Facts:
    """Return three providers: of two units, none, and two."""
    known = facts()
    for uuid, total, used in ((P1, 2, 0), (P2, 2, 2), (P3, 2, 0)):
        add_provider(known, uuid, VCPU=Inventory(total, used=used))
    return known


def taken(known: Facts, given: Offer, *wishes: Wish) -> list[str]:
    """Carry out claims one after another; return the providers they got."""
    got = []
    for each in wishes:
        changes, claimed = take(known, NOW, each, given)
        known.apply(changes)
        got += claimed.allocations
    return got


def test_who_packs_stays_until_it_is_full() -> None:
    """The first candidate serves as long as it can, then it is dropped, and full ones with it."""
    given = offer(P1, P2, P3)
    assert taken(stock(), given, *map(wish, range(3))) == [P1, P1, P3]
    assert [list(c.allocations) for c in given.candidates] == [[P3]]


@pytest.mark.parametrize("preference", ["spread", "random"])
def test_others_take_turns(preference: Preference) -> None:
    """Claims that do not pack get one candidate after another."""
    wishes = [wish(n, preference) for n in range(4)]
    assert taken(stock(), offer(P1, P2, P3), *wishes) == [P1, P3, P1, P3]


def test_what_is_gone_is_passed_over() -> None:
    """A provider or an inventory that is gone by now costs only that candidate."""
    known = stock()
    del known.providers[P1]
    del known.inventories[P2]["VCPU"]
    assert taken(known, offer(P1, P2, P3), wish(1)) == [P3]


def test_nothing_left_asks_for_another_search() -> None:
    """When all candidates are gone nobody is refused: the catalog must be looked at again."""
    with pytest.raises(Restart) as again:
        take(stock(), NOW, wish(1), offer(P2))
    assert again.value.needs == CandidatesNeeded()


def test_the_answer_says_what_and_where() -> None:
    """The consumer exists afterwards, at its first generation, with what the answer says."""
    changes, claimed = take(stock(), NOW, wish(1), offer(P1))
    assert claimed == Claimed(consumer_id(1), 1, {P1: {"VCPU": 1}}, {"": (P1,)})
    consumer = changes.consumers[consumer_id(1)]
    assert consumer is not None
    assert (consumer.project_id, consumer.consumer_type) == ("project", "INSTANCE")
    used = changes.inventories[P1, "VCPU"]
    assert used is not None and used.used == 1


def test_a_consumer_that_exists_is_refused() -> None:
    """Nobody gets a second claim under the same name, whatever was found."""
    known = stock()
    add_consumer(known, C1, {P1: {"VCPU": 1}})
    with Refused(Code.CONSUMER_GENERATION):
        take(known, NOW, wish(1), offer(P3))
    with Refused(Code.CONSUMER_GENERATION):
        take(known, NOW, wish(1), Offer(refusal=Error(Code.NO_CAPACITY, "")))


def test_searches_that_find_nothing_refuse() -> None:
    """An empty catalog has no capacity; unknown words are told first."""
    catalog = Catalog(CLASSES, TRAITS)
    for query, code in (
        (QUERY, Code.NO_CAPACITY),
        (CandidateQuery((Group("", {"CUSTOM_X": 1}),)), Code.CLASS_UNKNOWN),
        (
            CandidateQuery((Group("", {"VCPU": 1}, TraitFilter((frozenset({"CUSTOM_X"}),))),)),
            Code.TRAIT_UNKNOWN,
        ),
    ):
        found = to_end(offer_for(catalog, query, Order(), 10))
        with Refused(code):
            take(facts(), NOW, Wish(C1, "p", "u", None, query), found)
