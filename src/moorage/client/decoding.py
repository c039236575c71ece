"""Decodes JSON into the dataclasses of `wire`; unknown members of newer servers are ignored."""

from __future__ import annotations

import sys
import types
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from moorage.client.old_hints import old_hints
from moorage.client.run.clock import instant_of
from moorage.client.run.printing import misfit_text
from moorage.client.transport import MoorageError
from moorage.wire.changes import VALUES, Change

T = TypeVar("T")

OLD = sys.version_info < (3, 10)
"""Whether this Python has no types such as `int | None`."""

UNIONS = (Union, getattr(types, "UnionType", Union))


class UndecodableError(MoorageError, ValueError):
    """The answer does not conform to the native API."""


def decode(kind: type[T], value: Any) -> T:
    """Convert a decoded JSON value to `kind`. Raises UndecodableError."""
    try:
        decoded: T = _decode(kind, value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UndecodableError(
            f"the response is not a {kind.__name__}: {misfit_text(error)}"
        ) from error
    return decoded


def change_decode(value: Any) -> Change:
    """Convert a change, with its value as the dataclass of its kind. Raises UndecodableError."""
    change = decode(Change, value)
    kind = VALUES.get(change.kind)
    if change.value is None or kind is None:
        return change
    return Change(
        revision=change.revision,
        n=change.n,
        kind=change.kind,
        key=change.key,
        value=decode(kind, change.value),
    )


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return old_hints(kind) if OLD else get_type_hints(kind)


def _decode(kind: Any, value: Any) -> Any:
    if is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type] # classes are hashable
        members = {field.name: value[field.name] for field in fields(kind) if field.name in value}
        return kind(**{name: _decode(hints[name], one) for name, one in members.items()})  # type: ignore[operator] # it is a class
    if kind is datetime:
        return instant_of(value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return [_decode(arguments[0], one) for one in value]
    if origin is tuple:
        if len(value) != len(arguments):
            raise ValueError(f"{len(value)} values instead of {len(arguments)}")
        return tuple(_decode(inner, one) for inner, one in zip(arguments, value))
    if origin is dict and arguments[1] is not Any:
        return {key: _decode(arguments[1], one) for key, one in value.items()}
    if origin in UNIONS and value is not None:
        (inner,) = (one for one in arguments if one is not type(None))
        return _decode(inner, value)
    return value
