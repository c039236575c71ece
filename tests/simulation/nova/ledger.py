"""A naive ledger: dictionaries, with generations as Placement has them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.wire.providers import Allocated, ConsumerShown, InventoryShown, ProviderShown

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass
class Provider:
    """A provider; `totals` by class. `ratio`: of all its inventories."""

    uuid: str
    name: str
    root: str
    parent: str | None = None
    totals: dict[str, int] = field(default_factory=dict)
    traits: list[str] = field(default_factory=list)
    reported: dict[str, list[str]] = field(default_factory=dict)
    generation: int = 0
    updated: float = 0.0


@dataclass
class Consumer:
    """A consumer."""

    uuid: str
    type: str | None
    holdings: dict[str, dict[str, int]]
    generation: int
    updated: float


class NaiveLedger:
    """The ledger of a world: Nova writes it, an audit reads it.

    `pause`: what lies between a request and its answer. `now`: seconds since the beginning.
    """

    def __init__(self, now: Callable[[], float], pause: Callable[[], Awaitable[Any]]) -> None:
        self._now, self._pause = now, pause
        self.provided: dict[str, Provider] = {}
        self.held: dict[str, Consumer] = {}
        self.used: dict[str, dict[str, int]] = {}
        self.on: dict[str, dict[str, None]] = {}
        """The consumers on each provider."""

    def add(self, provider: Provider) -> Provider:
        """Add a provider."""
        self.provided[provider.uuid] = provider
        return provider

    def write(
        self, holdings: Mapping[str, Mapping[str, Mapping[str, int]]], type_: str | None = None
    ) -> None:
        """See `operations.Ledger`."""
        for uuid, wanted in holdings.items():
            old = self.held.pop(uuid, None)
            self._count(old.holdings if old else {}, -1)
            for provider in old.holdings if old else ():
                del self.on[provider][uuid]
            if not wanted:
                continue
            copied = {provider: dict(classes) for provider, classes in wanted.items()}
            generation = old.generation + 1 if old else 1
            kind = old.type if old else type_
            self.held[uuid] = Consumer(uuid, kind, copied, generation, self._now())
            self._count(copied, 1)
            for provider in copied:
                self.on.setdefault(provider, {})[uuid] = None

    def _count(self, holdings: Mapping[str, Mapping[str, int]], sign: int) -> None:
        for provider, classes in holdings.items():
            used = self.used.setdefault(provider, {})
            for name, amount in classes.items():
                used[name] = used.get(name, 0) + sign * amount
            if provider in self.provided:
                self.provided[provider].generation += 1
                self.provided[provider].updated = self._now()

    def read(self, consumer: str) -> Mapping[str, Mapping[str, int]]:
        """See `operations.Ledger`."""
        found = self.held.get(consumer)
        return {} if found is None else found.holdings

    def classes_on(self, provider: str) -> dict[str, list[str]]:
        """Return the classes by consumer of a provider."""
        return {uuid: [*self.held[uuid].holdings[provider]] for uuid in self.on.get(provider, ())}

    async def providers(self) -> AsyncIterator[ProviderShown]:
        """See `LedgerReads`; pages are of different moments."""
        for number, one in enumerate([*self.provided.values()]):
            if number % 1_000 == 0:
                await self._asked()
            yield self._provider(one)

    async def consumers(self) -> AsyncIterator[ConsumerShown]:
        """See `LedgerReads`; pages are of different moments."""
        for number, uuid in enumerate(sorted(self.held)):
            if number % 1_000 == 0:
                await self._asked()
            if (found := self.held.get(uuid)) is not None:
                yield self._consumer(found)

    async def provider(self, uuid: str) -> ProviderShown | None:
        """See `LedgerReads`."""
        await self._asked()
        found = self.provided.get(uuid)
        return None if found is None else self._provider(found)

    async def consumer(self, uuid: str) -> ConsumerShown | None:
        """See `LedgerReads`."""
        await self._asked()
        found = self.held.get(uuid)
        return None if found is None else self._consumer(found)

    async def _asked(self) -> None:
        await self._pause()

    def _provider(self, one: Provider) -> ProviderShown:
        used = self.used.get(one.uuid, {})
        return ProviderShown(
            uuid=one.uuid,
            name=one.name,
            generation=one.generation,
            parent=one.parent,
            root=one.root,
            inventories={
                name: InventoryShown(
                    total=total,
                    reserved=0,
                    min_unit=1,
                    max_unit=total,
                    step_size=1,
                    allocation_ratio=1.0,
                    offered=None,
                    used=used.get(name, 0),
                    capacity=0,
                    free=0,
                )
                for name, total in one.totals.items()
            },
            traits=one.traits,
            aggregates=[],
            reported=one.reported,
            agent=None,
            withheld=None,
            created_at=BEGIN,
            updated_at=BEGIN + timedelta(seconds=one.updated),
        )

    def _consumer(self, one: Consumer) -> ConsumerShown:
        return ConsumerShown(
            uuid=one.uuid,
            generation=one.generation,
            project="p1",
            user="u1",
            type=one.type,
            allocations=[
                Allocated(provider=provider, name=None, resources=dict(classes))
                for provider, classes in one.holdings.items()
            ],
            created_at=BEGIN,
            updated_at=BEGIN + timedelta(seconds=one.updated),
        )
