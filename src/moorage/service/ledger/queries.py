"""Queries that read rows of the ledger.

Queries for providers, traits and candidates are answered by the index instead.
"""

from msgspec import UNSET, Struct, UnsetType

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.model import Consumer
from moorage.service import errors
from moorage.service.caller_turns import CallerTurns
from moorage.service.pages import check_limit, page_of, rows_to_read
from moorage.store.api import Engine
from moorage.store.ledger import reads as ledger_reads
from moorage.store.ledger.reads import ProviderAllocation, Usages
from moorage.store.ledger.usages import (
    ROWS_MAX,
    Place,
    UsageFilter,
    UsageSum,
    UsageWindow,
    usages_window,
)

__all__ = ["LedgerQueries", "ProviderAllocation", "UsageFilter", "UsageSum", "Usages"]


UUID_LENGTH = 36

LOOKED_AT_MAX = 2_000
"""Consumers that are looked at for one page."""

SUMS_OF_ONE_MAX, SUMS_WAITING_MAX = 16, 256
"""Pages of sums of one caller, and of all, that run or wait: each reads all consumers that it is
about, in a thread that other reads need, too."""


class ConsumerFilter(Struct, frozen=True, kw_only=True):
    """Which consumers are meant; None: any."""

    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | UnsetType | None = UNSET
    """None: those without a type."""
    provider: ProviderId | None = None
    tree: ProviderId | None = None
    """They hold something of this provider, or of another one of its tree."""
    before: Instant | None = None
    """They were created at this time or before."""
    prefix: str = ""
    """How their UUIDs begin."""

    @property
    def is_of_window(self) -> bool:
        """Whether `consumers_window` loads no others than those that are meant."""
        places = (self.provider, self.tree, self.project_id)
        others = (self.user_id, self.before, self.prefix or None)
        return (
            sum(one is not None for one in places) <= 1
            and self.consumer_type is UNSET
            and all(one is None for one in others)
        )

    def is_beyond(self, consumer: Consumer) -> bool:
        """Return whether neither it nor any later one begins so."""
        return consumer.uuid[: len(self.prefix)] > self.prefix

    def fits(self, consumer: Consumer) -> bool:
        """Return whether a consumer is meant."""
        return (
            self.project_id in (None, consumer.project_id)
            and self.user_id in (None, consumer.user_id)
            and self.consumer_type in (UNSET, consumer.consumer_type)
            and (self.provider is None or self.provider in consumer.allocations)
            and (self.before is None or consumer.created_at <= self.before)
            and consumer.uuid.startswith(self.prefix)
        )


class ConsumersFound(Struct, frozen=True):
    """A page of consumers, the cursor of the next one or None, and the revision of both.

    `holders`: how many hold something of the provider or the tree, whatever else is wanted; None
    without such, and on later pages.
    """

    consumers: list[Consumer]
    following: str | None
    revision: str
    holders: int | None


class LedgerQueries:
    """Queries for consumers and allocations, each answered from one snapshot.

    Each raises `Error`: UNAVAILABLE if the database cannot answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sums, self._sums_of_one = (
            CallerTurns("sums", SUMS_OF_ONE_MAX, SUMS_WAITING_MAX) for _ in range(2)
        )
        """Of all projects, and of one: they share no thread."""

    async def consumer(self, uuid: ConsumerId) -> Consumer | None:
        """Return a consumer with its allocations, or None if it has none."""
        with errors.translated():
            return await self._engine.read(ledger_reads.consumer_load(uuid))

    async def consumer_places(
        self, uuid: ConsumerId
    ) -> tuple[Consumer | None, dict[ProviderId, int]]:
        """Return a consumer, and the generations of its providers, as of one moment.

        For those whose providers the index does not know yet, or no longer: they come and go in the
        transaction that moves allocations there.
        """
        with errors.translated():
            return await self._engine.read(ledger_reads.consumer_places_load(uuid))

    async def provider_allocations(self, provider: ProviderId) -> list[ProviderAllocation]:
        """Return all allocations on one provider, by consumer."""
        with errors.translated():
            return await self._engine.read_aside(ledger_reads.provider_allocations_load(provider))

    async def providers_page(
        self, cursor: str | None, limit: int, prefix: str = ""
    ) -> tuple[list[ProviderId], str | None]:
        """Return providers in the order of their UUIDs, and the cursor of the next page or None.

        `prefix`: only those whose UUIDs begin so. Raises `Error`: INVALID for a wrong limit.
        """
        rows_max = rows_to_read(limit)
        after = ProviderId(max(cursor or "", _before(prefix)))
        with errors.translated():
            found = await self._engine.read(ledger_reads.providers_window(after, rows_max))
        return page_of([one for one in found if one.startswith(prefix)], limit, lambda uuid: uuid)

    async def consumers_page(
        self, cursor: str | None, limit: int, wanted: ConsumerFilter
    ) -> ConsumersFound:
        """Return consumers in the order of their UUIDs, as of one revision.

        At most `LOOKED_AT_MAX` are looked at, so that a page may be short although others follow.

        Raises `Error`: INVALID for a wrong limit.
        """
        wanted_max = rows_to_read(limit) - 1
        least = 0 if wanted.is_of_window else LOOKED_AT_MAX
        rows_max = max(least, wanted_max + 1)
        after = ConsumerId(max(cursor or "", _before(wanted.prefix)))
        plan = ledger_reads.consumers_window(
            after, rows_max, wanted.provider, wanted.project_id, wanted.tree
        )
        with errors.translated():
            window = await self._engine.read_aside(plan)
        found, following = _page_of_those(wanted, window.consumers, wanted_max, rows_max)
        return ConsumersFound(found, following, window.revision, window.holders)

    async def usages_page(
        self, wanted: UsageFilter, after: Place, limit: int, *, who: str
    ) -> UsageWindow:
        """Sum up what consumers hold, as of one revision, at most `limit` sums after a place.

        Sums of all projects may take seconds, in the thread for reads that do. `who` asks: callers
        take turns.

        Raises `Error`: INVALID for a wrong limit; LIMIT_EXCEEDED, one sum has too many classes;
        OVERLOADED, too many wait.
        """
        check_limit(limit)
        plan, slow = usages_window(wanted, after, limit), wanted.project_id is None
        async with (self._sums if slow else self._sums_of_one).of(who):
            with errors.translated():
                window = await self._engine.read_aside(plan, slow=slow)
        if window.wide:
            raise Error(
                Code.LIMIT_EXCEEDED,
                f"One line would have more than {ROWS_MAX} resource classes: ask by class, or for"
                " one class.",
            )
        return window

    async def usages(self, project_id: str, user_id: str | None = None) -> Usages:
        """Sum the allocations of a project, or of one user in it, by consumer type and class."""
        with errors.translated():
            return await self._engine.read_aside(ledger_reads.usages_load(project_id, user_id))


def _page_of_those(
    wanted: ConsumerFilter, seen: list[Consumer], wanted_max: int, rows_max: int
) -> tuple[list[Consumer], str | None]:
    """Return the consumers that are meant, and the cursor of the next page or None."""
    found: list[Consumer] = []
    for at, consumer in enumerate(seen):
        if wanted.is_beyond(consumer):
            return found, None
        if wanted.fits(consumer):
            found.append(consumer)
            if len(found) == wanted_max and at + 1 < len(seen):
                return found, consumer.uuid
    return found, seen[-1].uuid if len(seen) == rows_max else None


def _before(prefix: str) -> str:
    """Return a text before all UUIDs that begin so, and after all that are less."""
    if len(prefix) < UUID_LENGTH:
        return prefix
    return prefix[:-1] + chr(ord(prefix[-1]) - 1)
