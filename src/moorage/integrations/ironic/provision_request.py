"""Recognises requests for a provision state in every spelling that Ironic accepts.

Ironic 39 accepts: `PUT /v1/nodes/NODE/states/provision`, the same below `/v1/chassis`, without the
node in the path (then `node_ident` is a parameter), with the target as the last part of the path,
with a slash at the end, with `.json` (below microversion 1.91) and with percent-encoded letters.
Parameters may be in the query, in a form, or in JSON. What could be understood in two ways is
refused, because the gate and Ironic could differ. Source: tried with a real Ironic, see the test.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_to_bytes

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
NODE, TARGET = "node_ident", "target"
PLACE: Final = ("states", "provision")
SUFFIX = ".json"
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
OVERRIDE = "_method"
"""A parameter by which some web frameworks replace the method of a request."""

_STRANGE = re.compile(
    r"[^\x21-\x7e]|[\\;#]|%(?![0-9a-f]{2})|%2[5f]|%5c|%[01][0-9a-f]|%7f", re.IGNORECASE
)
_PARENTS: Final = frozenset({(), ("chassis",)})

_TYPE = re.compile(
    rf'({re.escape(JSON)}|{re.escape(FORM)})([ \t]*;[ \t]*charset=("?)(utf-?8|us-ascii)\3)?[ \t]*',
    re.IGNORECASE,
)
"""The header `Content-Type` in full. Ironic's library looks for `charset=` anywhere in it, also
within the quotes of another parameter: in UTF-7, a text in JSON can become members."""

VALUES_MAX = 100_000
"""Parts of a body: parsing 128 MiB of small ones would take gigabytes, and seconds at a time."""


class AmbiguousError(ValueError):
    """A request that Ironic may understand in another way; the message says what to change."""


@dataclass(frozen=True)
class ProvisionRequest:
    """A request for a provision state: of which node, and which target, such as `active`."""

    node: str
    target: str


@dataclass(frozen=True)
class ProvisionPath:
    """Where a path leads: what of the node and the target it names."""

    node: str | None = None
    target: str | None = None


def place_of(method: str, address: str) -> ProvisionPath | None:
    """Return what a path says of a request for a provision state; None: it is another request.

    Args:
        method: as sent.
        address: path and query, as sent.

    Raises AmbiguousError.
    """
    path, _, query = address.partition("?")
    names = _segments(path)
    if OVERRIDE in dict(_parameters(query)):
        raise AmbiguousError(f"The parameter {OVERRIDE} is not allowed: send the method itself.")
    if PLACE not in pairwise(names) or method.upper() in READING:
        return None
    if method.upper() != "PUT":
        # A form may have the parameter, too.
        raise AmbiguousError(f"{method} is not allowed here: use PUT.")
    if names[0] != "v1" or "nodes" not in names:
        raise AmbiguousError(f"'{path}' is no known address: use /v1/nodes/NODE/states/provision.")
    at = names.index("nodes")
    parents, below = tuple(names[1:at]), names[at + 1 :]
    for first in (0, 1) if parents in _PARENTS else ():
        if tuple(below[first : first + 2]) == PLACE and len(below) <= len(PLACE) + 2:
            return ProvisionPath(*below[:first], *below[first + 2 :])
    raise AmbiguousError(f"'{path}' is no known address: use /v1/nodes/NODE/states/provision.")


def request_of(
    place: ProvisionPath, address: str, content_type: str | None, body: bytes
) -> ProvisionRequest:
    """Return the request at a place, with the parameters of its query and body.

    Args:
        place: as `place_of` has returned it.
        address: path and query, as sent.
        content_type: of the body; None: there is no such header.
        body: all of it.

    Raises AmbiguousError.
    """
    given = [(name, value) for name, value in ((NODE, place.node), (TARGET, place.target)) if value]
    given += _decided_query(address)
    given += _members(content_type, body)
    found: dict[str, Any] = {}
    for name, value in given:
        if name in found:
            raise AmbiguousError(f"'{name}' is given twice: give it once, in the body.")
        found[name] = value
    return ProvisionRequest(_text(found, NODE), _text(found, TARGET))


def _segments(path: str) -> list[str]:
    if strange := _STRANGE.search(path):
        raise AmbiguousError(f"The path must not have '{strange[0]}': send it in plain letters.")
    names = [unquote_to_bytes(part).decode("utf-8", "replace") for part in path.split("/")]
    if names[-1] == "":
        names.pop()
    if names[:1] == [""]:
        names = names[1:]
    if not {"", ".", ".."}.isdisjoint(names) or any("/" in name for name in names):
        raise AmbiguousError("The path must not have empty parts, '.' or '..'.")
    if names and names[-1].endswith(SUFFIX):
        names[-1] = names[-1].removesuffix(SUFFIX)
    return names


def _parameters(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _decided_query(address: str) -> list[tuple[str, str]]:
    """Return the parameters of the query. Raises AmbiguousError."""
    query = address.partition("?")[2]
    if ";" in query:
        # Ironic's library takes it for `&`.
        raise AmbiguousError("The query must not have ';'.")
    return _parameters(query)


def _members(content_type: str | None, body: bytes) -> Iterable[tuple[str, Any]]:
    if not body:
        return []
    if (kind := _TYPE.fullmatch(content_type or "")) is None:
        raise AmbiguousError(f"The body must be of type {JSON}, in UTF-8.")
    if sum(map(body.count, (b",", b"[", b"{", b"&"))) > VALUES_MAX:
        raise AmbiguousError("The body has too many parts.")
    try:
        if kind[1].lower() == FORM:
            return _parameters(body.decode("ascii"))
        members = json.loads(body.decode(), object_pairs_hook=_Members)
    except (ValueError, RecursionError) as error:
        raise AmbiguousError("The body is not valid JSON.") from error
    if not isinstance(members, _Members):
        raise AmbiguousError("The body must be a JSON object.")
    return members.pairs


class _Members:
    """The members of a JSON object, also those that are given twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise AmbiguousError(f"'{name}' is missing, or is no text.")
    return value
