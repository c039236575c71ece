"""Long responses are written a few candidates at a time, without changing any candidate."""

from random import Random
from typing import Any

import msgspec
import pytest

from moorage.core.ledger.requests import CandidateAnswer, CandidateQuery, Pick
from moorage.core.ledger.search import Catalog
from moorage.faces.placement.handlers.candidates import requests_writer
from moorage.faces.placement.request import PIECE_ITEMS, pieces_of
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder, group
from tests.core.ledger.search.whole import candidates

FLEETS = 150


def write_requests(catalog: Catalog, query: CandidateQuery, version: int, picks: list[Pick]) -> Any:
    """Return the members of `allocation_requests`, and in how many pieces they were written."""
    pieces = list(pieces_of(b"[", picks, requests_writer(catalog, query, version), b"]"))
    return msgspec.json.decode(b"".join(pieces)), len(pieces) - 2


def expected_requests(answer: CandidateAnswer, version: int) -> list[Any]:
    """Return the candidates as the API shows them, from a simple implementation."""
    every: list[Any] = []
    for each in answer.candidates:
        given = {uuid: {"resources": amounts} for uuid, amounts in each.allocations.items()}
        if version >= 34:
            mappings = {suffix: list(by) for suffix, by in each.mappings.items()}
            every.append({"allocations": given, "mappings": mappings})
        elif version >= 12:
            every.append({"allocations": given})
        else:
            every.append({uuid: amounts["resources"] for uuid, amounts in given.items()})
    return every


@pytest.mark.parametrize("version", [10, 12, 36])
def test_written_candidates_are_those_found(version: int) -> None:
    """For any catalog and query, a candidate's amounts and mappings are those of the search."""
    shared = 0
    for number in range(FLEETS):
        random = Random(f"pieces/{number}")
        records = world.some_fleet(random, random.randint(1, 9))
        catalog = world.fleet_of(records)
        for question in range(5):
            query = world.some_query(random, len(records))
            answer = candidates(catalog, query)
            found, _ = write_requests(catalog, query, version, list(answer.picks))
            if version < 12:
                found = [
                    {
                        one["resource_provider"]["uuid"]: one["resources"]
                        for one in each["allocations"]
                    }
                    for each in found
                ]
            assert found == expected_requests(answer, version), (
                f"Random('pieces/{number}'), {question}"
            )
            shared += any(len(each.allocations) > 1 for each in answer.candidates)
    assert shared > FLEETS // 10, "too few candidates have several providers"


def test_a_long_answer_yields_between_its_pieces() -> None:
    """The writer yields after every few candidates, and writes each candidate once."""
    query = CandidateQuery((group(VCPU=1, DISK_GB=2), group("_a", VCPU=1)))
    builder = Builder()
    for number in range(3 * PIECE_ITEMS + 1):
        builder.add(f"h{number}", VCPU=2, DISK_GB=2)
    picks = list(candidates(builder.catalog, query).picks)
    found, pieces = write_requests(builder.catalog, query, 36, picks)
    assert pieces == 4 and len(picks) == len(found) == 3 * PIECE_ITEMS + 1
    assert {each["mappings"]["_a"][0] for each in found} == {f"h{n}" for n in range(len(picks))}
