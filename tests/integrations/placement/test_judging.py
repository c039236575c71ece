"""How two answers are compared: what differs, what is decided, and what is the same."""

from typing import Any

import pytest

from moorage.integrations.placement.asking import Answer
from moorage.integrations.placement.judging import (
    ABSENT,
    AS_OLD_AS_THE_LEDGER,
    LOST,
    NOT_OFFERED,
    OF_THE_LIBRARY,
    OVERSIZED,
    ROUNDED,
    SPELLINGS,
    Circumstances,
    Difference,
    Question,
    differences,
)

ONE, TWO, THREE = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123")
AROUND = Circumstances(("/placement", ""), 2.0, frozenset([TWO]), frozenset([THREE]))


def _found(kind: str, theirs: Any, ours: Any, path: str = "/x") -> list[Difference]:
    return list(differences(Question(kind, path), Answer(200, theirs), Answer(200, ours), AROUND))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"traits": ["A", "B"]}, {"traits": ["B", "A"]}),
        (
            {"links": [{"rel": "self", "href": "/placement/resource_providers/x"}]},
            {"links": [{"rel": "self", "href": "/resource_providers/x"}]},
        ),
        ({"x": [{"uuid": ONE}, {"uuid": TWO}]}, {"x": [{"uuid": TWO}, {"uuid": ONE}]}),
        ({"total": 1}, {"total": 1.0}),
    ],
)
def test_order_and_place_are_no_difference(theirs: Any, ours: Any) -> None:
    """Lists are sets, and links begin below the address of the API."""
    assert _found("provider", theirs, ours) == []


@pytest.mark.parametrize(
    ("theirs", "ours", "kind", "at"),
    [
        ({"traits": ["A"]}, {"traits": ["A", "B"]}, "p: /traits/{name}", "/traits/B"),
        ({ONE: {"used": 1}}, {ONE: {"used": 2}}, "p: /{uuid}/used", f"/{ONE}/used"),
        ({"parent": None}, {"parent": ONE}, "p: /parent", "/parent"),
        ({"x": {}}, {"x": {"y": {}}}, "p: /x/y", "/x/y"),
        ({"x": True}, {}, "p: /x", "/x"),
    ],
)
def test_a_difference_has_its_place_and_its_kind(
    theirs: Any, ours: Any, kind: str, at: str
) -> None:
    """Kinds have no names and UUIDs, so that they can be counted."""
    (one,) = _found("p", theirs, ours)
    assert (one.kind, one.at, one.known) == (kind, at, "")


def test_a_missing_member_is_absent() -> None:
    """It is not null."""
    (one,) = _found("p", {"x": None}, {})
    assert (one.original, one.moorage) == (None, ABSENT)


def test_other_spellings_of_a_uuid_are_known() -> None:
    """The original keeps aggregates as they were written."""
    spelled = ONE.upper().replace("1111", "AAAA")
    (one,) = _found("p", {"aggregates": [spelled]}, {"aggregates": [spelled.lower()]})
    assert one.known == SPELLINGS
    (_, other) = _found("p", {"aggregates": [spelled]}, {"aggregates": []})
    assert other.known == ""


def test_standard_names_of_another_release_are_known() -> None:
    """Custom names are not."""
    (one,) = _found("traits", {"traits": ["HW_NEW"]}, {"traits": []})
    assert one.known == OF_THE_LIBRARY
    (other,) = _found("traits", {"traits": ["CUSTOM_NEW"]}, {"traits": []})
    assert other.known == ""


@pytest.mark.parametrize(("theirs", "known"), [(1.12346, ROUNDED), (1.12347, "")])
def test_rounded_ratios_are_known(theirs: float, known: str) -> None:
    """Only the rounding of single precision is."""
    (one,) = _found("p", {"allocation_ratio": theirs}, {"allocation_ratio": 1.123456789})
    assert one.known == known


@pytest.mark.parametrize(
    ("theirs", "ours", "count"),
    [
        (Answer(200, {}, 100.0, 900.0), Answer(200, {}, 102.0, 900.0), 0),
        (Answer(200, {}, 100.0, 900.0), Answer(200, {}, 103.0, 900.0), 1),
        (Answer(200, {}, 899.0, 900.0), Answer(200, {}, 950.0, 950.0), 0),
        (Answer(200, {}, 100.0, 900.0), Answer(200, {}, 950.0, 950.0), 1),
        (Answer(200, {}, None, 900.0), Answer(200, {}, 950.0, 950.0), 0),
        (Answer(404, {"a": 1}), Answer(404, {"b": 2}), 0),
        (Answer(200, {}), Answer(404, {}), 1),
    ],
)
def test_times_and_statuses(theirs: Answer, ours: Answer, count: int) -> None:
    """The time of the request itself is none of a change; texts of errors are for people."""
    assert len(list(differences(Question("p", "/p"), theirs, ours, AROUND))) == count


@pytest.mark.parametrize("kind", ["traits", "trait", "resource classes", "provider traits"])
def test_times_of_standard_names_are_known(kind: str) -> None:
    """They are as old as the ledger."""
    answers = Answer(200, {}, 100.0, 900.0), Answer(200, {}, 200.0, 900.0)
    (one,) = differences(Question(kind, "/p"), *answers, AROUND)
    assert one.known == AS_OLD_AS_THE_LEDGER


def _candidates(*those: dict[str, int], capacity: int = 8) -> Answer:
    requests = [
        {"allocations": {uuid: {"resources": {"VCPU": n}} for uuid, n in one.items()}}
        for one in those
    ]
    summaries = {
        uuid: {"resources": {"VCPU": {"capacity": capacity, "used": 0}}}
        for one in those
        for uuid in one
    }
    return Answer(200, {"allocation_requests": requests, "provider_summaries": summaries})


@pytest.mark.parametrize(
    ("theirs", "ours", "groups", "kind", "known"),
    [
        ([{ONE: 2}], [], 1, "only of the original", ""),
        ([], [{ONE: 2}], 1, "only of Moorage", ""),
        ([], [{ONE: 1, TWO: 1}], 2, "only of Moorage", LOST),
        ([], [{ONE: 1, TWO: 1}], 1, "only of Moorage", ""),
        ([{ONE: 2, TWO: 1}], [], 2, "only of the original", OVERSIZED),
        ([{ONE: 1, TWO: 1}], [], 2, "only of the original", ""),
        ([{THREE: 2}], [], 1, "only of the original", NOT_OFFERED),
        ([], [{THREE: 2}], 1, "only of Moorage", ""),
    ],
)
def test_candidates_are_compared_as_sets(
    theirs: Any, ours: Any, groups: int, kind: str, known: str
) -> None:
    """What is decided is as narrow as its reason."""
    question = Question("candidates", "/c", (("VCPU", 2),), groups)
    both = [{ONE: 1}]
    answers = _candidates(*both, *theirs), _candidates(*ours, *both)
    (one,) = differences(question, *answers, AROUND)
    assert (one.kind, one.known) == (f"candidates: {kind}", known)


@pytest.mark.parametrize(("uuid", "known"), [(ONE, ""), (THREE, NOT_OFFERED)])
def test_summaries_are_compared(uuid: str, known: str) -> None:
    """The capacity of a provider that is not offered as a whole is another one."""
    answers = _candidates({uuid: 1}), _candidates({uuid: 1}, capacity=4)
    (one,) = differences(Question("candidates", "/c", (("VCPU", 1),), 1), *answers, AROUND)
    assert one.kind == "candidates: provider_summaries/{uuid}/resources/{name}/capacity"
    assert one.known == known
