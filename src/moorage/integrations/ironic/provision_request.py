"""Recognises requests for a provision state in every spelling that Ironic accepts.

Ironic 39 accepts: `PUT /v1/nodes/NODE/states/provision`, the same below `/v1/chassis`, without the
node in the path (then `node_ident` is a parameter), with the target as the last part of the path,
with a slash at the end, with `.json` (below microversion 1.91) and with percent-encoded letters.
Parameters may be in the query, in a form, or in JSON. Ambiguous requests are
refused, because the gate and Ironic could differ, or a proxy between them could make another
request of it: nginx drops what follows a `#`, and with `proxy_pass http://ironic$uri` it decodes
`%3f` to `?`.
Source: tried with a real Ironic, alone and behind nginx; see `tests/baremetal/rules.py`.
"""

import json
import re
import unicodedata
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
    r"[^\x21-\x7e]|[\\;?#]|%(?![0-9a-f]{2})|%2[35f]|%3[bf]|%5c|%[01][0-9a-f]|%7f", re.IGNORECASE
)
"""Characters that a server could take for the end of the path, or of a part, after decoding."""

_HIDDEN = re.compile(r"states[^a-z0-9._~-]+provision(?![a-z0-9_-])")
"""The place of a request for a provision state, with anything between its parts."""

VERB: Final = re.compile(r"[a-z]+")
"""Ironic's verbs. No other text is forwarded as one: a server could cut it to a verb."""

_PARENTS: Final = frozenset({(), ("chassis",)})

_NAME: Final = re.compile(r"[a-z_]+")
"""Names of parameters: others could become one of these when they are decoded again."""

_NODE: Final = re.compile(r"[A-Za-z0-9._~-]+")
"""UUIDs and names of nodes (`is_valid_logical_name` of Ironic 39)."""

_AGAIN: Final = re.compile(r";|%(?:2[356]|3[bd])", re.IGNORECASE)
"""Separators of a query that is decoded once more; Ironic's library takes `;` for `&`."""

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


def place_of(
    method: str, address: str, *, has_body: bool = False, is_coded: bool = False
) -> ProvisionPath | None:
    """Return what a path says of a request for a provision state; None: it is another request.

    Args:
        method: as sent.
        address: path and query, as sent.
        has_body: whether a body follows.
        is_coded: whether the header Content-Encoding says that the body is compressed.

    Raises AmbiguousError.
    """
    path, _, query = address.partition("?")
    names = _segments(path)
    if OVERRIDE in dict(_parameters(query)):
        raise AmbiguousError(f"The parameter {OVERRIDE} is not allowed: send the method itself.")
    is_place = PLACE in pairwise(names)
    if method.upper() in READING:
        if has_body and (is_place or _HIDDEN.search(_folded(names))):
            raise AmbiguousError(f"{method} has no body here: omit it, or use PUT.")
        return None
    _check_writing(names, is_place=is_place)
    if not is_place:
        return None
    if is_coded:
        raise AmbiguousError("The body must not be compressed: omit Content-Encoding.")
    if method.upper() != "PUT":
        # A form may have the parameter, too.
        raise AmbiguousError(f"{method} is not allowed here: use PUT.")
    if names[0] != "v1" or "nodes" not in names:
        raise AmbiguousError(
            f"'{path}' is not a known address: use /v1/nodes/NODE/states/provision."
        )
    at = names.index("nodes")
    parents, below = tuple(names[1:at]), names[at + 1 :]
    for first in (0, 1) if parents in _PARENTS else ():
        if tuple(below[first : first + 2]) == PLACE and len(below) <= len(PLACE) + 2:
            return ProvisionPath(*below[:first], *below[first + 2 :])
    raise AmbiguousError(f"'{path}' is not a known address: use /v1/nodes/NODE/states/provision.")


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
        if not _NAME.fullmatch(name):
            raise AmbiguousError(f"{name!r} is not a parameter of this request: omit it.")
        if name in found:
            raise AmbiguousError(f"'{name}' is given twice: send it once, in the body.")
        found[name] = value
    node, verb = _text(found, NODE), _text(found, TARGET)
    if not _NODE.fullmatch(node):
        raise AmbiguousError(f"'{NODE}' must be the UUID or the name of a node.")
    if not VERB.fullmatch(verb):
        raise AmbiguousError(f"'{TARGET}' must be a verb in lower case, such as 'active'.")
    return ProvisionRequest(node, verb)


def _segments(path: str) -> list[str]:
    if strange := _STRANGE.search(path):
        raise AmbiguousError(
            f"The path must not have '{strange[0]}': send the character itself, not encoded."
        )
    try:
        names = [unquote_to_bytes(part).decode() for part in path.split("/")]
    except UnicodeDecodeError as error:
        raise AmbiguousError("The path must be in UTF-8.") from error
    if names[-1] == "":
        names.pop()
    if names[:1] == [""]:
        names = names[1:]
    if not {"", ".", ".."}.isdisjoint(names) or any("/" in name for name in names):
        raise AmbiguousError("The path must not have empty parts, '.' or '..'.")
    if names and names[-1].endswith(SUFFIX):
        names[-1] = names[-1].removesuffix(SUFFIX)
    return names


def _check_writing(names: list[str], *, is_place: bool) -> None:
    """Refuse what a server that decodes a path again, or ignores case, could take for the place."""
    if any(letter.isspace() for name in names for letter in name):
        raise AmbiguousError("The path must not have spaces.")
    if not is_place and _HIDDEN.search(_folded(names)):
        raise AmbiguousError(
            "This address looks like one for a provision state: use "
            "/v1/nodes/NODE/states/provision."
        )


def _folded(names: list[str]) -> str:
    """Return a path as a server could read it that knows neither case nor forms of letters."""
    return unicodedata.normalize("NFKC", "/".join(names)).casefold()


def _parameters(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _decided_query(address: str) -> list[tuple[str, str]]:
    """Return the parameters of the query. Raises AmbiguousError."""
    query = address.partition("?")[2]
    if again := _AGAIN.search(query):
        raise AmbiguousError(f"The query must not have '{again[0]}': use the body.")
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
        raise AmbiguousError(f"'{name}' is missing or not a string.")
    return value
