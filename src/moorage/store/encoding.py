"""Values as JSON text, as rows and parameters of statements hold them."""

from collections.abc import Iterable

from msgspec import json

_encoder = json.Encoder(order="deterministic")


def encode(value: object) -> str:
    """Return a value as JSON text; equal values give equal texts."""
    return _encoder.encode(value).decode()


def key_set(keys: Iterable[str]) -> str:
    """Return a set of keys as the one parameter of a set statement."""
    return encode(sorted(keys))
