"""Invalid queries, and unknown classes and traits, are refused before the search."""

from typing import Any

import pytest

from moorage.core.errors import Code
from moorage.core.ids import AggregateId
from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, Group, TraitFilter
from moorage.core.ledger.search.validation import check_known, check_sense
from tests.core.ledger.build import Refused
from tests.core.ledger.search.builder import Builder

ONE = {"VCPU": 1}
X = frozenset({"X"})
MANY = AggregateFilter((frozenset(AggregateId(str(n)) for n in range(1_000)),))


def query(*groups: Group, **wide: Any) -> CandidateQuery:
    """Return a query."""
    return CandidateQuery(groups, **wide)


@pytest.mark.parametrize(
    ("question", "code", "word"),
    [
        (query(), Code.INVALID, "resources"),
        (query(Group("", {})), Code.INVALID, "resources"),
        (query(Group("", ONE), Group("", ONE)), Code.INVALID, "same suffix"),
        (query(Group("_A", ONE), Group("_B", {})), Code.INVALID, "'_B'"),
        (query(Group("", {}), Group("_B", ONE)), Code.INVALID, "''"),
        (query(Group("ä", ONE)), Code.INVALID, "letters"),
        (query(Group("x" * 65, ONE)), Code.INVALID, "letters"),
        (query(Group("", {"VCPU": 0})), Code.INVALID, "VCPU"),
        (query(Group("", {"VCPU": 2**31})), Code.INVALID, "VCPU"),
        (query(Group("", ONE, TraitFilter((X,), X))), Code.INVALID, "X is both"),
        (query(Group("", ONE, TraitFilter((frozenset(),)))), Code.INVALID, "empty"),
        (
            query(Group("", ONE, aggregates=AggregateFilter((frozenset(),)))),
            Code.INVALID,
            "empty",
        ),
        (query(Group("", ONE), root_traits=TraitFilter((X,), X)), Code.INVALID, "root"),
        (query(Group("_A", ONE), same_subtree=(frozenset({"_C"}),)), Code.INVALID, "_C"),
        (query(Group("", ONE), same_subtree=(frozenset({""}),)), Code.INVALID, "same_subtree"),
        (query(*(Group(f"_{n}", ONE) for n in range(65))), Code.LIMIT_EXCEEDED, "64"),
        (query(Group("", ONE, aggregates=MANY)), Code.LIMIT_EXCEEDED, "1000"),
    ],
)
def test_invalid_queries_are_refused(question: CandidateQuery, code: Code, word: str) -> None:
    """Each kind of invalid query is refused with a message that names the fault."""
    with Refused(code) as refusal:
        check_sense(question)
    assert word in refusal.message


def test_a_valid_query_is_accepted() -> None:
    """A valid query with all features is accepted."""
    either = frozenset({"X", "Y"})
    check_sense(
        query(
            Group("", ONE, TraitFilter((either,), X)),
            Group("_A", ONE),
            Group("_B", {}, TraitFilter((X,))),
            same_subtree=(frozenset({"_A", "_B"}),),
            root_traits=TraitFilter((X,)),
        )
    )


def test_unknown_names_are_refused() -> None:
    """Classes and traits must exist, in groups and at the root, required and forbidden."""
    catalog = Builder().catalog
    with Refused(Code.CLASS_UNKNOWN):
        check_known(catalog, query(Group("", ONE)))
    for traits in (TraitFilter((X,)), TraitFilter((), X)):
        with Refused(Code.TRAIT_UNKNOWN):
            check_known(catalog, query(Group("_A", {}, traits)))
        with Refused(Code.TRAIT_UNKNOWN):
            check_known(catalog, query(root_traits=traits))
    check_known(catalog, query(Group("_A", {})))
