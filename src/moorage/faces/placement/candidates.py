"""`GET /allocation_candidates`: the hot path, from query string to bytes.

Most of an answer is the same for everybody: summaries of providers. They are kept as bytes until
the provider changes, and joined.
"""

from itertools import count
from operator import itemgetter
from typing import Any

import msgspec

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import shown_capacity
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import CandidateQuery
from moorage.core.ledger.search import Fleet
from moorage.core.ledger.search import candidates as candidates_search
from moorage.faces.placement.combinations import requests_written
from moorage.faces.placement.order import TreeKey, classes_in_order, traits_in_order, tree_key
from moorage.faces.placement.queries import candidate_query
from moorage.faces.placement.request import Answer, Request

TRAITS_SINCE = 17
ALL_CLASSES_SINCE = 27
TREES_SINCE = 29

SPARE_FRAGMENTS = 1_000
"""Fragments that may be kept of providers that are gone, beside one for each that is there."""

_PLACE = itemgetter(1)


class Candidates:
    """Answers, and remembers the summaries it has written; they belong to one fleet."""

    def __init__(self) -> None:
        self._turns = count()
        self._fleet: Fleet | None = None
        self._fragments: dict[ProviderId, tuple[int, TreeKey, bytes]] = {}
        """Version, place and text of a provider's summary."""

    async def index(self, request: Request) -> Answer:
        """GET /allocation_candidates."""
        question = candidate_query(request.query_string, request.version, request.limits)
        fleet = await request.fleet()
        question.vocabulary.check(fleet)
        await request.service.turns.taken()
        found = candidates_search(fleet, question.query, next(self._turns))
        body = b'{"allocation_requests":[%b],"provider_summaries":{%b}}' % (
            requests_written(fleet, question.query, found.candidates, request.version),
            b",".join(self._summaries(fleet, found.summaries, question.query, request.version)),
        )
        return Answer(200, body, request.now())

    def _summaries(
        self, fleet: Fleet, providers: list[ProviderId], query: CandidateQuery, version: int
    ) -> list[bytes]:
        if version < TREES_SINCE:
            wanted = {name for group in query.groups for name in group.resources}
            found = [record for record in map(fleet.record, providers) if record]
            found.sort(key=lambda record: tree_key(fleet, record))
            return [_summary(fleet, record, version, wanted) for record in found]
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
                text = _summary(fleet, record, version, set())
                kept = fragments[uuid] = (record.version, tree_key(fleet, record), text)
            shown.append(kept)
        shown.sort(key=_PLACE)
        return [text for _, _, text in shown]


def _summary(fleet: Fleet, record: ProviderRecord, version: int, wanted: set[str]) -> bytes:
    """Return one member of `provider_summaries`; `wanted` counts before 1.27 only."""
    held = record.inventories
    shown: dict[str, Any] = {
        "resources": {
            name: {"capacity": shown_capacity(held[name]), "used": held[name].used}
            for name in classes_in_order(fleet, held)
            if version >= ALL_CLASSES_SINCE or name in wanted
        }
    }
    if version >= TRAITS_SINCE:
        shown["traits"] = traits_in_order(fleet, record.tags.traits)
    if version >= TREES_SINCE:
        shown["parent_provider_uuid"] = record.provider.parent
        shown["root_provider_uuid"] = record.provider.root
    return b'"%b":%b' % (record.provider.uuid.encode(), msgspec.json.encode(shown))
