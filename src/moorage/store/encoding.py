"""Encodes values as JSON text for rows and for parameters of statements."""

from collections.abc import Iterable

from msgspec import json

_encoder = json.Encoder(order="deterministic")


def encode(value: object) -> str:
    """Return a value as JSON text; equal values have equal texts."""
    return _encoder.encode(value).decode()


NO_KEYS = "[]"
"""As `key_set` of nothing; for what most requests do not need."""


def key_set(keys: Iterable[str]) -> str:
    """Return a set of keys as the single parameter of a set statement."""
    return encode(sorted(keys))
