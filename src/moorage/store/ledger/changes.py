"""The ledger's change rows: their kinds, writing and reading."""

from collections.abc import Iterator
from typing import Any

from msgspec import json

from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Consumer, CustomName, Inventory, Provider, Tags
from moorage.store.encoding import encode
from moorage.store.ledger.rows import encode_consumer

KINDS: dict[str, tuple[str, Any]] = {
    "renamed_class": ("renamed_classes", str),
    "resource_class": ("classes", CustomName),
    "trait": ("traits", CustomName),
    "provider": ("providers", Provider),
    "inventory": ("inventories", Inventory),
    "tags": ("tags", Tags),
    "consumer": ("consumers", Consumer),
}
"""The kinds in the order in which a batch writes them: (member of `Changes`, type of value)."""

CATALOG_KINDS = tuple(kind for kind in KINDS if kind != "consumer")
"""The kinds that change the catalog of providers."""

_DECODERS = {kind: json.Decoder(value) for kind, (_, value) in KINDS.items()}


def change_rows(changes: Changes) -> Iterator[tuple[str, str, str | None]]:
    """Yield (kind, key, body) of every change, in a fixed order; None as body: it was deleted."""
    for kind, (member, _) in KINDS.items():
        values: dict[Any, Any] = getattr(changes, member)
        if not values:
            continue
        written = encode_consumer if kind == "consumer" else encode
        for key in sorted(values):
            text = f"{key[0]}/{key[1]}" if kind == "inventory" else key
            yield kind, text, None if values[key] is None else written(values[key])


def change_read(changes: Changes, kind: str, key: str, body: str | None) -> None:
    """Decode a change row and add it to `changes`."""
    values: dict[Any, Any] = getattr(changes, KINDS[kind][0])
    value = None if body is None else _DECODERS[kind].decode(body)
    values[tuple(key.split("/", 1)) if kind == "inventory" else key] = value
