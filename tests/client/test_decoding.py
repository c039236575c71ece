"""Responses become dataclasses; unknown members are ignored, wrong types are refused."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from moorage.client.decoding import UndecodableError, change_decode, decode
from moorage.wire.admin import Tokens
from moorage.wire.admission import Waiting
from moorage.wire.changes import Change, TagsValue

TOKEN: dict[str, Any] = {
    "id": "a",
    "name": "b",
    "role": "user",
    "project_id": None,
    "scope": {},
    "created_at": "2026-01-02T03:04:05.000006Z",
    "expires_at": None,
    "rotated_at": None,
    "revoked_at": None,
    "used_at": None,
}


def test_answers_are_decoded_at_every_depth() -> None:
    """Nested lists, times and nulls are decoded; unknown members are dropped."""
    answer = decode(Tokens, {"tokens": [{**TOKEN, "new": 1}], "next": None})
    (token,) = answer.tokens
    assert token.created_at == datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
    assert (token.revoked_at, answer.next) == (None, None)


def test_ranges_are_decoded() -> None:
    """A pair stays a pair."""
    answer = {"position": 2, "eta_seconds": [1, 2.5], "overdue": False, "code": "c", "reason": "r"}
    assert decode(Waiting, answer).eta_seconds == (1, 2.5)
    assert decode(Waiting, {**answer, "eta_seconds": None}).eta_seconds is None
    with pytest.raises(UndecodableError):
        decode(Waiting, {**answer, "eta_seconds": [1]})


def test_values_of_any_shape_stay_as_they_are() -> None:
    """What a holder records is not interpreted."""

    @dataclass
    class Recorded:
        record: dict[str, Any] | None

    record = {"sent": [1, None], "more": {"a": "b"}}
    assert decode(Recorded, {"record": record}).record == record
    assert decode(Recorded, {"record": None}).record is None


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"tokens": [{}], "next": None}, {"tokens": [{**TOKEN, "created_at": "now"}]}],
)
def test_an_answer_of_another_shape_is_refused(value: Any) -> None:
    """A response with another shape does not come from a Moorage server."""
    with pytest.raises(UndecodableError):
        decode(Tokens, value)


def test_values_of_changes_are_typed() -> None:
    """A known kind has its type, an unknown one stays a dict, and a deleted object is None."""
    answer: dict[str, Any] = {"revision": 1, "n": 0, "kind": "tags", "key": "k", "value": None}
    assert change_decode(answer).value is None
    at = "2026-01-02T03:04:05.000006Z"
    tags: dict[str, Any] = {"traits": ["T"], "aggregates": [], "reported": [], "updated_at": at}
    typed = TagsValue(**{**tags, "updated_at": datetime.fromisoformat(at)})
    assert change_decode({**answer, "value": tags}).value == typed
    later = {**answer, "kind": "newer", "value": tags}
    assert change_decode(later) == Change(revision=1, n=0, kind="newer", key="k", value=tags)
