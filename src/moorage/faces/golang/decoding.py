"""Decodes JSON bodies as Go handlers do, with the same error messages.

Python's decoder, written in C, handles valid bodies. The much slower `scanning.py` only finds Go's
error message for the others.
"""

import json
from typing import Any

from moorage.faces.golang.scanning import EndError, GoJsonError, check_whole, value_end
from moorage.faces.golang.texts import storable

KINDS = {str: "string", int: "number", float: "number", bool: "bool", list: "array"}

_BLANK = " \t\r\n"


class _Members(list[tuple[str, Any]]):
    """An object's members in order, including repeated ones."""


def strings_read(data: bytes, kind: str) -> dict[str, str]:
    """Read the first value of a body, a map of strings; any text after it is ignored.

    Args:
        data: the body; an empty one and null are an empty map.
        kind: the map's type in Go, for error messages.

    Raises:
        GoJsonError: the body is not such a map.
    """
    value: Any = _first_object(data)
    if value is None:
        try:
            end = value_end(data)
        except EndError:
            raise GoJsonError("unexpected EOF") from None
        if not end:
            return {}
        value = _loaded(data[:end])
    if value is None:
        return {}
    if not isinstance(value, _Members):
        raise _unfit(value, kind)
    for _, member in value:
        if member is not None and not isinstance(member, str):
            raise _unfit(member, "string")
    return {storable(name): storable(member or "") for name, member in value}


def names_read(data: bytes, kind: str, field: str) -> list[str]:
    """Read a whole body, an object with a list of strings in one field.

    Args:
        data: the body.
        kind: the object's type in Go, with its package, for error messages.
        field: the field's name in lower case; matched in any case. If absent, the list is empty.

    Raises:
        GoJsonError: the body is not such an object.
    """
    try:
        value = _decoder.decode(_text_of(data))
    except (ValueError, RecursionError):
        check_whole(data)
        value = _loaded(data)
    if value is None:
        return []
    if not isinstance(value, _Members):
        raise _unfit(value, kind)
    names: list[str] = []
    for name, member in value:
        if name.lower() != field:
            continue
        where = f"struct field {kind.partition('.')[2]}.{field}"
        if member is not None and (not isinstance(member, list) or isinstance(member, _Members)):
            raise GoJsonError(_text(member, where, "[]string"))
        names = []
        for one in member or []:
            if one is not None and not isinstance(one, str):
                raise GoJsonError(_text(one, where, "string"))
            names.append(storable(one or ""))
    return names


def _first_object(data: bytes) -> _Members | None:
    """Return the object at the beginning of a body; None if it is no object or invalid."""
    text = _text_of(data).lstrip(_BLANK)
    if not text.startswith("{"):
        return None
    try:
        value, _ = _decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    assert isinstance(value, _Members)
    return value


def _text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _loaded(data: bytes) -> Any:
    try:
        return _decoder.decode(_text_of(data))
    except RecursionError:
        raise GoJsonError("exceeded max depth") from None


def _no_number(name: str) -> None:
    """Refuse NaN and Infinity, which Python's decoder accepts as numbers."""
    raise ValueError(name)


# Numbers are only type-checked: as floats, because Python refuses integers with too many digits.
_decoder = json.JSONDecoder(object_pairs_hook=_Members, parse_int=float, parse_constant=_no_number)


def _unfit(value: Any, kind: str) -> GoJsonError:
    return GoJsonError(_text(value, "value", kind))


def _text(value: Any, where: str, kind: str) -> str:
    name = "object" if isinstance(value, _Members) else KINDS[type(value)]
    return f"json: cannot unmarshal {name} into Go {where} of type {kind}"
