"""Decodes request bodies into the types of `schemas.py`, or refuses them.

msgspec decides; jsonschema only explains why (docs/decisions/0004).
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_type_hints

import msgspec

from moorage.core.ledger.requests import SUFFIX_PATTERN
from moorage.core.texts import NAME_PATTERN
from moorage.faces.json_decoding import LONG_BYTES, json_decode, plain_decode
from moorage.faces.placement.input.json_schemas import QUOTED
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.query_strings.schema_errors import explanation
from moorage.faces.web import RefusalError

T = TypeVar("T")

EXPLAINED_BYTES_MAX = 8_192
"""The longest body whose errors are explained with the original's messages. For longer ones the
message is msgspec's, which names error and position at no extra cost."""

MEMBERS = 1_000
"""Members of a long object that are checked at once, in a few milliseconds."""

_SUFFIX = re.compile(SUFFIX_PATTERN)
_CLASS = re.compile(NAME_PATTERN)
_GENERATION = "resource_provider_generation"
_AN_INVENTORY = {"total": 1}

EXPLAINED_DEPTH_MAX = 16
"""The deepest body that is explained like this. Valid bodies are less deep, and formatting nested
lists takes time quadratic in their depth."""


def body_decode(body: bytes, kind: type[T]) -> T:
    """Return a request's body as one of the types of `schemas.py`.

    Raises ProblemError: 400, it is not JSON, or not of this type.
    """
    plain = plain_decode(body, kind) if len(body) < LONG_BYTES else None
    return body_check(body_value(body), kind, len(body)) if plain is None else plain


def body_value(body: bytes) -> Any:
    """Return a request's body as sent. Raises ProblemError: 400, it is not JSON."""
    try:
        return json_decode(body)
    except RefusalError as refusal:
        raise ProblemError(refusal.status, _malformed(body) or refusal.message) from None


def body_check(value: Any, kind: type[T], length: int = 0) -> T:
    """Return a decoded value as one of the types of `schemas.py`.

    Args:
        value: the decoded value.
        kind: the expected type.
        length: the body's length in bytes.

    Raises:
        ProblemError: 400, it is not of this type.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return _second_look(value, kind, length, str(error))


def long_check(value: Any, kind: type[T], names: Sequence[str]) -> T:
    """As `body_check`, but convert the objects of these names `MEMBERS` members at a time.

    Other threads can run in between.
    """
    if not (isinstance(value, dict) and all(isinstance(value.get(n), dict) for n in names)):
        return body_check(value, kind, EXPLAINED_BYTES_MAX + 1)  # it raises
    hints = get_type_hints(kind, include_extras=True)
    short, rest = dict(value), []
    for name in names:
        members = list(value[name].items())
        short[name] = dict(members[:MEMBERS])
        rest += [
            (name, dict(members[first : first + MEMBERS]))
            for first in range(MEMBERS, len(members), MEMBERS)
        ]
    found = body_check(short, kind, EXPLAINED_BYTES_MAX + 1)
    for name, part in rest:
        getattr(found, name).update(body_check(part, hints[name], EXPLAINED_BYTES_MAX + 1))
    return found


def check_unique(items: list[str], body: bytes, kind: Any) -> None:
    """Raise ProblemError 400 if a list in a body contains an item twice."""
    if len(set(items)) != len(items):
        explained = _explained(json_decode(body), kind, len(body))
        raise invalid(explained or "a list has non-unique elements")


def named_twice() -> ProblemError:
    """Return the refusal of a body of which two keys are one UUID, in upper and in lower case."""
    return invalid("a resource provider is named twice, in upper and in lower case")


def invalid(reason: str) -> ProblemError:
    """Return the refusal of a body that is JSON but not of the expected type."""
    return ProblemError(400, f"JSON does not validate: {reason}")


def _second_look(value: Any, kind: type[T], length: int, reason: str) -> T:
    """Accept a value that only msgspec refuses, not JSON Schema.

    It may have 4.0 for an integer, or anything under a name that the schema does not describe.
    """
    explained = _explained(value, kind, length)
    if explained is None:
        try:
            return msgspec.convert(_without_undescribed(_with_integers(value)), kind)
        except (msgspec.ValidationError, RecursionError):
            pass
    raise invalid(explained or reason)


def _explained(value: Any, kind: Any, length: int) -> str | None:
    if length > EXPLAINED_BYTES_MAX or _is_deep(value):
        return None
    return explanation(value, QUOTED[kind])


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(EXPLAINED_DEPTH_MAX):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _with_integers(value: Any) -> Any:
    """Return a value in which floats without a fraction are integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_integers(item) for name, item in value.items()}
    return value


def _without_undescribed(value: Any) -> Any:
    """Return a body without what the original does not check: values under undescribed names.

    There are two such places. Mappings are ignored, so those of no suffix are left out. Under a
    name that no resource class can have, an inventory stands instead, so that the name is refused.
    """
    if not isinstance(value, dict):
        return value
    found = {}
    for name, part in value.items():
        if name == "mappings" and isinstance(part, dict) and part:
            described = {suffix: of for suffix, of in part.items() if _SUFFIX.search(suffix)}
            if described:
                found[name] = described
        elif name == "inventories" and isinstance(part, dict) and _GENERATION in value:
            found[name] = {
                one: of if _CLASS.search(one) else _AN_INVENTORY for one, of in part.items()
            }
        else:
            found[name] = _without_undescribed(part)
    return found


def _malformed(body: bytes) -> str | None:
    """Return the error of Python's JSON decoder; None if that decoder accepts the body."""
    if len(body) > EXPLAINED_BYTES_MAX:
        return None
    try:
        json.loads(body.decode())
    except RecursionError:
        return None
    except ValueError as error:  # what JSON and UTF-8 decoders raise
        return f"Malformed JSON: {error}"
    return None
