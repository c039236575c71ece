"""Sharing providers: they can serve other trees that are in one of their aggregates."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.search.block import Block
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.groups import Rows


class Guest(NamedTuple):
    """A sharing provider that can serve other trees, and which of the terms."""

    record: ProviderRecord
    serves: list[bool]


class Guests:
    """All sharing providers that can serve a query in other trees: its guests there.

    Args:
        fleet: Whose providers they are.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._invited: dict[ProviderId, Guest] = {}
        self._welcome = dict(fleet.sharing)
        self.by_aggregate: dict[AggregateId, list[Guest]] = {}

    def __bool__(self) -> bool:
        return bool(self.by_aggregate)

    def invite(self, serving: Callable[[Block], list[Rows]]) -> Iterator[None]:
        """Find the guests as of now, in pieces; later calls examine only those that have changed.

        `serving` returns the rows of a block that can serve each term.

        A provider that begins to share during a search, or to be in an aggregate, is left out: its
        own tree may have been searched before, and would give the same candidates.
        """
        invited: dict[ProviderId, Guest] = {}
        for uuid in list(self._welcome):
            record = self._fleet.record(uuid) if uuid in self._fleet.sharing else None
            if record is None or not record.tags.aggregates:
                del self._welcome[uuid]
                continue
            block, row = self._fleet.places[uuid]
            known = self._invited.get(uuid)
            if known is None or known.record is not record:
                masks = [rows.abroad for rows in serving(block)]
                known = Guest(record, [mask is not None and bool(mask[row]) for mask in masks])
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
        """Examine all guests anew with the next invitation, also those that have not changed."""
        self._invited = {}

    def of(self, members: list[ProviderRecord]) -> list[Guest]:
        """Return those of other trees that share an aggregate with a tree, given its members."""
        root = members[0].provider.root
        found: dict[ProviderId, Guest] = {}
        for member in members:
            for aggregate in sorted(member.tags.aggregates):
                for guest in self.by_aggregate.get(aggregate, ()):
                    if guest.record.provider.root != root:
                        found[guest.record.provider.uuid] = guest
        return list(found.values())
