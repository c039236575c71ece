"""All rows of a ledger, encoded: compared as bytes, and small in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, get_args

import msgspec

from moorage.wire.imports import ConsumerRow, NameRow, ProviderRow

RowKind = Literal["classes", "traits", "providers", "consumers"]
"""The lists of rows, in an order in which they can be written."""

KINDS: tuple[RowKind, ...] = get_args(RowKind)

Row = NameRow | ProviderRow | ConsumerRow

DIGEST_BYTES = 16

_TYPES: dict[RowKind, Any] = {
    "classes": NameRow,
    "traits": NameRow,
    "providers": ProviderRow,
    "consumers": ConsumerRow,
}
_encode = msgspec.json.Encoder(order="sorted").encode
_DECODERS: dict[RowKind, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(_TYPES[kind]) for kind in KINDS
}


@dataclass
class Rows:
    """Encoded rows by their name or UUID."""

    classes: dict[str, bytes] = field(default_factory=dict)
    traits: dict[str, bytes] = field(default_factory=dict)
    providers: dict[str, bytes] = field(default_factory=dict)
    consumers: dict[str, bytes] = field(default_factory=dict)

    def of(self, kind: RowKind) -> dict[str, bytes]:
        """Return the rows of one kind."""
        found: dict[str, bytes] = getattr(self, kind)
        return found

    def digests(self) -> "Digests":
        """Return what tells these rows from others."""
        return Digests(
            {kind: {key: _digest(row) for key, row in self.of(kind).items()} for kind in KINDS}
        )

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each kind."""
        return {kind: len(self.of(kind)) for kind in KINDS}


@dataclass(frozen=True)
class Digests:
    """Digests of all rows, by kind and key."""

    by_kind: dict[RowKind, dict[str, bytes]]

    def differing(self, rows: Rows) -> Iterator[tuple[RowKind, str]]:
        """Yield the kinds and keys of rows that are others, are new, or are gone."""
        for kind in KINDS:
            before, now = self.by_kind[kind], rows.of(kind)
            for key, row in now.items():
                if before.get(key) != _digest(row):
                    yield kind, key
            for key in before.keys() - now.keys():
                yield kind, key


def _digest(row: bytes) -> bytes:
    return blake2b(row, digest_size=DIGEST_BYTES).digest()


def encoded(row: Row) -> bytes:
    """Return a row as bytes, which are the same for equal rows."""
    return _encode(row)


def decoded(kind: RowKind, row: bytes) -> Any:
    """Return a row of bytes, with its type."""
    return _DECODERS[kind].decode(row)


def key_of(row: Row) -> str:
    """Return the name or the UUID of a row."""
    return row.name if isinstance(row, NameRow) else row.uuid


def all_encoded(rows: Iterable[Row]) -> dict[str, bytes]:
    """Return encoded rows by their name or UUID."""
    return {key_of(row): encoded(row) for row in rows}
