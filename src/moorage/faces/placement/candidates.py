"""`GET /allocation_candidates`: the hot path, from query string to bytes.

Most of an answer is the same for everybody: summaries of providers. They are kept as bytes until
the provider changes, and joined.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import shown_capacity
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import Candidate, CandidateQuery
from moorage.core.ledger.search import Fleet
from moorage.core.ledger.search import candidates as candidates_search
from moorage.faces.placement.queries import candidate_query
from moorage.faces.placement.request import Answer, Request
from moorage.faces.placement.traits import in_order

BY_PROVIDER_SINCE = 12
TRAITS_SINCE = 17
ALL_CLASSES_SINCE = 27
TREES_SINCE = 29
MAPPINGS_SINCE = 34

SPARE_FRAGMENTS = 1_000
"""Fragments that may be kept of providers that are gone, beside one for each that is there."""


class Candidates:
    """Answers, and remembers the summaries it has written; they belong to one fleet."""

    def __init__(self) -> None:
        self._turns = count()
        self._fleet: Fleet | None = None
        self._fragments: dict[ProviderId, tuple[int, bytes]] = {}

    async def index(self, request: Request) -> Answer:
        """GET /allocation_candidates."""
        question = candidate_query(request.query_string, request.version, request.limits)
        fleet = await request.fleet()
        question.vocabulary.check(fleet)
        await request.service.turns.taken()
        found = candidates_search(fleet, question.query, next(self._turns))
        body = b'{"allocation_requests":[%b],"provider_summaries":{%b}}' % (
            _writer(request.version)(found.candidates),
            b",".join(self._summaries(fleet, found.summaries, question.query, request.version)),
        )
        return Answer(200, body, request.now())

    def _summaries(
        self, fleet: Fleet, providers: list[ProviderId], query: CandidateQuery, version: int
    ) -> list[bytes]:
        if version < TREES_SINCE:
            wanted = {name for group in query.groups for name in group.resources}
            records = [fleet.record(uuid) for uuid in providers]
            return [_summary(record, version, wanted) for record in records if record]
        if fleet is not self._fleet or len(self._fragments) > len(fleet) + SPARE_FRAGMENTS:
            self._fleet = fleet
            self._fragments.clear()
        fragments = self._fragments
        shown = []
        for uuid in providers:
            record = fleet.record(uuid)
            if record is None:
                continue
            kept = fragments.get(uuid)
            if kept is None or kept[0] != record.version:
                kept = fragments[uuid] = (record.version, _summary(record, version, set()))
            shown.append(kept[1])
        return shown


def _summary(record: ProviderRecord, version: int, wanted: set[str]) -> bytes:
    """Return one member of `provider_summaries`; `wanted` counts before 1.27 only."""
    shown: dict[str, Any] = {
        "resources": {
            name: {"capacity": shown_capacity(inventory), "used": inventory.used}
            for name, inventory in record.inventories.items()
            if version >= ALL_CLASSES_SINCE or name in wanted
        }
    }
    if version >= TRAITS_SINCE:
        shown["traits"] = in_order(record.tags.traits)
    if version >= TREES_SINCE:
        shown["parent_provider_uuid"] = record.provider.parent
        shown["root_provider_uuid"] = record.provider.root
    return b'"%b":%b' % (record.provider.uuid.encode(), msgspec.json.encode(shown))


def _writer(version: int) -> Callable[[list[Candidate]], bytes]:
    if version >= MAPPINGS_SINCE:
        return _with_mappings
    return _by_provider if version >= BY_PROVIDER_SINCE else _listed


def _with_mappings(candidates: list[Candidate]) -> bytes:
    tails: dict[int, str] = {}
    return ",".join(
        [
            f'{{"allocations":{{{_members(candidate, tails)}}},'
            f'"mappings":{{{_mappings(candidate)}}}}}'
            for candidate in candidates
        ]
    ).encode()


def _by_provider(candidates: list[Candidate]) -> bytes:
    tails: dict[int, str] = {}
    return ",".join(
        [f'{{"allocations":{{{_members(candidate, tails)}}}}}' for candidate in candidates]
    ).encode()


def _members(candidate: Candidate, tails: dict[int, str]) -> str:
    """Return the members of `allocations`; UUIDs and suffixes need no escapes.

    Candidates share their amounts, so what follows the UUID is written once for each object.
    """
    parts = []
    for provider, amounts in candidate.allocations.items():
        tail = tails.get(id(amounts))
        if tail is None:
            text = msgspec.json.encode(amounts).decode()
            tail = tails[id(amounts)] = f'":{{"resources":{text}}}'
        parts.append(f'"{provider}{tail}')
    return ",".join(parts)


def _mappings(candidate: Candidate) -> str:
    """Return the members of `mappings`."""
    return ",".join(
        [
            f'"{suffix}":["' + '","'.join(providers) + '"]'
            for suffix, providers in candidate.mappings.items()
        ]
    )


def _listed(candidates: list[Candidate]) -> bytes:
    shown = [
        {
            "allocations": [
                {"resource_provider": {"uuid": provider}, "resources": amounts}
                for provider, amounts in candidate.allocations.items()
            ]
        }
        for candidate in candidates
    ]
    return msgspec.json.encode(shown)[1:-1]
