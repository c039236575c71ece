"""Structural schemas of custom resources: defaults, unknown fields, and what is refused.

Refusals have the words of Kubernetes 1.36. Read with `apiextensions-apiserver` beside: its packages
`schema/defaulting`, `schema/pruning` and `validation`.
"""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.kubernetes_double.status import Cause

Schema = dict[str, Any]

MISSING = object()
IDENTITY = ("apiVersion", "kind", "metadata")
"""Members of an object that its schema does not describe."""
KEEPS = "x-kubernetes-preserve-unknown-fields"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}


def pruned(found: Any, schema: Schema, way: str = "") -> list[str]:
    """Remove unknown fields from an object in place; return them."""
    unknown: list[str] = []
    if isinstance(found, list):
        for place, one in enumerate(found):
            unknown += pruned(one, schema.get("items", {}), f"{way}[{place}]")
    if not isinstance(found, dict):
        return unknown
    others = schema.get("additionalProperties")
    for name in [*found]:
        path = f"{way}.{name}" if way else name
        below = schema.get("properties", {}).get(name, others)
        if not way and name in IDENTITY:
            continue
        if below is not None:
            unknown += pruned(found[name], below, path)
        elif not schema.get(KEEPS):
            del found[name]
            unknown.append(path)
    return unknown


def set_defaults(found: Any, schema: Schema) -> None:
    """Add what is missing and has a default, in place. Null that is not allowed is missing."""
    if isinstance(found, list):
        for one in found:
            set_defaults(one, schema.get("items", {}))
    if not isinstance(found, dict):
        return
    for name, below in schema.get("properties", {}).items():
        if found.get(name, MISSING) is None and not below.get("nullable"):
            del found[name]
        if "default" in below and name not in found:
            found[name] = copy.deepcopy(below["default"])
        if name in found:
            set_defaults(found[name], below)
    if others := schema.get("additionalProperties"):
        for name in found.keys() - schema.get("properties", {}).keys():
            set_defaults(found[name], others)


def problems(
    found: Any, schema: Schema, root: str = "", way: str = "", old: Any = MISSING
) -> Iterator[Cause]:
    """Yield what is wrong with a value. What was stored already and stays is not looked at again.

    `root` is before each field, `way` is the field below it.
    """
    if old is not MISSING and found == old and repr(found) == repr(old):
        return  # without its text, 1 would be true
    field = ".".join(filter(None, (root, way))) or "<nil>"
    wrong = _wrong_type(found, schema)
    if wrong is not None:
        text = f'{way} in body must be of type {schema["type"]}: "{wrong}"'
        yield Cause("FieldValueTypeInvalid", f'Invalid value: "{wrong}": {text}', field)
        return
    yield from _wrong_value(found, schema, field, way)
    if isinstance(found, list):
        for place, one in enumerate(found):
            yield from problems(one, schema.get("items", {}), root, f"{way}[{place}]")
    if isinstance(found, dict):
        yield from _members(found, schema, (root, way), old)


def is_typed(found: Any, schema: Schema, old: Any = MISSING) -> bool:
    """Return whether all values have their types, in what differs from an older version."""
    wrong = problems(found, schema, "", "", old)
    return not any(
        cause.reason == "FieldValueTypeInvalid" and "date-time" not in cause.message
        for cause in wrong
    )


def _members(found: Schema, schema: Schema, place: tuple[str, str], old: Any) -> Iterator[Cause]:
    root, way = place
    before = old if isinstance(old, dict) else {}
    for name, value in found.items():
        below = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if below is not None:
            path = f"{way}.{name}" if way else name
            yield from problems(value, below, root, path, before.get(name, MISSING))
    for name in schema.get("required", ()):
        if name not in found:
            path = ".".join(filter(None, (root, way, name)))
            yield Cause("FieldValueRequired", "Required value", path)


def _wrong_type(found: Any, schema: Schema) -> str | None:
    """Return the type of a value that has another one than is wanted; None: it is right."""
    wanted = schema.get("type")
    if wanted is None or (found is None and schema.get("nullable")):
        return None
    own = "null" if found is None else "array" if isinstance(found, list) else NAMES[type(found)]
    if own == wanted or (own, wanted) == ("integer", "number"):
        return None
    return own


def _wrong_value(found: Any, schema: Schema, field: str, way: str) -> Iterator[Cause]:
    def invalid(why: str, shown: str = "") -> Cause:
        value = shown or json.dumps(found)
        return Cause("FieldValueInvalid", f"Invalid value: {value}: {way} in body {why}", field)

    if found is not None and found not in schema.get("enum", (found,)):
        known = ", ".join(
            json.dumps(one if isinstance(one, str) else str(one)) for one in schema["enum"]
        )
        text = f"Unsupported value: {json.dumps(found)}: supported values: {known}"
        yield Cause("FieldValueNotSupported", text, field)
    if isinstance(found, str):
        if len(found) > schema.get("maxLength", len(found)):
            text = f"Too long: may not be more than {schema['maxLength']} bytes"
            yield Cause("FieldValueTooLong", text, field)
        if len(found) < schema.get("minLength", 0):
            yield invalid(f"should be at least {schema['minLength']} chars long")
        if not re.search(schema.get("pattern", ""), found):
            yield invalid(f"should match '{schema['pattern']}'")
        if schema.get("format") == "date-time" and not TIME.fullmatch(found):
            text = f"{way} in body must be of type date-time: {json.dumps(found)}"
            yield Cause(
                "FieldValueTypeInvalid", f"Invalid value: {json.dumps(found)}: {text}", field
            )
    if isinstance(found, int | float):
        if found < schema.get("minimum", found):
            yield invalid(f"should be greater than or equal to {schema['minimum']}")
        if found > schema.get("maximum", found):
            yield invalid(f"should be less than or equal to {schema['maximum']}")
    if isinstance(found, list):
        if len(found) > (most := schema.get("maxItems", len(found))):
            items = "item" if most == 1 else "items"
            text = f"Too many: {len(found)}: must have at most {most} {items}"
            yield Cause("FieldValueTooMany", text, field)
        if len(found) < schema.get("minItems", 0):
            yield invalid(f"should have at least {schema['minItems']} items", str(len(found)))
