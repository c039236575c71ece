"""Long answers: each candidate is spelled out once, with a rest after every few."""

from collections.abc import Sequence
from itertools import pairwise
from typing import overload

import msgspec
import pytest

from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import Candidate, CandidateQuery
from moorage.core.ledger.search.groups import terms
from moorage.core.ledger.search.picks import Picks
from moorage.faces.placement.combinations import requests_writer
from moorage.faces.placement.request import PIECE_ITEMS, pieces_of
from tests.core.search.builder import Builder, group


class Watched(Picks):
    """Candidates that note how many of them were spelled out, and at which rest."""

    def __init__(self, query: CandidateQuery, picks: list[tuple[ProviderId, ...]]) -> None:
        super().__init__(terms(query.groups), picks)
        self.spelled = 0

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        found = super().__getitem__(index)
        self.spelled += 1 if isinstance(found, Candidate) else len(found)
        return found


@pytest.mark.parametrize("version", [10, 12, 36])
def test_candidates_are_spelled_out_once(version: int) -> None:
    """Whatever the version writes of a candidate, it is made once, when its piece is written."""
    query = CandidateQuery((group(VCPU=1, DISK_GB=2), group("_a", VCPU=1)))
    hosts = [ProviderId(f"h{number}") for number in range(3 * PIECE_ITEMS + 1)]
    candidates = Watched(query, [(a, b, a) for a, b in pairwise(hosts)])
    writing = pieces_of(b"[", candidates, requests_writer(Builder().fleet, query, version), b"]")
    rests = []
    while True:
        try:
            next(writing)
        except StopIteration as end:
            written = msgspec.json.decode(b"".join(end.value))
            break
        rests.append(candidates.spelled)
    assert rests == [PIECE_ITEMS, 2 * PIECE_ITEMS, 3 * PIECE_ITEMS]
    assert len(written) == candidates.spelled == len(candidates)
    first = written[0]["allocations"]
    if version < 12:
        first = {each["resource_provider"]["uuid"]: each for each in first}
    assert {uuid: given["resources"] for uuid, given in first.items()} == {
        "h0": {"VCPU": 2},
        "h1": {"DISK_GB": 2},
    }
