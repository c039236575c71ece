"""`GET /allocation_candidates`: the hot path, from query string to bytes.

Most of an answer consists of provider summaries, which are the same for all callers. They are
cached as bytes until the provider changes.

Groups are in the order of the query. Providers, and the classes of each, are ordered by the first
resource that they contribute. Within a suffixed group that is the order of the query; in the
unsuffixed one it is the order of the classes' numbers if any provider is in a tree or shares.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import merge
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

import msgspec

from moorage.core.ids import ProviderId
from moorage.core.ledger.compact_inventories import OWN, Inventories, InventoryFigures
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import CandidateQuery, Pick
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.compact_candidates import summed
from moorage.core.ledger.search.steps import Steps
from moorage.faces.long_answers import REFERENCE_BYTES, Body
from moorage.faces.placement.order import TreeKey, classes_in_order, traits_in_order, tree_key
from moorage.faces.placement.request import Request, Response, pieces_of
from moorage.faces.query_strings.queries import candidate_query

TRAITS_SINCE = 17
ALL_CLASSES_SINCE = 27
TREES_SINCE = 29

FRAGMENTS_MAX = 100_000
"""Cached fragments after which the cache begins again: about 70 MB. Without it, a summary takes a
microsecond or two."""

SORTED_ITEMS = 1_024
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
        wanted: set[str] = set()
        if version < ALL_CLASSES_SINCE:
            wanted = {name for group in query.groups for name in group.resources}
        summary = _SummaryWriter(catalog, version, wanted).text

        def show(records: Iterable[ProviderRecord]) -> list[_Fragment]:
            if version >= TREES_SINCE:
                return self._remembered(catalog, records, summary)
            return [_Fragment(0, tree_key(catalog, record), summary(record)) for record in records]

        texts = yield from _in_order(found.summaries, show)
        summaries = pieces_of(b"", texts, b",".join, b"}}")
        # Summaries are cached and shared from 1.29 on; before that they belong to this answer.
        size = len(texts) * REFERENCE_BYTES
        if version < TREES_SINCE:
            size += sum(map(len, texts))
        if picks:
            size += len(picks) * (PICK_BYTES + REFERENCE_BYTES * len(picks[0]))
        return (yield from request.written(chain(requests, summaries), size))

    def _remembered(
        self,
        catalog: Catalog,
        records: Iterable[ProviderRecord],
        summary: Callable[[ProviderRecord], bytes],
    ) -> list[_Fragment]:
        """Return the summaries of providers, encoding those that have changed."""
        if catalog is not self._catalog or len(self._fragments) > FRAGMENTS_MAX:
            # A new dict, because an answer from another catalog may still be filling the old one.
            self._catalog, self._fragments = catalog, {}
        known, found = self._fragments, []
        for record in records:
            uuid = record.provider.uuid
            kept = known.get(uuid)
            if kept is None or kept.version != record.version:
                kept = _Fragment(record.version, tree_key(catalog, record), summary(record))
                known[uuid] = kept
            found.append(kept)
        return found


def _in_order(
    records: Iterable[ProviderRecord],
    show: Callable[[Iterable[ProviderRecord]], list[_Fragment]],
) -> Steps[list[bytes]]:
    """Return what `show` makes of providers, ordered by tree; sorted in parts, which are merged."""
    parts: list[list[_Fragment]] = []
    rest = iter(records)
    while part := show(islice(rest, SORTED_ITEMS)):
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


class _SummaryWriter:
    """Writes members of `provider_summaries`; what providers have in common is encoded once.

    `wanted`: the classes that are shown before 1.27. UUIDs need no escapes.
    """

    def __init__(self, catalog: Catalog, version: int, wanted: set[str]) -> None:
        self._catalog = catalog
        self._version = version
        self._wanted = wanted
        self._kinds: dict[int, tuple[str, list[int], tuple[InventoryFigures, ...]]] = {}
        """By the id of the offers: their template, the places of its figures, and the offers."""
        self._traits: dict[frozenset[str], str] = {}

    def text(self, record: ProviderRecord) -> bytes:
        """Return one member."""
        provider, held, version = record.provider, record.inventories, self._version
        assert isinstance(held, Inventories)  # those of a catalog are packed
        kind = self._kinds.get(id(held.offers))
        if kind is None:
            kind = self._kinds[id(held.offers)] = self._kind(held.offers)
        template, places, _ = kind
        own = held.own_figures()
        text = template % tuple([own[place] for place in places])
        if version >= TRAITS_SINCE:
            traits = self._traits.get(record.tags.traits)
            if traits is None:
                listed = traits_in_order(self._catalog, record.tags.traits)
                traits = self._traits[record.tags.traits] = msgspec.json.encode(listed).decode()
            text = f'{text},"traits":{traits}'
        if version >= TREES_SINCE:
            parent = "null" if provider.parent is None else f'"{provider.parent}"'
            text = f'{text},"parent_provider_uuid":{parent},"root_provider_uuid":"{provider.root}"'
        return f'"{provider.uuid}":{{{text}}}'.encode()

    def _kind(
        self, offers: tuple[InventoryFigures, ...]
    ) -> tuple[str, list[int], tuple[InventoryFigures, ...]]:
        numbers = {offer.name: number for number, offer in enumerate(offers)}
        names = [
            name
            for name in classes_in_order(self._catalog, numbers)
            if self._version >= ALL_CLASSES_SINCE or name in self._wanted
        ]
        members = [
            f'"{name}":{{"capacity":{offers[numbers[name]].units},"used":%d}}' for name in names
        ]
        places = [OWN * numbers[name] for name in names]
        return f'"resources":{{{",".join(members)}}}', places, offers


BY_PROVIDER_SINCE = 12
MAPPINGS_SINCE = 34

ANY_PROVIDER = ProviderId("\0")
"""Stands for a provider in a text; no text has this character."""

SUMS_MAX = 1_024
"""Encoded sums that are kept: a long answer exists for as long as its client reads it."""


def requests_writer(
    catalog: Catalog, query: CandidateQuery, version: int
) -> Callable[[Sequence[Pick]], bytes]:
    """Return a function that encodes some members of `allocation_requests` at a time."""
    layout = _Layout(catalog, query)
    entry = layout.entry
    if version < MAPPINGS_SINCE:
        entry = layout.entry_by_provider if version >= BY_PROVIDER_SINCE else layout.entry_listed
    # Most candidates have one provider: their texts differ only in its UUID.
    around = entry((ANY_PROVIDER,) * layout.terms).split(ANY_PROVIDER)

    def write(picks: Sequence[Pick]) -> bytes:
        texts = [
            each[0].join(around) if each.count(each[0]) == len(each) else entry(each)
            for each in picks
        ]
        return ",".join(texts).encode()

    return write


class _Layout:
    """The order of one answer.

    Candidates repeat the same few sums of resources, so each is encoded once. A bit set identifies
    the resources that a provider contributes. UUIDs and suffixes need no escapes.
    """

    def __init__(self, catalog: Catalog, query: CandidateQuery) -> None:
        self._wanted: list[dict[str, int]] = []
        """Requested resources by bit number."""
        self._giving: list[tuple[int, int]] = []
        """The term number of each bit, and the bit."""
        self._groups: list[tuple[str, int, int]] = []
        """Suffix of each group, its first term, and the term after its last one."""
        self._texts: dict[int, str] = {}
        numbered = catalog.is_nested or bool(catalog.sharing)
        at = 0
        for group in query.groups:
            # As in `terms`: the unsuffixed group has one term per class, any other group has one.
            names = list(group.resources)
            size = 1 if group.suffix else len(names)
            if group.suffix and names:
                self._give(at, group.resources)
            elif not group.suffix:
                for name in classes_in_order(catalog, names) if numbered else names:
                    self._give(at + names.index(name), {name: group.resources[name]})
            self._groups.append((group.suffix, at, at + size))
            at += size
        self.terms = at
        """The providers of each candidate, one per term."""

    def _give(self, term: int, resources: dict[str, int]) -> None:
        self._giving.append((term, 1 << len(self._wanted)))
        self._wanted.append(resources)

    def entry(self, pick: Pick) -> str:
        """Return a candidate."""
        return f'{{"allocations":{{{self._members(pick)}}},"mappings":{{{self._mappings(pick)}}}}}'

    def entry_by_provider(self, pick: Pick) -> str:
        """Return a candidate before 1.34."""
        return f'{{"allocations":{{{self._members(pick)}}}}}'

    def entry_listed(self, pick: Pick) -> str:
        """Return a candidate before 1.12."""
        listed = ",".join(
            [
                f'{{"resource_provider":{{"uuid":"{provider}"}},"resources":{self._sum(bits)}}}'
                for provider, bits in self._given(pick).items()
            ]
        )
        return f'{{"allocations":[{listed}]}}'

    def _members(self, pick: Pick) -> str:
        return ",".join(
            [
                f'"{provider}":{{"resources":{self._sum(bits)}}}'
                for provider, bits in self._given(pick).items()
            ]
        )

    def _mappings(self, pick: Pick) -> str:
        return ",".join(
            [
                f'"{suffix}":["{pick[at]}"]'
                if end - at == 1
                else f'"{suffix}":["' + '","'.join(dict.fromkeys(pick[at:end])) + '"]'
                for suffix, at, end in self._groups
            ]
        )

    def _given(self, pick: Pick) -> dict[ProviderId, int]:
        """Return the providers in order, each with the bits of the resources it contributes."""
        given: dict[ProviderId, int] = {}
        for term, bit in self._giving:
            provider = pick[term]
            given[provider] = given.get(provider, 0) | bit
        return given

    def _sum(self, bits: int) -> str:
        """Return the sum of these bits' resources, as JSON."""
        text = self._texts.get(bits)
        if text is None:
            text = msgspec.json.encode(summed(self._wanted, bits)).decode()
            if len(self._texts) < SUMS_MAX:
                self._texts[bits] = text
        return text
