"""Reads and decodes JSON bodies: accepts exactly those that Go handlers accept.

Callers need no token here, so bodies are limited to a small size. The reasons for refusals are
Moorage's own: no client reads them.
"""

import json
from typing import Any

from moorage.core.limits import BOSKOS_BODY_BYTES_MAX
from moorage.faces.golang.responses import storable
from moorage.faces.web import Limits, Receive, Scope, body_read, headers_of


async def body_of(scope: Scope, receive: Receive, limits: Limits) -> bytes:
    """Read the whole body of a request. Raises RefusalError."""
    most = min(limits.body_bytes_max, BOSKOS_BODY_BYTES_MAX)
    setting = f"body_bytes_max, at most {BOSKOS_BODY_BYTES_MAX} at this address"
    return await body_read(headers_of(scope), receive, most, setting)


_BLANK = " \t\r\n"


class BodyError(ValueError):
    """The body is not the expected JSON; the message gives the reason."""


class _Members(list[tuple[str, Any]]):
    """An object's members in order, including repeated ones."""


def strings_read(data: bytes) -> dict[str, str]:
    """Read the first value of a body, a map of strings; any text after it is ignored.

    An empty body and null are an empty map. Raises BodyError: it is not such a map.
    """
    text = _text(data).lstrip(_BLANK)
    if not text:
        return {}
    try:
        value, _ = _decoder.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise _malformed(error) from None
    found = {}
    for name, member in _members(value):
        if not isinstance(member, str | None):
            raise BodyError("every value must be a string")
        found[storable(name)] = storable(member or "")
    return found


def names_read(data: bytes) -> list[str]:
    """Read a whole body, an object with a list of strings in its field `names`.

    The case of the field's name does not matter. If it is absent or null, or the body is null, the
    list is empty. Raises BodyError: the body is not such an object.
    """
    try:
        value = _decoder.decode(_text(data))
    except (ValueError, RecursionError) as error:
        raise _malformed(error) from None
    names: list[str | None] = []
    for name, member in _members(value):
        if name.lower() == "names":
            names = [] if member is None else member
            if not _is_list_of_strings(names):
                raise BodyError("names must be a list of strings")
    return [storable(one or "") for one in names]


def _members(value: Any) -> _Members:
    if value is None:
        return _Members()
    if not isinstance(value, _Members):
        raise BodyError("the body must be a JSON object")
    return value


def _is_list_of_strings(value: Any) -> bool:
    """Return whether it is a list of strings; null stands for an empty string."""
    if not isinstance(value, list) or isinstance(value, _Members):
        return False
    return all(isinstance(one, str | None) for one in value)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _malformed(error: Exception) -> BodyError:
    deep = isinstance(error, RecursionError)
    return BodyError(f"malformed JSON: {'it is nested too deeply' if deep else error}")


def _no_number(name: str) -> None:
    """Refuse NaN and Infinity, which Python's decoder accepts as numbers."""
    raise ValueError(f"{name} is not a number in JSON")


# Numbers are only type-checked: as floats, because Python refuses integers with too many digits.
_decoder = json.JSONDecoder(object_pairs_hook=_Members, parse_int=float, parse_constant=_no_number)
