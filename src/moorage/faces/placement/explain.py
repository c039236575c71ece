"""Why a value was refused, in the words clients of this API know.

Whether it is refused has been decided before; this is the slow path and only finds words. The
texts are those of the `jsonschema` library, which the original shows as they are. They are kept
short, and only a bounded part of a value is looked at: a stranger must not make us write books.
"""

from functools import lru_cache
from heapq import nsmallest
from itertools import islice
from typing import Any

import jsonschema
import msgspec
from jsonschema.exceptions import ValidationError, relevance

from moorage.faces.placement.uuids import is_dashed, uuid_normal

ERRORS_MAX = 50
"""Faults of one value that are compared for the most telling one."""

MESSAGE_LENGTH_MAX = 1_000
"""Characters of the sentence that says what is wrong."""

Schema = dict[str, Any]

_formats = jsonschema.FormatChecker(())


@_formats.checks("uuid")
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or uuid_normal(value) is not None


_dashed_formats = jsonschema.FormatChecker(())


@_dashed_formats.checks("uuid")
def _is_dashed(value: object) -> bool:
    return not isinstance(value, str) or is_dashed(value)


def explanation(value: Any, kind: Any) -> str | None:
    """Say why a decoded body is none of this type; None when only its type knows why."""
    return _told(value, _validator(kind))


def query_explanation(value: dict[str, str], schema: Schema) -> str | None:
    """Say why the parameters of a query string do not follow a schema."""
    validator = jsonschema.Draft202012Validator(schema, format_checker=_dashed_formats)
    return _told(value, validator)


def _told(value: Any, validator: jsonschema.Draft202012Validator) -> str | None:
    errors = list(islice(validator.iter_errors(value), ERRORS_MAX))
    if not errors:
        return None
    worst = max(errors, key=relevance)
    while worst.context:
        nearest = nsmallest(2, worst.context, key=relevance)
        if len(nearest) > 1 and relevance(nearest[0]) == relevance(nearest[1]):
            break
        worst = nearest[0]
    return _words(worst)


def _words(error: ValidationError) -> str:
    message = error.message
    if len(message) > MESSAGE_LENGTH_MAX:
        half = MESSAGE_LENGTH_MAX // 2
        message = f"{message[:half]} ... {message[-half:]}"
    rule = "".join(f"[{part!r}]" for part in list(error.absolute_schema_path)[:-1])
    place = "".join(f"[{part!r}]" for part in error.absolute_path)
    rule_shown = {error.validator: error.validator_value}
    return (
        f"{message}\n\nFailed validating {error.validator!r} in schema{rule}:\n"
        f"    {rule_shown!r}\n\n"
        f"On instance{place[:MESSAGE_LENGTH_MAX]}"
    )


@lru_cache(maxsize=64)
def _validator(kind: Any) -> jsonschema.Draft202012Validator:
    schema = msgspec.json.schema(kind)
    plain = _plain(schema, schema.get("$defs", {}))
    return jsonschema.Draft202012Validator(plain, format_checker=_formats)


def _plain(node: Any, named: Schema) -> Any:
    """Return a schema in the form the original writes its own in.

    References are replaced by what they name; a rule for all keys of an object becomes a rule
    for the values under such keys, and other keys are forbidden.
    """
    if isinstance(node, list):
        return [_plain(item, named) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _plain(named[node["$ref"].rpartition("/")[2]], named)
    made = {key: _plain(value, named) for key, value in node.items() if key not in _LEFT_OUT}
    if made.get("format") == "uuid":
        made.pop("pattern", None)
    if "pattern" in made:
        made["pattern"] = made["pattern"].replace(r"\Z", "$")
    if "propertyNames" in made:
        keys = made.pop("propertyNames")["pattern"]
        made["patternProperties"] = {keys: made["additionalProperties"]}
        made["additionalProperties"] = False
    return made


_LEFT_OUT = frozenset({"title", "description", "default", "$defs"})
