"""Drawn ledgers, the rows in which they differ, and what a server lists."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec import structs

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Error
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.imported_rows import ProviderImage, Rows
from moorage.core.ledger.model import Consumer, CustomName, Inventory
from moorage.service.app import Service
from moorage.service.ledger.imports import Imports
from tests.service.running import consumer_id, provider_id

CLASSES = ("VCPU", "DISK_GB", "CUSTOM_A", "CUSTOM_B", "CUSTOM_C")
TRAITS = ("STORAGE_DISK_SSD", "CUSTOM_S", "CUSTOM_T")
NAMES = [f"name {n}" for n in range(7)] + ["Zürich", "名前", "😀 host"]
PROVIDERS_MAX = 7
CONSUMERS_MAX = 9
PAGE = 3


@dataclass
class Ledger:
    """All rows of a ledger, by name or UUID."""

    classes: dict[str, CustomName] = field(default_factory=dict)
    traits: dict[str, CustomName] = field(default_factory=dict)
    providers: dict[ProviderId, ProviderImage] = field(default_factory=dict)
    consumers: dict[ConsumerId, Consumer] = field(default_factory=dict)

    def drifted(self, choice: random.Random) -> "Ledger":
        """Return a ledger in which some of these rows are as before, and others are not."""
        other = drawn(choice)
        for uuid, image in self.providers.items():
            mine = other.providers.get(uuid)
            if mine is not None and mine.inventories == image.inventories:
                kept = structs.replace(mine, generation=image.generation)
                other.providers[uuid] = kept
        for key, consumer in self.consumers.items():
            if key in other.consumers and _fits(other, consumer) and choice.random() < 0.6:
                other.consumers[key] = consumer
        return other


def _fits(ledger: Ledger, consumer: Consumer) -> bool:
    return all(
        uuid in ledger.providers and held.keys() <= ledger.providers[uuid].inventories.keys()
        for uuid, held in consumer.allocations.items()
    )


def drawn(choice: random.Random) -> Ledger:
    """Draw a consistent ledger: over capacity, with generations and times of any order."""
    made = Ledger()
    for words, rows in ((CLASSES, made.classes), (TRAITS, made.traits)):
        for name in words:
            if name.startswith("CUSTOM_") and choice.random() < 0.8:
                rows[name] = CustomName(name, *_times(choice))
    classes = [name for name in CLASSES if name in made.classes or not name.startswith("CUSTOM")]
    traits = [name for name in TRAITS if name in made.traits or not name.startswith("CUSTOM")]
    uuids = [provider_id(n) for n in range(PROVIDERS_MAX) if choice.random() < 0.8]
    choice.shuffle(uuids)
    names = choice.sample(NAMES, len(uuids))
    for at, (uuid, name) in enumerate(zip(uuids, names, strict=True)):
        made.providers[uuid] = ProviderImage(
            uuid=uuid,
            name=name,
            generation=choice.randrange(5),
            parent=choice.choice(uuids[:at]) if at and choice.random() < 0.6 else None,
            created_at=_time(choice),
            updated_at=_time(choice),
            inventories={name: _inventory(choice) for name in _some(choice, classes)},
            traits=frozenset(_some(choice, traits)),
            aggregates=frozenset(AggregateId(provider_id(n)) for n in _some(choice, range(90, 93))),
        )
    offered = {uuid: [*one.inventories] for uuid, one in made.providers.items() if one.inventories}
    for n in range(CONSUMERS_MAX if offered else 0):
        if choice.random() < 0.8:
            made.consumers[consumer_id(n)] = _consumer(choice, consumer_id(n), offered)
    return made


def _consumer(
    choice: random.Random, uuid: ConsumerId, offered: dict[ProviderId, list[str]]
) -> Consumer:
    on = choice.sample(sorted(offered), min(len(offered), choice.randint(1, 2)))
    return Consumer(
        uuid=uuid,
        generation=choice.randrange(4),
        project_id=choice.choice(["0", "unknown", "project", "Проект"]),
        user_id=choice.choice(["0", "user"]),
        consumer_type=choice.choice([None, "INSTANCE", "MIGRATION"]),
        allocations={
            one: {name: choice.randint(1, 40) for name in _some(choice, offered[one], 1)}
            for one in on
        },
        created_at=_time(choice),
        updated_at=_time(choice),
    )


def _inventory(choice: random.Random) -> Inventory:
    return Inventory(
        total=choice.randrange(20),
        reserved=choice.randrange(9),
        min_unit=choice.randint(1, 3),
        max_unit=choice.randint(1, 20),
        step_size=choice.randint(1, 2),
        allocation_ratio=choice.choice([0.5, 1.0, 16.0]),
        created_at=_time(choice),
        updated_at=_time(choice),
    )


def _time(choice: random.Random) -> Instant:
    return Instant(choice.randrange(1_500_000_000, 1_600_000_000) * SECOND + choice.randrange(9))


def _times(choice: random.Random) -> tuple[Instant, Instant]:
    return _time(choice), _time(choice)


def _some(choice: random.Random, of: Iterable[Any], least: int = 0) -> list[Any]:
    everything = [*of]
    return choice.sample(everything, choice.randint(min(least, len(everything)), len(everything)))


async def listed(service: Service) -> Ledger:
    """Return all rows of a server, page by page."""
    found = Ledger()
    for kind, rows in (("classes", found.classes), ("traits", found.traits)):
        after: str | None = ""
        while after is not None:
            _, names, after = await service.imports.names(kind, after, PAGE)
            rows.update((one.name, one) for one in names)
    after = ""
    while after is not None:
        _, providers, after = await service.imports.providers(after, PAGE)
        for provider, inventories, tags in providers:
            found.providers[provider.uuid] = ProviderImage(
                provider.uuid,
                provider.name,
                provider.generation,
                provider.parent,
                provider.created_at,
                provider.updated_at,
                {name: structs.replace(one, used=0) for name, one in inventories.items()},
                tags.traits,
                tags.aggregates,
            )
    after = ""
    while after is not None:
        _, consumers, after = await service.imports.consumers(ConsumerId(after), PAGE)
        found.consumers.update((one.uuid, one) for one in consumers)
    return found


Piece = tuple[str, Any]
"""A member of `Rows`, and a row or key of it."""


def differences(there: Ledger, wanted: Ledger) -> list[Piece]:
    """Return the rows in which a ledger lacks what is wanted, and those that it should not have."""
    pieces: list[Piece] = []
    for kind in ("classes", "traits", "providers", "consumers"):
        have, want = getattr(there, kind), getattr(wanted, kind)
        pieces += [(kind, row) for key, row in want.items() if have.get(key) != row]
        pieces += [(f"gone_{kind}", key) for key in have if key not in want]
    return pieces


def rows_of(pieces: Iterable[Piece]) -> Rows:
    """Return pieces as one request."""
    given: dict[str, Any] = {}
    for member, value in pieces:
        if member.startswith("gone_"):
            given[member] = given.get(member, frozenset()) | {value}
        else:
            key = value.name if member in ("classes", "traits") else value.uuid
            given.setdefault(member, {})[key] = value
    return Rows(**given)


class Importing(Protocol):
    """What takes rows."""

    @property
    def imports(self) -> Imports:
        """The imports of a service."""
        ...


async def sent_in_any_order(
    service: Importing, pieces: list[Piece], choice: random.Random, *, often: float = 0.3
) -> int:
    """Send pieces in chunks of any size and order, some of them twice; return how many it took.

    A refused chunk waits for the others. If all are refused, they are sent together.
    """
    choice.shuffle(pieces)
    chunks = []
    while pieces:
        size = choice.randint(1, 5)
        chunks.append(pieces[:size])
        pieces = pieces[size:]
    sent = 0
    while chunks:
        refused = []
        for chunk in chunks:
            try:
                await service.imports.write(rows_of(chunk))
                sent += 1
            except Error:
                refused.append(chunk)
                continue
            if choice.random() < often:
                await service.imports.write(rows_of(chunk))
        if len(refused) == len(chunks):
            refused = [[piece for chunk in refused for piece in chunk]]
            if len(chunks) == 1:
                await service.imports.write(rows_of(refused[0]))
                return sent + 1
        chunks = refused
    return sent
