"""Decodes input strictly into the dataclasses of `wire`: unknown names are refused."""

import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from moorage.faces.json_decoding import json_decode
from moorage.faces.web import RefusalError
from moorage.wire.dataclass import member

T = TypeVar("T")
Check = Callable[[Any], None]
Rename = Callable[[Any], Any]

WORDS: Mapping[Any, str] = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    datetime: "a time such as 2026-01-31T12:00:00Z",
}
"""The names of these types of parameters, for people."""


def body_decode(raw: bytes, kind: type[T]) -> T:
    """Decode a request's JSON body. Raises RefusalError."""
    return fitted(json_decode(raw), kind)


def fitted(value: Any, kind: type[T]) -> T:
    """Convert decoded JSON to a type; it may have no other names. Raises RefusalError."""
    rename = _rename_of(kind)  # type: ignore[arg-type] # types are hashable
    try:
        decoded = msgspec.convert(value if rename is None else rename(value), kind)
    except msgspec.ValidationError as error:
        reason = str(error) if rename is None else _MEMBER.sub(r"\1", str(error))
        raise misfit(reason) from None
    try:
        check = _check_of(kind)  # type: ignore[arg-type] # types are hashable
        if check is not None:
            check(value)
    except msgspec.ValidationError as error:
        raise misfit(str(error)) from None
    return decoded


def misfit(reason: str) -> RefusalError:
    """Return the refusal of a body that does not fit its type."""
    return RefusalError(HTTPStatus.BAD_REQUEST, f"The body is invalid: {reason}")


_MEMBER = re.compile(r"\b([a-z]+)_\b")
"""A field in a message whose member in JSON has no `_`."""


def query_decode(pairs: list[tuple[str, str]], kind: type[T]) -> T:
    """Decode a query; only a parameter that is a list may be repeated. Raises RefusalError."""
    nothing: T | None = None if pairs else _nothing_given(kind)  # type: ignore[arg-type] # types are hashable
    if nothing is not None:
        return nothing
    lists = _lists_of(kind)  # type: ignore[arg-type] # types are hashable
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise RefusalError(HTTPStatus.BAD_REQUEST, "A query parameter is given more than once.")
        else:
            values[name] = value
    known = _names_of(kind)  # type: ignore[arg-type] # types are hashable
    if unknown := sorted(values.keys() - known):
        there = f"the parameters are {', '.join(known)}" if known else "there are no parameters"
        raise RefusalError(HTTPStatus.BAD_REQUEST, f"{', '.join(unknown)}: unknown; {there}.")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise RefusalError(HTTPStatus.BAD_REQUEST, _query_refusal(values, kind, error)) from None


def _query_refusal(values: Mapping[str, Any], kind: Any, error: Exception) -> str:
    """Return which parameter is wrong, and what it should be, in words."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        try:
            if name in values:
                msgspec.convert(values[name], hint, strict=False)
        except msgspec.ValidationError:
            expected = _expected(hint)
            if expected is not None:
                return f"{name}: expected {expected}, got '{values[name]}'."
    return f"The query is invalid: {error}"


def _expected(hint: Any) -> str | None:
    """Return which values a parameter may have; None: words do not say it better than the error."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        words = [_expected(one) for one in arguments if one is not types.NoneType]
        return None if None in words else " or ".join(filter(None, words))
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    return WORDS.get(hint)


@cache
def _nothing_given(kind: Any) -> Any:
    """Return what no parameters mean, for all requests; None: they are refused, or it has lists."""
    if _lists_of(kind):
        return None
    try:
        return msgspec.convert({}, kind, strict=False)
    except msgspec.ValidationError:
        return None


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    """Return the names of all parameters, in order."""
    return tuple(field.name for field in fields(kind))


@cache
def _lists_of(kind: Any) -> frozenset[str]:
    """Return the names of parameters that may be repeated."""
    hints = get_type_hints(kind)
    return frozenset(name for name, hint in hints.items() if get_origin(hint) is list)


@cache
def _check_of(kind: Any) -> Check | None:
    """Return a check that raises ValidationError for names unknown to `kind`, at any depth.

    Returns None if values of `kind` contain no names. Raises TypeError for unions of dataclasses.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _check_fields(kind)
    if origin is Annotated:
        return _check_of(arguments[0])
    if origin in (Union, types.UnionType):
        checks = [check for check in map(_check_of, arguments) if check is not None]
        if len(checks) > 1:
            raise TypeError(f"{kind} has names in more than one way")
        return _check_if_named(checks[0]) if checks else None
    if origin in (list, set, frozenset, tuple, dict):
        inner = _check_of(arguments[-1 if origin is dict else 0])
        if inner is None:
            return None
        return _check_values(inner) if origin is dict else _check_items(inner)
    return None


def _check_fields(kind: Any) -> Check:
    hints = get_type_hints(kind, include_extras=True)
    known = frozenset(map(member, hints))
    inner = [
        (member(name), check) for name in hints if (check := _check_of(hints[name])) is not None
    ]

    def check_fields(value: Any) -> None:
        if not value.keys() <= known:
            unknown = min(value.keys() - known)
            raise msgspec.ValidationError(f"Object contains unknown field `{unknown}`")
        for name, check in inner:
            if name in value:
                check(value[name])

    return check_fields


def _check_if_named(inner: Check) -> Check:
    """Check a union, in which one type has names; the others are null or words like "auto"."""

    def check_if_named(value: Any) -> None:
        if value is not None and not isinstance(value, str):
            inner(value)

    return check_if_named


def _check_items(inner: Check) -> Check:
    def check_items(value: Iterable[Any]) -> None:
        for item in value:
            inner(item)

    return check_items


def _check_values(inner: Check) -> Check:
    def check_values(value: Mapping[str, Any]) -> None:
        for item in value.values():
            inner(item)

    return check_values


@cache
def _rename_of(kind: Any) -> Rename | None:
    """Return what replaces the names of members in JSON by those of fields, at any depth.

    Returns None if they are the same. What does not fit the type stays as it is.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _rename_members(kind)
    if origin is Annotated:
        return _rename_of(arguments[0])
    if origin in (Union, types.UnionType):
        renames = [rename for rename in map(_rename_of, arguments) if rename is not None]
        return renames[0] if renames else None
    if origin is list:
        inner = _rename_of(arguments[0])
        return None if inner is None else _rename_items(inner)
    if origin is dict:
        inner = _rename_of(arguments[1])
        return None if inner is None else _rename_values(inner)
    return None


def _rename_members(kind: Any) -> Rename | None:
    hints = get_type_hints(kind, include_extras=True)
    names = {member(name): name for name in hints}
    inner = {
        member(name): rename for name in hints if (rename := _rename_of(hints[name])) is not None
    }
    if not inner and all(name == field for name, field in names.items()):
        return None

    def rename_members(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            names.get(name, name): inner[name](one) if name in inner else one
            for name, one in value.items()
        }

    return rename_members


def _rename_items(inner: Rename) -> Rename:
    return lambda value: list(map(inner, value)) if isinstance(value, list) else value


def _rename_values(inner: Rename) -> Rename:
    return lambda value: (
        {key: inner(one) for key, one in value.items()} if isinstance(value, dict) else value
    )
