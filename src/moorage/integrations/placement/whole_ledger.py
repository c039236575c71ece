"""All of our ledger, to be compared and to be written elsewhere: its rows, and what is offered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.integrations.placement.capacity_there import not_offered
from moorage.integrations.placement.ledger import Ledger
from moorage.integrations.placement.reading import Progress
from moorage.integrations.placement.rows import KINDS, Rows, encoded, key_of
from moorage.wire.operations import admin, fleet, leases, pools, reporting
from moorage.wire.operations import ledger as operations
from moorage.wire.operations.operation import Operation
from moorage.wire.pages import PAGE_MAX
from moorage.wire.providers import ProviderPage, ProviderShown

BEYOND: Mapping[str, tuple[Operation[Any], str]] = {
    "agents": (fleet.LIST_AGENTS, "agents"),
    "pools": (pools.LIST_POOLS, "pools"),
    "leases and tickets": (leases.LIST_LEASES, "leases"),
    "groups of reporters": (reporting.LIST_REPORTER_GROUPS, "groups"),
    "tokens": (admin.LIST_TOKENS, "tokens"),
}
"""What Moorage has and the original has not: how it is listed, and the member of a page."""


@dataclass(frozen=True)
class Read:
    """All rows, and the revision at which they were read; None: it rose meanwhile."""

    rows: Rows
    revision: str | None


class WholeLedger(Ledger):
    """The ledger of one server. Calls raise as those of `Imports`."""

    def read(self, progress: Progress) -> Read:
        """Return all rows."""
        found = Rows()
        revisions: set[str] = set()
        done = 0
        for kind in KINDS:
            rows = found.of(kind)
            for page in self._all(kind):
                revisions.add(page.revision)
                rows.update((key_of(row), encoded(row)) for row in getattr(page, kind))
                done += len(getattr(page, kind))
                progress("reading Moorage", done, 0)
        return Read(found, revisions.pop() if len(revisions) == 1 else None)

    def is_at(self, revision: str | None) -> bool:
        """Return whether nothing at all was committed since a revision."""
        return revision is not None and self.page("classes", limit=1).revision == revision

    def shown(self) -> Iterator[ProviderShown]:
        """Yield all providers, with what is offered of them."""
        for page in self._undecoded(operations.LIST_PROVIDERS):
            yield from msgspec.convert(page, ProviderPage).providers

    def offered(self) -> dict[tuple[str, str], int]:
        """Return what is offered less than an inventory says: the units of it that are not.

        By provider and resource class. The rule is that of capacity: nothing of a withheld provider
        is offered, and never more than there is.
        """
        return {
            (one.uuid, name): closed
            for one in self.shown()
            for name, inventory in one.inventories.items()
            if (closed := not_offered(inventory, withheld=one.withheld is not None))
        }

    def beyond(self) -> Mapping[str, int]:
        """Return how much there is of what the original has not."""
        return {
            what: count
            for what, (operation, member) in BEYOND.items()
            if (count := sum(len(page[member]) for page in self._undecoded(operation)))
        }

    def _undecoded(self, operation: Operation[Any]) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list as they were sent."""
        cursor: str | None = None
        while True:
            address = operation.address(query={"cursor": cursor, "limit": PAGE_MAX})
            page: dict[str, Any] = self._transport.request("GET", address)
            yield page
            if (cursor := page.get("next")) is None:
                return
