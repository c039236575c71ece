"""Queries that read rows of the ledger.

Queries for providers, traits and candidates are answered by the index instead.
"""

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.model import Consumer
from moorage.service import errors
from moorage.service.pages import page_of, rows_to_read
from moorage.store.api import Engine
from moorage.store.ledger import reads as ledger_reads
from moorage.store.ledger.reads import ProviderAllocation, Usages

__all__ = ["LedgerQueries", "ProviderAllocation", "Usages"]


class LedgerQueries:
    """Queries for consumers and allocations, each answered from one snapshot.

    Each raises `Error`: UNAVAILABLE if the database cannot answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def consumer(self, uuid: ConsumerId) -> Consumer | None:
        """Return a consumer with its allocations, or None if it has none."""
        with errors.translated():
            return await self._engine.read(ledger_reads.consumer_load(uuid))

    async def provider_allocations(self, provider: ProviderId) -> list[ProviderAllocation]:
        """Return all allocations on one provider, by consumer."""
        with errors.translated():
            return await self._engine.read_aside(ledger_reads.provider_allocations_load(provider))

    async def providers_page(
        self, cursor: str | None, limit: int
    ) -> tuple[list[ProviderId], str | None]:
        """Return providers in the order of their UUIDs, and the cursor of the next page or None.

        Raises `Error`: INVALID for a wrong limit.
        """
        rows_max = rows_to_read(limit)
        after = ProviderId(cursor or "")
        with errors.translated():
            found = await self._engine.read(ledger_reads.providers_window(after, rows_max))
        return page_of(found, limit, lambda uuid: uuid)

    async def usages(self, project_id: str, user_id: str | None = None) -> Usages:
        """Sum the allocations of a project, or of one user in it, by consumer type and class."""
        with errors.translated():
            return await self._engine.read_aside(ledger_reads.usages_load(project_id, user_id))
