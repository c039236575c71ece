"""What the ledger lacks of the original, as requests in an order in which each can be carried out.

Rows are absolute: an import that was interrupted compares again, and goes on.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from moorage.integrations.placement.rows import KINDS, RowKind, Rows, decoded
from moorage.wire.imports import ConsumerRow, ProviderRow, RowsGone, RowsWanted

CHUNK_ROWS = 500
CHUNK_NAMES = 8_000
"""The most of one request: rows, and names in them. The server admits more."""

Ours = Callable[[RowKind], Iterable[tuple[str, bytes]]]
"""Yields the rows of the ledger."""

Stage = list[RowsWanted]
"""Requests that can be sent at the same time."""


@dataclass
class Difference:
    """Where the ledger differs from the original."""

    rows: Rows
    """What the original has."""
    wanted: dict[RowKind, list[str]] = field(default_factory=dict)
    """What is new, or another row."""
    before: dict[RowKind, dict[str, bytes]] = field(default_factory=dict)
    """Rows of the ledger that are to be replaced."""
    gone: dict[RowKind, dict[str, bytes]] = field(default_factory=dict)
    """Rows of the ledger that are to be deleted."""

    @property
    def size(self) -> int:
        """How many rows differ."""
        return sum(len(self.wanted[kind]) + len(self.gone[kind]) for kind in KINDS)

    def example(self) -> str:
        """Return one difference for people; there is one."""
        for kind in KINDS:
            for key in self.gone[kind]:
                return f"{kind} {key}: only in Moorage"
            for key in self.wanted[kind]:
                there = self.before[kind].get(key)
                return f"{kind} {key}: " + (
                    "only in the original" if there is None else "another row"
                )
        return "none"


def difference(rows: Rows, ours: Ours) -> Difference:
    """Compare all rows of the original with the ledger's."""
    found = Difference(rows)
    for kind in KINDS:
        theirs = rows.of(kind)
        same: set[str] = set()
        before = found.before[kind] = {}
        gone = found.gone[kind] = {}
        for key, row in ours(kind):
            if key not in theirs:
                gone[key] = row
            elif theirs[key] == row:
                same.add(key)
            else:
                before[key] = row
        found.wanted[kind] = [key for key in theirs if key not in same]
    return found


def stages(found: Difference) -> Iterator[Stage]:
    """Yield the requests that end a difference; each stage needs the ones before it.

    First goes what is in the way: consumers, and names that other providers get. Then parents come
    before children, and last come the consumers.
    """
    providers: list[ProviderRow] = [
        decoded("providers", found.rows.providers[key]) for key in found.wanted["providers"]
    ]
    yield [
        RowsWanted(gone=RowsGone(consumers=part))
        for part in _parts([*found.gone["consumers"], *_in_the_way(found, providers)])
    ]
    yield [RowsWanted(providers=part) for part in _chunks(_renamed(found, providers), _names)]
    yield [
        *(RowsWanted(classes=part) for part in _chunks(_rows(found, "classes"), _none)),
        *(RowsWanted(traits=part) for part in _chunks(_rows(found, "traits"), _none)),
    ]
    for level in _levels(found.rows, providers):
        yield [RowsWanted(providers=part) for part in _chunks(level, _names)]
    for gone in _gone_levels(found.gone["providers"]):
        yield [RowsWanted(gone=RowsGone(providers=part)) for part in _parts(gone)]
    yield [
        *(RowsWanted(gone=RowsGone(classes=part)) for part in _parts(found.gone["classes"])),
        *(RowsWanted(gone=RowsGone(traits=part)) for part in _parts(found.gone["traits"])),
    ]
    for some in _parts(found.wanted["consumers"], CHUNK_ROWS * 16):
        rows = (decoded("consumers", found.rows.consumers[key]) for key in some)
        yield [RowsWanted(consumers=part) for part in _chunks(rows, _amounts)]


def _in_the_way(found: Difference, providers: list[ProviderRow]) -> Iterator[str]:
    """Yield consumers with allocations of inventories that are to go; they are written again."""
    going: dict[str, set[str] | None] = dict.fromkeys(found.gone["providers"])
    for row in providers:
        stored = found.before["providers"].get(row.uuid)
        if stored is not None:
            going[row.uuid] = (
                decoded("providers", stored).inventories.keys() - row.inventories.keys()
            )
    for key, stored in found.before["consumers"].items():
        held: ConsumerRow = decoded("consumers", stored)
        for provider, amounts in held.allocations.items():
            classes = going.get(provider, set())
            if classes is None or classes & amounts.keys():
                yield key
                break


def _renamed(found: Difference, providers: list[ProviderRow]) -> Iterator[ProviderRow]:
    """Yield providers of the ledger that give their name to another one, with one of their own."""
    wanted = {row.name: row.uuid for row in providers}
    for stored in (*found.before["providers"].values(), *found.gone["providers"].values()):
        row: ProviderRow = decoded("providers", stored)
        if wanted.get(row.name, row.uuid) != row.uuid:
            yield ProviderRow(
                uuid=row.uuid,
                name=f"{row.uuid} gives its name to {wanted[row.name]}",
                generation=row.generation,
                parent=row.parent,
                created_at=row.created_at,
                updated_at=row.updated_at,
                inventories=row.inventories,
                traits=row.traits,
                aggregates=row.aggregates,
            )


def _levels(rows: Rows, providers: list[ProviderRow]) -> list[list[ProviderRow]]:
    """Return providers by how far below their root they are in the original."""
    parents = {row.uuid: row.parent for row in providers}
    depths: dict[str, int] = {}
    levels: list[list[ProviderRow]] = []
    for row in providers:
        line: list[str] = []
        at: str | None = row.uuid
        while at is not None and at not in depths:
            line.append(at)
            if at not in parents:
                parents[at] = decoded("providers", rows.providers[at]).parent
            at = parents[at]
        above = -1 if at is None else depths[at]
        for one in reversed(line):
            above += 1
            depths[one] = above
        while len(levels) <= depths[row.uuid]:
            levels.append([])
        levels[depths[row.uuid]].append(row)
    return levels


def _gone_levels(gone: dict[str, bytes]) -> list[list[str]]:
    """Return the UUIDs of providers that go: those without children first."""
    parents = {key: decoded("providers", row).parent for key, row in gone.items()}
    depths: dict[str, int] = {}
    for key in parents:
        line: list[str] = []
        at: str | None = key
        while at in parents and at not in depths:
            line.append(at)
            at = parents[at]
        above = depths.get(at, -1) if at is not None else -1
        for one in reversed(line):
            above += 1
            depths[one] = above
    levels: dict[int, list[str]] = {}
    for key, depth in depths.items():
        levels.setdefault(depth, []).append(key)
    return [levels[depth] for depth in sorted(levels, reverse=True)]


def _rows(found: Difference, kind: RowKind) -> Iterator[Any]:
    theirs = found.rows.of(kind)
    return (decoded(kind, theirs[key]) for key in found.wanted[kind])


def _parts(keys: Iterable[str], most: int = CHUNK_ROWS) -> Iterator[list[str]]:
    every = list(keys)
    for at in range(0, len(every), most):
        yield every[at : at + most]


def _chunks(rows: Iterable[Any], weight: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Yield lists of rows, none with too many rows, or too many names in them."""
    part: list[Any] = []
    names = 0
    for row in rows:
        more = weight(row)
        if part and (len(part) >= CHUNK_ROWS or names + more > CHUNK_NAMES):
            yield part
            part, names = [], 0
        part.append(row)
        names += more
    if part:
        yield part


def _none(row: Any) -> int:
    return 0


def _names(row: ProviderRow) -> int:
    return len(row.inventories) * 4 + len(row.traits) + len(row.aggregates)


def _amounts(row: ConsumerRow) -> int:
    return sum(map(len, row.allocations.values()))
