"""Decodes JSON into the dataclasses of `wire`; unknown members of newer servers are ignored."""

from __future__ import annotations

import sys
import types
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from moorage.client.old_hints import old_hints
from moorage.client.run.clock import instant_of
from moorage.client.run.printing import misfit_text
from moorage.client.transport import MoorageError
from moorage.wire.dataclass import member

if TYPE_CHECKING:
    from moorage.wire.changes import Change

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


def decode_exactly(kind: type[T], value: Any) -> T:
    """Convert what a person wrote to `kind`: unknown members are refused, not ignored.

    Raises ValueError, which names the member.
    """
    try:
        decoded: T = _decode(kind, value, exactly=True)
    except KeyError as error:
        raise ValueError(f"{error.args[0]} is missing") from error
    except (AttributeError, TypeError) as error:
        raise ValueError(str(error)) from error
    return decoded


def change_decode(value: Any) -> Change:
    """Convert a change, with its value as the dataclass of its kind. Raises UndecodableError."""
    from moorage.wire.changes import VALUES, Change  # deferred: only those who watch need them

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


def _decode(kind: Any, value: Any, exactly: bool = False) -> Any:
    if is_dataclass(kind):
        return _object(kind, value, exactly)
    if kind is datetime:
        return instant_of(value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in UNIONS:
        return _decode(_member(arguments, value), value, exactly)
    if origin is list:
        if not isinstance(value, list):
            raise ValueError(f"expected a list, got {value!r}")
        return [_decode(arguments[0], one, exactly) for one in value]
    if origin is tuple:
        if len(value) != len(arguments):
            raise ValueError(f"{len(value)} values instead of {len(arguments)}")
        return tuple(_decode(inner, one, exactly) for inner, one in zip(arguments, value))
    if origin is dict and arguments[1] is not Any:
        return {key: _decode(arguments[1], one, exactly) for key, one in value.items()}
    return value


def _object(kind: Any, value: Any, exactly: bool) -> Any:
    """Convert a JSON object to a dataclass."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object with the members of {kind.__name__}, got {value!r}")
    hints = _hints(kind)
    known = {member(field.name): field.name for field in fields(kind)}
    unknown = sorted(value.keys() - known.keys())
    if exactly and unknown:
        raise ValueError(
            f"{', '.join(unknown)}: unknown; {kind.__name__} has {', '.join(sorted(known))}"
        )
    return kind(
        **{
            field: _decode(hints[field], value[name], exactly)
            for name, field in known.items()
            if name in value
        }
    )


def _member(arguments: tuple[Any, ...], value: Any) -> Any:
    """Return the type in a union that a JSON value has. Raises ValueError: none."""
    for one in arguments:
        if _has_type(one, value):
            return one
    names = " or ".join(getattr(one, "__name__", str(one)) for one in arguments)
    raise ValueError(f"expected {names}, got {value!r}")


def _has_type(kind: Any, value: Any) -> bool:
    """Has a JSON value this type? Of objects and lists, only the outermost form is judged."""
    if kind is Any:
        return True
    if kind is type(None):
        return value is None
    if is_dataclass(kind):
        return isinstance(value, dict)
    origin = get_origin(kind)
    if origin in UNIONS:
        return any(_has_type(one, value) for one in get_args(kind))
    if origin is Literal:
        # Newer servers may know more words.
        return any(type(value) is type(word) for word in get_args(kind))
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    form = {datetime: str, tuple: list}.get(origin or kind, origin or kind)
    return isinstance(value, form)
