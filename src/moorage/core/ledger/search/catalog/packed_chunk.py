"""A chunk as bytes, to be stored in a file: `packed` makes them, `PackedRecords` reads them.

The records of a chunk are made when they are first read: most hosts of a large fleet are not needed
soon after a restart.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple
from zlib import compress, decompress

import numpy as np
from msgspec import Struct, msgpack
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.core.clock import Instant
from moorage.core.ids import AgentId, AggregateId, ProviderId
from moorage.core.ledger.compact_inventories import (
    NO_INVENTORIES,
    OWN,
    Inventories,
    InventoryFigures,
    InventoryPacker,
)
from moorage.core.ledger.model import (
    Inventory,
    Provider,
    ProviderRecord,
    Reported,
    Tags,
    Withheld,
)

Records = Sequence[ProviderRecord | None]
"""The records of a chunk by row."""

Kind = list[tuple[str, int, int, int, int, int, float, int | None, bool]]
"""The name and the common figures of each inventory that providers of one kind have."""


FAST = 1
"""The level of compression."""

Number = np.int32
"""The type of numbers that are at most the rows of a chunk."""


class _Later(Struct, frozen=True, array_like=True):
    """What only records need. Columns and lists have an entry for each used row."""

    moments: bytes
    """The columns of `Moments` one after another, as 64-bit integers."""
    agents: dict[int, AgentId]
    """By row, where one manages the provider."""
    withheld: dict[int, Withheld]
    """By row, where nothing is offered."""
    reported: dict[int, tuple[Reported, ...]]
    """By row, where reports have set something."""
    figures: list[bytes]
    """By kind: the own figures of its providers one after another, see `Inventories`."""


class _Packed(Struct, frozen=True, array_like=True):
    """The content of a chunk. Columns and lists have an entry for each used row."""

    size: int
    step: int
    uuids: list[ProviderId]
    names: list[str]
    places: bytes
    """The columns of `Places` one after another, of type `Number`."""
    below: dict[int, tuple[int, int]]
    """By row, for all except the roots: the row of the parent, and that of the root."""
    traits: list[frozenset[str]]
    """The different sets."""
    aggregates: list[frozenset[AggregateId]]
    """The different sets."""
    kinds: list[Kind]
    """The different combinations of inventories."""
    used: list[bytes]
    """By kind: the used amounts of its providers, one after another for each inventory."""
    later: bytes
    """Compressed: the times take most of the space, and many are alike."""


class Places(NamedTuple):
    """Columns of what determines the place of a provider in the columns of a chunk."""

    row: NDArray[np.int32]
    traits: NDArray[np.int32]
    """Which of the different sets."""
    aggregates: NDArray[np.int32]
    """Which of the different sets."""
    kind: NDArray[np.int32]
    """Which of the different combinations of inventories."""


class _Moments(NamedTuple):
    """Columns of the generations and times of providers."""

    generation: NDArray[np.int64]
    created_at: NDArray[np.int64]
    updated_at: NDArray[np.int64]
    tagged_at: NDArray[np.int64]
    """When the tags were changed."""


LAYOUT = [
    *(
        [one.__name__, *one.__struct_fields__]
        for one in (_Packed, _Later, Provider, Tags, Reported, Withheld)
    ),
    ["columns", *Places._fields, *_Moments._fields],
    ["InventoryFigures", *InventoryFigures._fields],
    ["numbers", np.dtype(np.int64).str],
]
"""What the bytes depend on: another release can read them only if it has the same."""


class Numbered(dict[Any, int]):
    """Numbers different things in the order in which they are looked up."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def packed(records: Records, step: int) -> bytes:
    """Return the records of a chunk as bytes; `step` is how many rows the chunk began with."""
    traits, aggregates, kinds = Numbered(), Numbered(), Numbered()
    all_offers: list[tuple[InventoryFigures, ...]] = []
    figures: list[list[bytes]] = []
    row_of: dict[ProviderId, int] = {}
    places, moments = [], []
    held = [(row, record) for row, record in enumerate(records) if record is not None]
    for row, record in held:
        provider, inventories, tags = record.provider, record.inventories, record.tags
        assert isinstance(inventories, Inventories)  # those of a catalog are packed
        row_of[provider.uuid] = row
        # By the id of the offers: providers of one kind share the object, and hashing takes longer.
        kind = kinds[id(inventories.offers)]
        if kind == len(figures):
            all_offers.append(inventories.offers)
            figures.append([])
        figures[kind].append(inventories.figures)
        places.append((row, traits[tags.traits], aggregates[tags.aggregates], kind))
        times = provider.created_at, provider.updated_at, tags.updated_at
        moments.append((provider.generation, *times))
    joined = [b"".join(those) for those in figures]
    later = _Later(
        np.array(moments, dtype=np.int64).T.tobytes(),
        {row: agent for row, record in held if (agent := record.provider.agent) is not None},
        {row: why for row, record in held if (why := record.provider.withheld) is not None},
        {row: record.tags.reported for row, record in held if record.tags.reported},
        joined,
    )
    content = _Packed(
        len(records),
        step,
        [record.provider.uuid for _, record in held],
        [record.provider.name for _, record in held],
        np.array(places, dtype=Number).T.tobytes(),
        {
            row: (row_of[parent], row_of[record.provider.root])
            for row, record in held
            if (parent := record.provider.parent) is not None
        },
        list(traits),
        list(aggregates),
        [[(offer.name, *offer.common) for offer in offers] for offers in all_offers],
        [np.frombuffer(each, dtype=np.int64)[::OWN].tobytes() for each in joined],
        compress(msgpack.encode(later), FAST),
    )
    return msgpack.encode(content)


_whole, _later = msgpack.Decoder(_Packed), msgpack.Decoder(_Later)


class SharedValues:
    """Values that records of different chunks have in common, while chunks are restored."""

    def __init__(self, shelf: InventoryPacker) -> None:
        self._shelf = shelf
        self._sets: dict[frozenset[Any], frozenset[Any]] = {}

    def offers(self, kind: Kind) -> tuple[InventoryFigures, ...]:
        """Return the offers of a kind, the same ones for all chunks."""
        return self._shelf.packed({one[0]: Inventory(*one[1:]) for one in kind}).offers

    def one(self, names: frozenset[Any]) -> frozenset[Any]:
        """Return an equal set, the same one for all chunks."""
        return self._sets.setdefault(names, names)


class PackedRecords:
    """The records of a chunk, not made yet. Immutable; other threads may read it, too.

    Iterating makes all records, and keeps none. Raises ValueError, LookupError: the bytes are not
    from `packed`.
    """

    def __init__(self, stored: bytes, shared: SharedValues, version: int) -> None:
        content = _whole.decode(stored)
        self.size, self.step = content.size, content.step
        self.uuids, self.names, self.below = content.uuids, content.names, content.below
        self.traits = [shared.one(names) for names in content.traits]
        self.aggregates = [shared.one(names) for names in content.aggregates]
        self.kinds = [shared.offers(kind) for kind in content.kinds]
        columns = np.frombuffer(content.places, dtype=Number)
        self.places = Places(*columns.reshape(len(Places._fields), len(self.uuids)))
        self._version = version
        self._later = content.later
        self._check(len(self.names))
        self.used = [
            np.frombuffer(amounts, dtype=np.int64).reshape(count, len(offers))
            for amounts, (offers, count) in zip(content.used, self.counted_kinds(), strict=True)
        ]
        """By kind: the used amounts of its providers, a row for each."""

    def counted_kinds(self) -> list[tuple[tuple[InventoryFigures, ...], int]]:
        """Return the combinations of offers, each with the number of its providers."""
        counts = np.bincount(self.places.kind, minlength=len(self.kinds)).tolist()
        return list(zip(self.kinds, counts, strict=True))

    def _check(self, names: int) -> None:
        places = self.places
        for column, most in (
            (places.row, self.size),
            (places.traits, len(self.traits)),
            (places.aggregates, len(self.aggregates)),
            (places.kind, len(self.kinds)),
        ):
            if len(column) and (int(column.min()) < 0 or int(column.max()) >= most):
                raise ValueError("a number of a packed chunk is out of its range")
        if names != len(self.uuids):
            raise ValueError("the names of a packed chunk have another size")

    def __iter__(self) -> Iterator[ProviderRecord | None]:
        found: list[ProviderRecord | None] = [None] * self.size
        later = _later.decode(decompress(self._later))
        rows, version = self.places.row.tolist(), self._version
        columns = np.frombuffer(later.moments, dtype=np.int64)
        moments = _Moments(*columns.reshape(len(_Moments._fields), len(rows)))
        all_held = [
            _inventories(offers, figures)
            for offers, figures in zip(self.kinds, later.figures, strict=True)
        ]
        for row, provider, kind, tags in zip(
            rows,
            self._providers(rows, moments, later),
            self.places.kind.tolist(),
            self._tags(rows, moments.tagged_at.tolist(), later.reported),
            strict=True,
        ):
            found[row] = ProviderRecord(provider, next(all_held[kind]), tags, version)
        return iter(found)

    def _providers(self, rows: list[int], moments: _Moments, later: _Later) -> list[Provider]:
        generations, times = moments.generation.tolist(), moments.created_at.tolist()
        providers = [
            # One object for equal times, as in rows.
            Provider(uuid, name, number, None, uuid, began, began if began == changed else changed)
            for uuid, name, number, began, changed in zip(
                *(self.uuids, self.names, generations, times, moments.updated_at.tolist()),
                strict=True,
            )
        ]
        special = self.below.keys() | later.agents.keys() | later.withheld.keys()
        if special:
            at = {row: number for number, row in enumerate(rows)}
            for row in special:
                above, top = self.below.get(row, (None, row))
                providers[at[row]] = replace(
                    providers[at[row]],
                    parent=None if above is None else self.uuids[at[above]],
                    root=self.uuids[at[top]],
                    agent=later.agents.get(row),
                    withheld=later.withheld.get(row),
                )
        return providers

    def _tags(
        self, rows: list[int], times: list[Instant], reported: dict[int, tuple[Reported, ...]]
    ) -> list[Tags]:
        """Return the tags of each used row; equal ones are one object."""
        sets = self.places.traits.tolist(), self.places.aggregates.tolist()
        keys = list(zip(*sets, times, strict=True))
        made = {
            (traits, aggregates, at): Tags(self.traits[traits], self.aggregates[aggregates], at)
            for traits, aggregates, at in set(keys)
        }
        found = [made[key] for key in keys]
        if reported:
            for number, row in enumerate(rows):
                if row in reported:
                    found[number] = replace(found[number], reported=reported[row])
        return found


def _inventories(offers: tuple[InventoryFigures, ...], figures: bytes) -> Iterator[Inventories]:
    """Yield the inventories of each provider of a kind."""
    size = 8 * OWN * len(offers)
    if not size:
        return repeat(NO_INVENTORIES)
    return (Inventories(offers, figures[at : at + size]) for at in range(0, len(figures), size))
