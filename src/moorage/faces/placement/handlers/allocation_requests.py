"""Encodes candidates as `allocation_requests`, in the order of the original.

Groups are in the order of the query. Providers, and the classes of each, are ordered by the first
resource that they contribute. Within a suffixed group that is the order of the query; in the
unsuffixed one it is the order of the classes' numbers if any provider is in a tree or shares.
"""

from collections.abc import Callable, Sequence

import msgspec

from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import CandidateQuery, Pick
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.compact_candidates import summed
from moorage.faces.placement.order import classes_in_order

BY_PROVIDER_SINCE = 12
MAPPINGS_SINCE = 34

SUMS_MAX = 1_024
"""Encoded sums that are kept: a long answer exists for as long as its client reads it."""


def requests_writer(
    catalog: Catalog, query: CandidateQuery, version: int
) -> Callable[[Sequence[Pick]], bytes]:
    """Return a function that encodes some members of `allocation_requests` at a time."""
    layout = _Layout(catalog, query)

    def write(picks: Sequence[Pick]) -> bytes:
        if version >= MAPPINGS_SINCE:
            texts = [
                f'{{"allocations":{{{layout.members(each)}}},'
                f'"mappings":{{{layout.mappings(each)}}}}}'
                for each in picks
            ]
        elif version >= BY_PROVIDER_SINCE:
            texts = [f'{{"allocations":{{{layout.members(each)}}}}}' for each in picks]
        else:
            texts = [f'{{"allocations":[{layout.listed(each)}]}}' for each in picks]
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
        self._whole = self._sum((1 << len(self._wanted)) - 1)

    def _give(self, term: int, resources: dict[str, int]) -> None:
        self._giving.append((term, 1 << len(self._wanted)))
        self._wanted.append(resources)

    def members(self, pick: Pick) -> str:
        """Return the members of `allocations`."""
        if pick.count(pick[0]) == len(pick):
            return f'"{pick[0]}":{{"resources":{self._whole}}}'
        return ",".join(
            [
                f'"{provider}":{{"resources":{self._sum(bits)}}}'
                for provider, bits in self._given(pick).items()
            ]
        )

    def listed(self, pick: Pick) -> str:
        """Return the items of `allocations` before 1.12."""
        return ",".join(
            [
                f'{{"resource_provider":{{"uuid":"{provider}"}},"resources":{self._sum(bits)}}}'
                for provider, bits in self._given(pick).items()
            ]
        )

    def mappings(self, pick: Pick) -> str:
        """Return the members of `mappings`."""
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
