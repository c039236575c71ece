"""Encodes values as JSON text for rows and for parameters of statements."""

from collections.abc import Collection

from msgspec import json

_encoder = json.Encoder(order="deterministic")


def encode(value: object) -> str:
    """Return a value as JSON text; equal values have equal texts."""
    return _encoder.encode(value).decode()


def key_set(keys: Collection[str]) -> str:
    """Return a set of keys as the single parameter of a set statement."""
    return encode(sorted(keys)) if keys else "[]"
