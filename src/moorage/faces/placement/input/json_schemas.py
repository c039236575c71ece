"""Request bodies as JSON Schema, quoted in error messages.

The types in `schemas.py` decide whether a body is accepted; these schemas only explain why not.
They are separate because the order of their members is part of the text that clients see, and
decides which of several errors is reported. Tests compare both descriptions.

Source: Placement API reference, request parameters of each route; the texts of its refusals.
"""

from typing import Any, Final

from moorage.core.ledger.requests import SUFFIX_PATTERN
from moorage.core.ledger.vocabulary import CUSTOM_PATTERN
from moorage.core.limits import (
    ALLOCATION_RATIO_MAX,
    IDENTIFIER_LENGTH_MAX,
    MAX_INT,
    NAME_LENGTH_MAX,
)
from moorage.core.texts import NAME_PATTERN
from moorage.faces.placement.input import schemas
from moorage.faces.query_strings.schema_errors import Schema

_UUID_KEY: Final = "^[0-9a-fA-F-]{36}$"

_INTEGER: Schema = {"type": "integer"}
_UUID: Schema = {"type": "string", "format": "uuid"}
_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": IDENTIFIER_LENGTH_MAX}
_GENERATION: Schema = {"resource_provider_generation": _INTEGER}


def _closed(properties: Schema, *required: str) -> Schema:
    """Return an object with no other members than these."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _size(least: int) -> Schema:
    return {"type": "integer", "maximum": MAX_INT, "minimum": least}


_PROVIDER_NAME: Schema = {"name": {"type": "string", "maxLength": NAME_LENGTH_MAX}}
_PARENT: Schema = {"parent_provider_uuid": {"anyOf": [_UUID, {"type": "null"}]}}

_AGGREGATES: Schema = {"type": "array", "items": _UUID, "uniqueItems": True}
_CUSTOM: Schema = {"type": "string", "pattern": CUSTOM_PATTERN, "maxLength": IDENTIFIER_LENGTH_MAX}

_INVENTORY: Schema = {
    **_GENERATION,
    "total": _size(1),
    "reserved": _size(0),
    "min_unit": _size(1),
    "max_unit": _size(1),
    "step_size": _size(1),
    "allocation_ratio": {"type": "number", "maximum": ALLOCATION_RATIO_MAX},
}
_INVENTORIES = _closed(
    {
        **_GENERATION,
        "inventories": {
            "type": "object",
            "patternProperties": {NAME_PATTERN: _closed(_INVENTORY, "total")},
        },
    },
    "resource_provider_generation",
    "inventories",
)

_RESOURCES: Schema = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {NAME_PATTERN: {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}
_LISTED: Schema = {
    "type": "array",
    "minItems": 1,
    "items": _closed(
        {
            "resource_provider": {
                "type": "object",
                "properties": {"uuid": _UUID},
                "additionalProperties": False,
                "required": ["uuid"],
            },
            "resources": _RESOURCES,
        },
        "resource_provider",
        "resources",
    ),
}
_OWNER: Schema = {"project_id": _NAME, "user_id": _NAME}
_CONSUMER_GENERATION: Schema = {
    "consumer_generation": {"type": ["integer", "null"], "additionalProperties": False}
}
_MAPPINGS: Schema = {
    "mappings": {
        "type": "object",
        "minProperties": 1,
        "patternProperties": {SUFFIX_PATTERN: {"type": "array", "minItems": 1, "items": _UUID}},
    }
}
_CONSUMER_TYPE: Schema = {
    "consumer_type": {
        "type": "string",
        "pattern": NAME_PATTERN,
        "minLength": 1,
        "maxLength": IDENTIFIER_LENGTH_MAX,
    }
}


def _consumer(least: int, *members: Schema) -> Schema:
    """Return the schema of one consumer from 1.12 on: at least `least` providers, more members."""
    properties: Schema = {
        "allocations": {
            "type": "object",
            "minProperties": least,
            "patternProperties": {
                _UUID_KEY: _closed({"generation": _INTEGER, "resources": _RESOURCES}, "resources")
            },
            "additionalProperties": False,
        },
        **_OWNER,
    }
    for member in members:
        properties |= member
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": [name for name in properties if name != "mappings"],
    }


def _consumers(least: int, each: Schema) -> Schema:
    return {
        "type": "object",
        "minProperties": least,
        "additionalProperties": False,
        "patternProperties": {_UUID_KEY: each},
    }


def _reshape(each: Schema) -> Schema:
    return _closed(
        {
            "inventories": {
                "type": "object",
                "patternProperties": {_UUID_KEY: _INVENTORIES},
                "minProperties": 1,
                "additionalProperties": False,
            },
            "allocations": _consumers(0, each),
        },
        "inventories",
        "allocations",
    )


_CONSUMER28 = _consumer(0, _CONSUMER_GENERATION)
_CONSUMER34 = _consumer(0, _CONSUMER_GENERATION, _MAPPINGS)
_CONSUMER38 = _consumer(0, _CONSUMER_GENERATION, _MAPPINGS, _CONSUMER_TYPE)

QUOTED: Final[dict[Any, Schema]] = {
    schemas.ProviderPost: _closed({**_PROVIDER_NAME, "uuid": _UUID}, "name"),
    schemas.ProviderPost14: _closed({**_PROVIDER_NAME, "uuid": _UUID, **_PARENT}, "name"),
    schemas.ProviderPut: _closed(_PROVIDER_NAME, "name"),
    schemas.ProviderPut14: _closed({**_PROVIDER_NAME, **_PARENT}, "name"),
    schemas.InventoryPost: _closed(
        {**_INVENTORY, "resource_class": {"type": "string", "pattern": NAME_PATTERN}},
        "total",
        "resource_class",
    ),
    schemas.InventoryPut: _closed(_INVENTORY, "total", "resource_provider_generation"),
    schemas.InventoriesPut: _INVENTORIES,
    schemas.AggregatesPut: _AGGREGATES,
    schemas.AggregatesPut19: _closed(
        {"aggregates": _AGGREGATES, **_GENERATION}, "aggregates", "resource_provider_generation"
    ),
    schemas.TraitsPut: _closed(
        {"traits": {"type": "array", "items": _NAME}, **_GENERATION},
        "traits",
        "resource_provider_generation",
    ),
    schemas.ClassNamed: _closed({"name": _CUSTOM}, "name"),
    schemas.AllocationsPut: _closed({"allocations": _LISTED}, "allocations"),
    schemas.AllocationsPut8: _closed(
        {"allocations": _LISTED, **_OWNER}, "allocations", "project_id", "user_id"
    ),
    schemas.AllocationsPut12: _consumer(1),
    schemas.Allocations28: _CONSUMER28,
    schemas.Allocations34: _CONSUMER34,
    schemas.Allocations38: _CONSUMER38,
    schemas.Consumers13: _consumers(1, _consumer(0)),
    schemas.Consumers28: _consumers(1, _CONSUMER28),
    schemas.Consumers34: _consumers(1, _CONSUMER34),
    schemas.Consumers38: _consumers(1, _CONSUMER38),
    schemas.Reshape30: _reshape(_CONSUMER28),
    schemas.Reshape34: _reshape(_CONSUMER34),
    schemas.Reshape38: _reshape(_CONSUMER38),
}
"""The schema of each body type, as quoted in error messages."""
