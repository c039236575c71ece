"""`GET /allocation_candidates`: the hot path, from query string to bytes.

Most of an answer consists of provider summaries, which are the same for all callers. They are
cached as bytes until the provider changes.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import shown_capacity
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import CandidateQuery
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.steps import Steps
from moorage.faces.long_answers import REFERENCE_BYTES, Body
from moorage.faces.placement.handlers.allocation_requests import requests_writer
from moorage.faces.placement.order import TreeKey, classes_in_order, traits_in_order, tree_key
from moorage.faces.placement.request import Request, Response, pieces_of
from moorage.faces.query_strings.queries import candidate_query

TRAITS_SINCE = 17
ALL_CLASSES_SINCE = 27
TREES_SINCE = 29

SPARE_FRAGMENTS = 1_000
"""Cached fragments of deleted providers that may be kept, besides one per existing provider."""

SORTED_ITEMS = 512
"""Summaries that are sorted at a time: about a millisecond."""


PICK_BYTES = 64
"""Bytes of memory per candidate, besides the references to its providers."""


class _Fragment(NamedTuple):
    """A provider's summary as JSON bytes."""

    version: int
    """Version of the record that it shows."""
    place: TreeKey
    text: bytes


_PLACE = attrgetter("place")


class Candidates:
    """The handler, with a cache of encoded summaries for one catalog."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._fragments: dict[ProviderId, _Fragment] = {}

    async def index(self, request: Request) -> Response:
        """GET /allocation_candidates."""
        question = candidate_query(request.query_string, request.version, request.limits)
        catalog = await request.catalog()
        question.vocabulary.check(catalog)
        work = self._written(catalog, question.query, request)
        body = await request.service.searches.driven(work, request.disconnected)
        return Response(200, body, request.now())

    def _written(self, catalog: Catalog, query: CandidateQuery, request: Request) -> Steps[Body]:
        """Search, then encode the answer or, if it is long, its beginning."""
        version = request.version
        searches = request.service.searches
        found = yield from searches.candidates(catalog, query, request.query_string)
        picks = found.picks
        requests = pieces_of(
            b'{"allocation_requests":[',
            picks,
            requests_writer(catalog, query, version),
            b'],"provider_summaries":{',
        )
        fragments: Iterator[_Fragment]
        if version < TREES_SINCE:
            wanted = {name for group in query.groups for name in group.resources}
            fragments = (
                _Fragment(0, tree_key(catalog, record), _summary(catalog, record, version, wanted))
                for record in found.summaries
            )
        else:
            fragments = self._remembered(catalog, found.summaries, version)
        texts = yield from _in_order(fragments)
        summaries = pieces_of(b"", texts, b",".join, b"}}")
        # Summaries are cached and shared from 1.29 on; before that they belong to this answer.
        size = len(texts) * REFERENCE_BYTES
        if version < TREES_SINCE:
            size += sum(map(len, texts))
        if picks:
            size += len(picks) * (PICK_BYTES + REFERENCE_BYTES * len(picks[0]))
        return (yield from request.written(chain(requests, summaries), size))

    def _remembered(
        self, catalog: Catalog, records: Iterable[ProviderRecord], version: int
    ) -> Iterator[_Fragment]:
        """Yield the summaries of providers, encoding those that have changed."""
        if catalog is not self._catalog or len(self._fragments) > len(catalog) + SPARE_FRAGMENTS:
            # A new dict, because an answer from another catalog may still be filling the old one.
            self._catalog, self._fragments = catalog, {}
        known = self._fragments
        for record in records:
            uuid = record.provider.uuid
            kept = known.get(uuid)
            if kept is None or kept.version != record.version:
                text = _summary(catalog, record, version, set())
                kept = known[uuid] = _Fragment(record.version, tree_key(catalog, record), text)
            yield kept


def _in_order(fragments: Iterator[_Fragment]) -> Steps[list[bytes]]:
    """Return the texts ordered by tree; sorted in parts, which are then merged."""
    parts: list[list[_Fragment]] = []
    while part := list(islice(fragments, SORTED_ITEMS)):
        part.sort(key=_PLACE)
        parts.append(part)
        yield
    if len(parts) == 1:
        return [each.text for each in parts[0]]
    texts = []
    for each in merge(*parts, key=_PLACE):
        texts.append(each.text)
        if len(texts) % SORTED_ITEMS == 0:
            yield
    return texts


def _summary(catalog: Catalog, record: ProviderRecord, version: int, wanted: set[str]) -> bytes:
    """Return one member of `provider_summaries`; `wanted` matters only before 1.27."""
    held = record.inventories
    shown: dict[str, Any] = {
        "resources": {
            name: {"capacity": shown_capacity(held[name]), "used": held[name].used}
            for name in classes_in_order(catalog, held)
            if version >= ALL_CLASSES_SINCE or name in wanted
        }
    }
    if version >= TRAITS_SINCE:
        shown["traits"] = traits_in_order(catalog, record.tags.traits)
    if version >= TREES_SINCE:
        shown["parent_provider_uuid"] = record.provider.parent
        shown["root_provider_uuid"] = record.provider.root
    return b'"%b":%b' % (record.provider.uuid.encode(), msgspec.json.encode(shown))
