"""Sharing providers: they can serve other trees that are in one of their aggregates."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.groups import Rows


class SharingProvider(NamedTuple):
    """A sharing provider that can serve other trees; `serves`: which of the terms."""

    record: ProviderRecord
    serves: list[bool]


class SharingProviders:
    """All sharing providers that can serve a query in other trees: their guests.

    Args:
        catalog: With the providers.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._invited: dict[ProviderId, SharingProvider] = {}
        self._welcome = dict(catalog.sharing)
        self.by_aggregate: dict[AggregateId, list[SharingProvider]] = {}

    def __bool__(self) -> bool:
        return bool(self.by_aggregate)

    def invite(self, serving: Callable[[Chunk], list[Rows]]) -> Iterator[None]:
        """Find the present guests, in pieces; later calls examine only those that have changed.

        `serving` returns the rows of a chunk that can serve each term.

        A provider that starts sharing, or joins its first aggregate, during a search is left out:
        its own tree may have been searched before, and would give the same candidates.
        """
        invited: dict[ProviderId, SharingProvider] = {}
        for uuid in list(self._welcome):
            record = self._catalog.record(uuid) if uuid in self._catalog.sharing else None
            if record is None or not record.tags.aggregates:
                del self._welcome[uuid]
                continue
            chunk, row = self._catalog.places[uuid]
            known = self._invited.get(uuid)
            if known is None or known.record is not record:
                masks = [rows.abroad for rows in serving(chunk)]
                known = SharingProvider(
                    record, [mask is not None and bool(mask[row]) for mask in masks]
                )
                yield
            invited[uuid] = known
        self._invited = invited
        self.by_aggregate = {}
        for guest in invited.values():
            if any(guest.serves):
                for aggregate in guest.record.tags.aggregates:
                    self.by_aggregate.setdefault(aggregate, []).append(guest)
                yield

    def forget(self) -> None:
        """Make the next call of `invite` examine all guests, including unchanged ones."""
        self._invited = {}

    def of(self, members: list[ProviderRecord]) -> list[SharingProvider]:
        """Return the guests of a tree, given its members: those that share an aggregate with it."""
        root = members[0].provider.root
        found: dict[ProviderId, SharingProvider] = {}
        for member in members:
            for aggregate in sorted(member.tags.aggregates):
                for guest in self.by_aggregate.get(aggregate, ()):
                    if guest.record.provider.root != root:
                        found[guest.record.provider.uuid] = guest
        return list(found.values())
