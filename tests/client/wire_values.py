"""Values of every type of the native API, made from its OpenAPI description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import is_dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from random import Random
from typing import Any

import moorage.wire
from moorage.wire.dataclass import members

OPENAPI = Path(__file__).resolve().parents[2] / "docs/reference/openapi.json"
TIMES = ("2026-01-02T03:04:05.000006Z", "2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00")
DEPTH_MAX = 4


def wire_types() -> dict[str, type]:
    """Return every dataclass of the wire by its name."""
    found = walk_packages(moorage.wire.__path__, "moorage.wire.")
    modules = [import_module(one.name) for one in found]
    return {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    }


def encoded(value: Any) -> Any:
    """Return a value of the wire as JSON that a client sends, decoded."""
    text = json.dumps(members(value), default=datetime.isoformat)
    return json.loads(text)


class Description:
    """The OpenAPI description, as a generator of values."""

    def __init__(self) -> None:
        self._document: dict[str, Any] = json.loads(OPENAPI.read_text())
        self.schemas: dict[str, Any] = self._document["components"]["schemas"]

    def requests(self) -> Iterator[tuple[str, Any]]:
        """Yield the example of every body with the name of its schema."""
        for operations in self._document["paths"].values():
            for operation in operations.values():
                body = operation.get("requestBody", {}).get("content", {})
                for content in body.values():
                    reference = content.get("schema", {}).get("$ref")
                    if reference and "example" in content:
                        yield reference.rpartition("/")[2], content["example"]

    def value(self, schema: dict[str, Any], random: Random, depth: int = 0) -> Any:
        """Return a random value of a schema; every branch of a union is taken now and then."""
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        if "anyOf" in schema:
            return self.value(random.choice(schema["anyOf"]), random, depth)
        if "enum" in schema:
            return random.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, random, depth)
        if kind == "array":
            # Beyond the least number, the items of nested types end somewhere.
            least = schema.get("minItems", 0)
            count = random.randint(least, schema.get("maxItems", 2)) if depth < DEPTH_MAX else least
            return [self.value(schema["items"], random, depth + 1) for _ in range(count)]
        return _plain(schema, kind, random)

    def _object(self, schema: dict[str, Any], random: Random, depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        members = {
            name: self.value(each, random, depth + 1)
            for name, each in schema.get("properties", {}).items()
            if name in required or random.random() < 0.7
        }
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and depth < DEPTH_MAX:
            for number in range(random.randint(0, 2)):
                members[f"CUSTOM_{number}"] = self.value(more, random, depth + 1)
        return members


def _plain(schema: dict[str, Any], kind: str | None, random: Random) -> Any:
    if kind == "string":
        return random.choice(TIMES if schema.get("format") == "date-time" else ("", "A", 'é " \\'))
    if kind == "integer":
        return random.choice((0, 1, 2**31))
    if kind == "number":
        return random.choice((0.0, 1.5))
    if kind == "boolean":
        return random.choice((True, False))
    return None if kind == "null" else random.choice((None, 1, "A", [1], {"a": {"b": None}}))
