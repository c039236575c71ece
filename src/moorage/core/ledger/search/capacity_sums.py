"""Sums of inventories over all providers: by resource class, and by aggregate or trait as well."""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from typing import Literal, NamedTuple

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import largest_piece
from moorage.core.ledger.compact_inventories import OWN, Inventories, InventoryFigures
from moorage.core.ledger.draining import is_drained
from moorage.core.ledger.model import Provider, ProviderRecord, Tags
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.steps import Steps

Grouping = Literal["class", "aggregate", "trait"]

NO_GROUP = ""
"""The group of the sums by class, and of providers without an aggregate or trait."""

A_STEP = 256
"""Inventories that are summed up, or keys that are sorted, in one piece."""

Snapshot = list[Iterable[ProviderRecord | None]]
"""The records of each chunk of a catalog as of one moment; they are immutable."""


class Filled(NamedTuple):
    """A provider by how full it is; `order` is ascending for the emptiest."""

    order: float
    name: str
    uuid: str
    used: int
    capacity: int


class CapacitySum:
    """The sum of the inventories of one class, over all providers or those of a group.

    `held_back` are the reserved units. `capacity` is how many units may be allocated, `free` how
    many more: none where more are used than may be; `ratio` is the allocation ratio of all of
    them, None if they differ. `fullest` and `emptiest` are
    few, in this order; withheld providers, and those without capacity and usage, are neither.
    """

    __slots__ = (
        "capacity", "emptiest", "free", "fullest", "group", "held_back", "providers",
        "ratio", "resource_class", "total", "used",
    )  # fmt: skip

    def __init__(self, resource_class: str, group: str) -> None:
        self.resource_class = resource_class
        self.group = group
        self.providers = self.total = self.held_back = self.capacity = self.used = self.free = 0
        self.ratio: float | None = None
        self.fullest: list[Filled] = []
        self.emptiest: list[Filled] = []

    def add(self, provider: Provider, offer: InventoryFigures, used: int, ends: int) -> None:
        """Add an inventory; keep this many of the fullest and of the emptiest providers."""
        units, held_back = offer.units, offer.reserved
        if not self.providers:
            self.ratio = offer.allocation_ratio
        elif self.ratio != offer.allocation_ratio:
            self.ratio = None
        self.providers += 1
        self.total += offer.total
        self.held_back += held_back
        self.capacity += units
        self.used += used
        self.free += largest_piece(units, used, units)
        # A withheld one has no capacity: it would count as full, however little is used.
        if ends and provider.withheld is None and (units > 0 or used):
            fullness = used / offer.divisor
            _keep(self.fullest, -fullness, provider, used, units, ends)
            _keep(self.emptiest, fullness, provider, used, units, ends)


def _keep(
    kept: list[Filled], order: float, provider: Provider, used: int, units: int, ends: int
) -> None:
    """Keep a provider if it is one of the first; equally full ones are in the order of names."""
    if len(kept) == ends:
        last = kept[-1]
        if order > last.order or (order == last.order and provider.name > last.name):
            return
        kept.pop()
    insort(kept, Filled(order, provider.name, provider.uuid, used, units))


class Closed:
    """The providers at which something begins to be withheld: how many, and the first ones.

    Those that an operator has drained come first, then those that agents withhold; by name.
    """

    def __init__(self, most: int) -> None:
        """Begin with none; `most` are kept."""
        self.number = 0
        self._most = most
        self._first: list[tuple[bool, str, ProviderId, str]] = []

    def add(self, provider: Provider) -> None:
        """Count a provider if it is one of them."""
        withheld = provider.withheld
        if withheld is None or withheld.by != provider.uuid:
            return
        self.number += 1
        drained = is_drained(provider)
        insort(self._first, (not drained, provider.name, provider.uuid, withheld.reason))
        del self._first[self._most :]

    @property
    def first(self) -> Iterator[tuple[ProviderId, str, str]]:
        """The UUID, the name and the reason of each of the first."""
        return ((uuid, name, reason) for _, name, uuid, reason in self._first)


class ClassStock(NamedTuple):
    """The sums of a resource class over all providers."""

    resource_class: str
    used: int
    total: int


def stocks(chunks: Sequence[Chunk]) -> Steps[list[ClassStock]]:
    """Return the sums by class, that of most providers first, then by name; a chunk at a time.

    The chunks may change between two pieces: the sums are not those of one moment.
    """
    providers: Counter[str] = Counter()
    used: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for chunk in chunks:
        for offers, count in chunk.kinds():
            for offer in offers:
                providers[offer.name] += count
                total[offer.name] += count * offer.total
        for name, column in chunk.columns.items():
            used[name] += int(column.used.sum())
        yield
    ordered = sorted(providers, key=lambda name: (-providers[name], name))
    return [ClassStock(name, used[name], total[name]) for name in ordered]


def snapshot(catalog: Catalog) -> Snapshot:
    """Return all records as of now, in one piece: only references are copied."""
    return [chunk.held() for chunk in catalog.chunks]


def summed(
    records: Snapshot,
    by: Grouping,
    resource_class: str | None,
    ends: int,
    limit: int,
    closed: Closed | None = None,
) -> Steps[tuple[list[CapacitySum], int]]:
    """Return the sums, by class and group, and how many more than `limit` there are.

    A provider counts in each of its groups; those without are in the group `NO_GROUP`.
    `resource_class`: only this one. All providers are counted in `closed`.
    """
    sums: dict[tuple[str, str], CapacitySum] = {}
    done = 0
    for record in chain.from_iterable(records):
        done += 1
        if record is None:
            continue
        if closed is not None:
            closed.add(record.provider)
        for offer, group, used in _shares(record, by, resource_class):
            found = sums.get((offer.name, group))
            if found is None:
                found = sums[offer.name, group] = CapacitySum(offer.name, group)
            found.add(record.provider, offer, used, ends)
            done += 1
            if done >= A_STEP:
                done = 0
                yield
        if done >= A_STEP:
            done = 0
            yield
    first = yield from _first(list(sums), limit)
    return [sums[key] for key in first], len(sums) - len(first)


def _shares(
    record: ProviderRecord, by: Grouping, resource_class: str | None
) -> Iterator[tuple[InventoryFigures, str, int]]:
    """Yield the inventories of a provider, each with its usage, once for each group."""
    held, groups = record.inventories, _groups(record.tags, by)
    assert isinstance(held, Inventories)  # those of a catalog are packed
    for offer, used in zip(held.offers, held.own_figures()[::OWN], strict=True):
        if resource_class is None or offer.name == resource_class:
            for group in groups:
                yield offer, group, used


def _groups(tags: Tags, by: Grouping) -> Iterable[str]:
    if by == "class":
        return (NO_GROUP,)
    return (tags.traits if by == "trait" else tags.aggregates) or (NO_GROUP,)


def _first(keys: list[tuple[str, str]], limit: int) -> Steps[list[tuple[str, str]]]:
    """Return the first keys in their order."""
    parts = []
    for first in range(0, len(keys), A_STEP):
        parts.append(sorted(keys[first : first + A_STEP]))
        yield
    return list(islice(merge(*parts), limit))
