"""How candidates are written: each with its amounts and mappings in the original's order.

Groups stand in the order of the query. A provider stands where the first thing it gives does; so
do its classes. Within a suffixed group that is the order of the query; in the unsuffixed one it is
that of the classes' numbers, as soon as any provider is in a tree or shares.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import Candidate, CandidateQuery, Group
from moorage.core.ledger.search import Fleet
from moorage.faces.placement.order import classes_in_order

BY_PROVIDER_SINCE = 12
MAPPINGS_SINCE = 34


class _Part(NamedTuple):
    """One group of the query, and the bits of what it asks for.

    The unsuffixed group has a bit for each of its classes, as each may come from another provider.
    """

    suffix: str
    bits: int
    by_class: tuple[tuple[str, int], ...]


def requests_writer(
    fleet: Fleet, query: CandidateQuery, version: int
) -> Callable[[Sequence[Candidate]], bytes]:
    """Return what writes members of `allocation_requests`, some at a time."""
    layout = _Layout(fleet, query)

    def write(candidates: Sequence[Candidate]) -> bytes:
        if version >= MAPPINGS_SINCE:
            texts = [
                f'{{"allocations":{{{layout.members(each)}}},'
                f'"mappings":{{{layout.mappings(each)}}}}}'
                for each in candidates
            ]
        elif version >= BY_PROVIDER_SINCE:
            texts = [f'{{"allocations":{{{layout.members(each)}}}}}' for each in candidates]
        else:
            texts = [f'{{"allocations":[{layout.listed(each)}]}}' for each in candidates]
        return ",".join(texts).encode()

    return write


class _Layout:
    """The order of one answer.

    Candidates give the same few sums again and again, so each is written once: a provider's sum is
    told by the bits of what it gives. UUIDs and suffixes need no escapes.
    """

    def __init__(self, fleet: Fleet, query: CandidateQuery) -> None:
        self._wanted: list[dict[str, int]] = []
        """What is asked for, by the number of the bit."""
        numbered = fleet.is_nested or bool(fleet.sharing)
        self._parts = [self._part(fleet, group, numbered) for group in query.groups]
        self._resources = {group.suffix: group.resources for group in query.groups}
        self._texts: dict[int, str] = {}
        self._only = self._parts[0].bits if len(self._parts) == 1 else 0
        """What a candidate's only provider gives, where there is only one group."""

    def _part(self, fleet: Fleet, group: Group, numbered: bool) -> _Part:
        if not group.resources:
            return _Part(group.suffix, 0, ())
        if group.suffix:
            return _Part(group.suffix, self._bit(group.resources), ())
        names = classes_in_order(fleet, group.resources) if numbered else list(group.resources)
        by_class = tuple((name, self._bit({name: group.resources[name]})) for name in names)
        return _Part("", sum(bit for _, bit in by_class), by_class)

    def _bit(self, resources: dict[str, int]) -> int:
        self._wanted.append(resources)
        return 1 << (len(self._wanted) - 1)

    def members(self, candidate: Candidate) -> str:
        """Return the members of `allocations`."""
        if self._only and len(candidate.allocations) == 1:
            (provider,) = candidate.allocations
            return f'"{provider}":{{"resources":{self._sum(self._only)}}}'
        return ",".join(
            [
                f'"{provider}":{{"resources":{self._sum(bits)}}}'
                for provider, bits in self._given(candidate).items()
            ]
        )

    def listed(self, candidate: Candidate) -> str:
        """Return the items of `allocations` before 1.12."""
        return ",".join(
            [
                f'{{"resource_provider":{{"uuid":"{provider}"}},"resources":{self._sum(bits)}}}'
                for provider, bits in self._given(candidate).items()
            ]
        )

    def mappings(self, candidate: Candidate) -> str:
        """Return the members of `mappings`."""
        mappings = candidate.mappings
        if self._only and len(candidate.allocations) == 1:
            ((suffix, (provider,)),) = mappings.items()
            return f'"{suffix}":["{provider}"]'
        return ",".join(
            [f'"{suffix}":["' + '","'.join(mappings[suffix]) + '"]' for suffix, _, _ in self._parts]
        )

    def _given(self, candidate: Candidate) -> dict[ProviderId, int]:
        """Return the providers in order, each with the bits of what it gives."""
        if self._only and len(candidate.allocations) == 1:
            return dict.fromkeys(candidate.allocations, self._only)
        given: dict[ProviderId, int] = {}
        for suffix, bits, by_class in self._parts:
            if not bits:
                continue
            providers = candidate.mappings[suffix]
            if len(providers) == 1:
                given[providers[0]] = given.get(providers[0], 0) | bits
                continue
            for name, bit in by_class:
                provider = self._giver(candidate, providers, name)
                given[provider] = given.get(provider, 0) | bit
        return given

    def _giver(
        self, candidate: Candidate, providers: tuple[ProviderId, ...], name: str
    ) -> ProviderId:
        """Return which provider gives a class of the unsuffixed group."""
        having = [each for each in providers if name in candidate.allocations[each]]
        for provider in having[1:]:
            suffixed = sum(
                self._resources[suffix].get(name, 0)
                for suffix, serving in candidate.mappings.items()
                if suffix and provider in serving
            )
            if candidate.allocations[provider][name] > suffixed:
                return provider
        return having[0]

    def _sum(self, bits: int) -> str:
        """Return what these bits come to, as JSON."""
        text = self._texts.get(bits)
        if text is None:
            total: dict[str, int] = {}
            for number, resources in enumerate(self._wanted):
                if bits >> number & 1:
                    for name, amount in resources.items():
                        total[name] = total.get(name, 0) + amount
            text = self._texts[bits] = msgspec.json.encode(total).decode()
        return text
