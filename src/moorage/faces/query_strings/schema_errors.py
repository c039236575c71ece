"""Explains why a value was refused, with the messages that clients of this API expect.

The value has been refused already; this slow path only finds the message. The texts are those of
the `jsonschema` library, which the original passes on. They quote the value and the schema, so
callers must bound the size of the value.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

from moorage.faces.query_strings.uuids import is_dashed, uuid_normal

ERRORS_MAX = 50
"""Errors of one value that are compared to find the most relevant one."""

LENGTH_MAX = 65_536
"""Characters of an explanation; the rest is cut off."""

MIXED_ITEMS_MAX = 100
"""Items of a list whose items must be compared pairwise, because they are not all strings."""

Schema = dict[str, Any]

_formats = FormatChecker(())


@_formats.checks("uuid")
def _is_uuid(value: object) -> bool:
    return isinstance(value, str) and uuid_normal(value) is not None


_dashed_formats = FormatChecker(())


@_dashed_formats.checks("uuid")
def _is_dashed(value: object) -> bool:
    return not isinstance(value, str) or is_dashed(value)


def _unique(validator: Any, unique: bool, value: Any, schema: Schema) -> Iterator[ValidationError]:
    """Check `uniqueItems`, unless that would compare too many pairs."""
    if not isinstance(value, list):
        return
    if len(value) > MIXED_ITEMS_MAX and not all(isinstance(item, str) for item in value):
        return
    yield from Draft202012Validator.VALIDATORS["uniqueItems"](validator, unique, value, schema)


_Validator = extend(  # type: ignore[no-untyped-call]  # the stubs leave it untyped
    Draft202012Validator, {"uniqueItems": _unique}
)


def explanation(value: Any, schema: Schema) -> str | None:
    """Explain why a decoded body does not match a schema; None if it does."""
    return _message(value, schema, _formats)


def query_explanation(value: dict[str, str], schema: Schema) -> str | None:
    """Explain why the parameters of a query string do not match a schema; None if they do."""
    return _message(value, schema, _dashed_formats)


def _message(value: Any, schema: Schema, formats: FormatChecker) -> str | None:
    errors = _Validator(schema, format_checker=formats).iter_errors(value)
    worst = best_match(islice(errors, ERRORS_MAX))
    return None if worst is None else str(worst)[:LENGTH_MAX]
