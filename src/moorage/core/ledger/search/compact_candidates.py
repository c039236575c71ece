"""Compact candidates: tuples of the providers that serve each term (picks).

An answer may have a hundred thousand candidates. Dicts would take five times as much memory, and
the garbage collector would visit all of them; so dicts are built from picks when they are read.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import overload

from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import Candidate, Pick
from moorage.core.ledger.search.groups import GroupPart

SUMS_MAX = 4_096
"""Sums of terms that are cached."""


def summed(amounts: Sequence[dict[str, int]], bits: int) -> dict[str, int]:
    """Add up the amounts whose numbers are set in `bits`, by resource class."""
    total: dict[str, int] = {}
    for number, resources in enumerate(amounts):
        if bits >> number & 1:
            for name, amount in resources.items():
                total[name] = total.get(name, 0) + amount
    return total


class CandidateBuilder:
    """Builds candidates of one query from picks. They share their amounts: do not modify them.

    Args:
        terms: The terms of the query; those of a group are adjacent.
    """

    def __init__(self, terms: list[GroupPart]) -> None:
        self._amounts = [term.resources for term in terms]
        self._all_give = all(self._amounts)
        self._bits = [1 << number if term.resources else 0 for number, term in enumerate(terms)]
        self._sums: dict[int, dict[str, int]] = {}
        self._whole = self._sum(sum(self._bits))
        self._groups: list[tuple[str, int, int]] = []
        for number, term in enumerate(terms):
            if self._groups and self._groups[-1][0] == term.suffix:
                self._groups[-1] = (term.suffix, self._groups[-1][1], number + 1)
            else:
                self._groups.append((term.suffix, number, number + 1))
        self._suffixes = [suffix for suffix, _, _ in self._groups]

    def candidate(self, pick: Pick) -> Candidate:
        """Return the candidate: amounts by provider, and providers by group."""
        first = pick[0]
        if pick.count(first) == len(pick):
            return Candidate({first: self._whole}, dict.fromkeys(self._suffixes, (first,)))
        if self._all_give and len(set(pick)) == len(pick):
            allocations = dict(zip(pick, self._amounts, strict=True))
        else:
            allocations = self._shared_out(pick)
        if len(self._suffixes) == len(pick):
            # One term per group: `zip` makes the one-element tuples.
            mappings: dict[str, Pick] = dict(zip(self._suffixes, zip(pick), strict=True))
        else:
            mappings = {
                suffix: pick[at:end] if end - at == 1 else tuple(dict.fromkeys(pick[at:end]))
                for suffix, at, end in self._groups
            }
        return Candidate(allocations, mappings)

    def _shared_out(self, pick: Pick) -> dict[ProviderId, dict[str, int]]:
        """Return amounts by provider, if one serves several terms or one without resources."""
        given: dict[ProviderId, int] = {}
        for uuid, bit in zip(pick, self._bits, strict=True):
            if bit:
                given[uuid] = given.get(uuid, 0) | bit
        sums = self._sums
        return {uuid: sums.get(bits) or self._sum(bits) for uuid, bits in given.items()}

    def _sum(self, bits: int) -> dict[str, int]:
        """Return the sum of some terms."""
        total = summed(self._amounts, bits)
        if len(self._sums) < SUMS_MAX:
            self._sums[bits] = total
        return total


class Picks(Sequence[Candidate]):
    """Candidates that are built from their picks each time they are read."""

    def __init__(self, terms: list[GroupPart], picks: list[Pick]) -> None:
        self._terms = terms
        self._picks = picks

    @cached_property
    def _spelled(self) -> Callable[[Pick], Candidate]:
        return CandidateBuilder(self._terms).candidate

    def __len__(self) -> int:
        return len(self._picks)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | list[Candidate]:
        if isinstance(index, slice):
            return list(map(self._spelled, self._picks[index]))
        return self._spelled(self._picks[index])

    def __iter__(self) -> Iterator[Candidate]:
        return map(self._spelled, self._picks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment] # it compares by content
