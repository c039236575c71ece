"""Every text in every place where a client may put one, in otherwise valid requests.

A place is a part of an address, a name or a value of a query, a header's value, or a key or a value
anywhere in a body. `variants` puts one text after another into each place of a request.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from tests.e2e.support.hostile import Pairs, Raw, written
from tests.e2e.support.peer import head

PROVIDER = "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
AGGREGATE = "00000001-dddd-4ddd-8ddd-dddddddddddd"
CONSUMER = "00000001-cccc-4ccc-8ccc-cccccccccccc"
NOTHING: Final = object()
GENERATION: Final = object()
"""A placeholder for the provider's generation."""
FRESH: Final = "<a fresh UUID>"
LEASE: Final = "<the lease that was made last>"
COUNT: Final = object()
"""A placeholder for a number that is higher each time."""


def _dense(length: int, first: int, last: int) -> str:
    """Return a text that cannot be compressed."""
    choice = Random(length)
    return "".join(chr(choice.randint(first, last)) for _ in range(length))


_MARKS = "/ a/b // . .. ../.. : a:pause ? # & = + % { } {a,b} NULL null , ; $1 %s %00 \\ a\\ \" '"

TEXTS: list[Any] = [
    *("", " ", "\n", "\t", "\0", "a\0b", "CUSTOM_\0", "\ud800", "a\udfffz", "\\u0000"),
    *_MARKS.split(" "),
    *("''; DROP TABLE provider; --", "AAAAAAAA-AAAA-4AAA-8AAA-AAAAAAAAAAAA", "0" * 36),
    *("\x7f", "\x80", "\u2028", "\u202e", "\ufeff", "\uffff", "\U0010ffff", "é" * 200, "😀" * 255),
    *("x" * 255, "x" * 256, "x" * 5_000, "CUSTOM_" + "A" * 248, "CUSTOM_" + "A" * 249),
    *("-1", "1.9", "1e999", "nan", "9" * 18, str(1 << 63)),
    *(_dense(200, 0x4E00, 0x9FFF), _dense(255, 0x10000, 0x1F000), _dense(3_000, 0x21, 0x7E)),
]
"""Values to put where a text is expected, or where one can be written."""

OTHERS: list[Any] = [
    *(None, True, [], {}, [""], {"\0": 1}, -1, 0, 1 << 31, 1 << 53, (1 << 63) - 1, 1 << 63, 10**30),
    *(0.1, -0.0, 1e308, -1e308, Raw(b'"\xff"'), Raw(b'"\\ud800"'), Raw(b"1e999"), Raw(b"NaN")),
]
"""Further values for bodies."""

NAMES = ["", "\0", "\ud800", "a\\", "{a,b}", "x" * 5_000, *TEXTS[-3:]]
"""Values to put where an existing name is expected."""

HEADERS = ("X-Auth-Token", "X-Roles", "X-Project-Id", "OpenStack-API-Version", "Accept")


class Ask(NamedTuple):
    """A request. `path` has braces for its parts; `sure`: unchanged, it succeeds."""

    method: str
    path: str
    parts: tuple[str, ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    body: Any = NOTHING
    door: str = "native"
    sure: bool = True
    version: str = "placement latest"
    headers: bool = False
    """Whether to vary its headers as well."""

    @property
    def ordered(self) -> bool:
        """Whether it needs a generation that other requests change."""
        return "GENERATION" in repr(_named(self.body))


def _named(body: Any) -> Any:
    if isinstance(body, dict):
        return {key: _named(value) for key, value in body.items()}
    return "GENERATION" if body is GENERATION else body


class Now(NamedTuple):
    """Values that are filled in when a request is sent."""

    generation: int
    fresh: str
    lease: str
    higher: int


class Variant(NamedTuple):
    """A request with another value in one place: which place, and which value."""

    ask: Ask
    place: tuple[Any, ...]
    text: Any

    @property
    def what(self) -> str:
        return f"{self.ask.method} {self.ask.path}"

    def bytes(self, now: Now) -> bytes:
        """Return the request as it is sent."""
        kind, *at = self.place
        ask = self.ask
        parts = [_put(part, now) for part in ask.parts]
        query = [(name, _put(value, now)) for name, value in ask.query]
        headers = {
            "OpenStack-API-Version": ask.version,
            "X-Auth-Token": "admin",
            "X-Roles": "admin,service",
            "Content-Type": "application/json",
        }
        body = _put(ask.body, now)
        if kind == "path":
            parts[at[0]] = self.text
        elif kind == "name":
            query[at[0]] = (self.text, query[at[0]][1])
        elif kind == "query":
            query[at[0]] = (query[at[0]][0], self.text)
        elif kind == "header":
            headers[at[0]] = self.text
        elif kind in ("key", "value"):
            body = _replaced(body, at, kind, self.text)
        target = ask.path.format(*map(_escaped, parts))
        if query:
            target += "?" + "&".join(f"{_escaped(name)}={_escaped(text)}" for name, text in query)
        content = None if body is NOTHING else written(body)
        return head(ask.method, target, list(headers.items()), content)


def variants(ask: Ask) -> Iterator[Variant]:
    """Yield the unchanged request, then one with each text in each place."""
    yield Variant(ask, ("as it stands",), None)
    places: list[tuple[Any, ...]] = [("path", n) for n in range(len(ask.parts))]
    places += [("query", n) for n in range(len(ask.query))]
    for place in places:
        for text in TEXTS:
            yield Variant(ask, place, text)
    for n in range(len(ask.query)):
        for text in NAMES:
            yield Variant(ask, ("name", n), text)
    for name in HEADERS if ask.headers else ():
        for text in TEXTS:
            if text and text.isprintable() and all(ord(one) < 0x100 for one in text):
                yield Variant(ask, ("header", name), text)
    for place in _places(ask.body):
        for text in [*TEXTS, *OTHERS] if place[0] == "value" else NAMES:
            yield Variant(ask, place, text)


def _places(value: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield every key and every value that is no object and no list, by its position."""
    if isinstance(value, dict):
        for n, inner in enumerate(value.values()):
            yield ("key", *at, n)
            yield from _places(inner, (*at, n))
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from _places(inner, (*at, n))
    elif value is not NOTHING:
        yield ("value", *at)


def _replaced(value: Any, at: list[int], kind: str, text: Any) -> Any:
    if not at:
        return text
    n, *rest = at
    if isinstance(value, list):
        return [*value[:n], _replaced(value[n], rest, kind, text), *value[n + 1 :]]
    pairs = list(value.items())
    key, inner = pairs[n]
    if kind == "key" and not rest:
        pairs[n] = (text, inner)
    else:
        pairs[n] = (key, _replaced(inner, rest, kind, text))
    return Pairs(pairs)


def _put(value: Any, now: Now) -> Any:
    """Fill in the values that are known only now."""
    if isinstance(value, dict):
        return {_put(key, now): _put(inner, now) for key, inner in value.items()}
    if isinstance(value, list):
        return [_put(inner, now) for inner in value]
    if value is GENERATION or value is COUNT:
        return now.generation if value is GENERATION else now.higher
    return {FRESH: now.fresh, LEASE: now.lease}.get(value, value) if type(value) is str else value


def _escaped(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")
