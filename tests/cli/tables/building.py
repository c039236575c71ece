"""How answers are built: of the types of the native API, at one time."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

NOW = datetime(2026, 3, 14, 2, 17, 5, tzinfo=UTC)
"""The time of every answer, by the server's clock."""


def before(**ago: float) -> datetime:
    """Return a time in the past."""
    return NOW - timedelta(**ago)


def built(kind: type[T], **values: Any) -> T:
    """Return a value of the API in which only the members that matter are given."""
    hints = get_type_hints(kind)
    names = {field.name for field in fields(kind)} - values.keys()  # type: ignore[arg-type] # a T is a dataclass
    empty = {name: _empty(hints[name]) for name in names}
    return kind(**{**empty, **values})


def _empty(hint: Any) -> Any:
    if type(None) in get_args(hint):
        return None
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    return NOW if hint is datetime else (get_origin(hint) or hint)()
