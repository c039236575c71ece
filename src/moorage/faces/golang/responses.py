"""Writes responses as Go does: the headers of `net/http`, JSON, times, quoted strings.

Source: Go's `encoding/json` and `strconv.Quote`, and recorded traffic.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.faces.web import Scope, Send, answer_send

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SHORT = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}

_JSON_SHORT = {
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    '"': '\\"',
    "\\": "\\\\",
}

_JSON_ESCAPED = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029\ud800-\udfff]')
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates, except those that stand for single bytes."""


def quoted(text: str) -> str:
    """Quote a text as Go's `%q` does."""
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_string(text: str) -> str:
    """Write a string as JSON that is safe within HTML; other characters are not escaped."""
    return '"' + _JSON_ESCAPED.sub(_json_escaped, text) + '"'


def _json_escaped(found: re.Match[str]) -> str:
    character = found[0]
    if "\ud800" <= character <= "\udfff":
        return "\\ufffd"
    return _JSON_SHORT.get(character) or f"\\u{ord(character):04x}"


def json_object(members: Iterable[tuple[str, str]]) -> str:
    """Write an object in this order of members; the values must be JSON already."""
    return "{" + ",".join(f"{json_string(name)}:{value}" for name, value in members) + "}"


def json_strings(texts: Mapping[str, str]) -> str:
    """Write a map of strings, with keys sorted as bytes."""
    return json_object((key, json_string(texts[key])) for key in sorted(texts, key=_bytes))


def json_numbers(numbers: Mapping[str, int]) -> str:
    """Write a map of integers, with keys sorted as bytes."""
    return json_object((key, str(numbers[key])) for key in sorted(numbers, key=_bytes))


def json_list(texts: Iterable[str]) -> str:
    """Write a list; the items must be JSON already."""
    return "[" + ",".join(texts) + "]"


def json_time(at: Instant) -> str:
    """Write a time in UTC, truncated to seconds."""
    time = EPOCH + timedelta(seconds=at // 1_000_000)
    return f'"{time.replace(tzinfo=None).isoformat(timespec="seconds")}Z"'


def storable(text: str) -> str:
    """Return a text that every database accepts: NUL and everything not UTF-8 are replaced.

    The latter may be raw bytes from the wire, or halves of a surrogate pair from JSON.
    """
    whole = _HALVES.sub("\ufffd", text)
    raw = whole.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return raw.replace("\0", "\ufffd")


def raw_bytes(text: str) -> bytes:
    """Encode a text for the wire, with its original bytes where they were not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


TEXT = b"text/plain; charset=utf-8"
JSON = b"application/json"


class Response(Struct, frozen=True):
    """A status, a body, and the headers that differ between answers."""

    status: int
    body: bytes = b""
    kind: bytes | None = None
    """The content type; None: no such header."""
    more: tuple[tuple[bytes, bytes], ...] = ()


def text_answer(text: str) -> Response:
    """Return the answer of a Go handler that sets no content type."""
    return Response(200, raw_bytes(text), TEXT)


def refusal(status: int, text: str) -> Response:
    """Return the answer that Go's `http.Error` writes."""
    return Response(
        status, raw_bytes(text + "\n"), TEXT, ((b"x-content-type-options", b"nosniff"),)
    )


async def response_send(answer: Response, scope: Scope, send: Send) -> None:
    """Send an answer. The `date` header, which Go always sends, is left to the server."""
    headers: list[tuple[bytes, bytes]] = []
    if answer.kind is not None:
        headers.append((b"content-type", answer.kind))
    headers.extend(answer.more)
    if answer.status != 204 and (answer.body or scope["method"] != "HEAD"):
        headers.append((b"content-length", str(len(answer.body)).encode("ascii")))
    await answer_send(scope, send, answer.status, headers, answer.body)
