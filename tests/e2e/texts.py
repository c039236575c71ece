"""Every text at every place where a client may put one, in requests that are good otherwise.

A place is a part of an address, a name or a value of a query, a header's value, or a key or a value
anywhere in a body. `ASKS` are the requests; `variants` puts one text after another into each place.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from tests.e2e.hostile import Pairs, Raw, written
from tests.e2e.peer import head

PROVIDER = "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
AGGREGATE = "00000001-dddd-4ddd-8ddd-dddddddddddd"
CONSUMER = "00000001-cccc-4ccc-8ccc-cccccccccccc"
NOTHING: Final = object()
GENERATION: Final = object()
"""Stands for the provider's generation when the request is sent."""
FRESH: Final = "<a fresh UUID>"
LEASE: Final = "<the lease that was made last>"


def _dense(length: int, first: int, last: int) -> str:
    """Return a text that no compression makes shorter."""
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
"""What may stand where a text is expected, or where one can be written."""

OTHERS: list[Any] = [
    *(None, True, [], {}, [""], {"\0": 1}, -1, 0, 1 << 31, 1 << 53, (1 << 63) - 1, 1 << 63, 10**30),
    *(0.1, -0.0, 1e308, -1e308, Raw(b'"\xff"'), Raw(b'"\\ud800"'), Raw(b"1e999"), Raw(b"NaN")),
]
"""What may stand in a body besides."""

NAMES = ["", "\0", "\ud800", "a\\", "{a,b}", "x" * 5_000, *TEXTS[-3:]]
"""What may stand where a name is expected that nobody makes up."""

HEADERS = ("X-Auth-Token", "X-Roles", "X-Project-Id", "OpenStack-API-Version", "Accept")


class Ask(NamedTuple):
    """A request. `path` has braces for its parts; `sure`: it succeeds as it stands."""

    method: str
    path: str
    parts: tuple[str, ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    body: Any = NOTHING
    door: str = "native"
    sure: bool = True
    version: str = "placement latest"
    headers: bool = False
    """Are its headers to be varied as well?"""

    @property
    def ordered(self) -> bool:
        """Does it need a generation that others change?"""
        return "GENERATION" in repr(_named(self.body))


def _named(body: Any) -> Any:
    if isinstance(body, dict):
        return {key: _named(value) for key, value in body.items()}
    return "GENERATION" if body is GENERATION else body


class Now(NamedTuple):
    """What is put in when a request is sent."""

    generation: int
    fresh: str
    lease: str


class Variant(NamedTuple):
    """A request with something else in one place: which one, and what."""

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
    """Yield a request as it stands, then with each text in each place."""
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
    """Put in what is only known now."""
    if isinstance(value, dict):
        return {_put(key, now): _put(inner, now) for key, inner in value.items()}
    if isinstance(value, list):
        return [_put(inner, now) for inner in value]
    if value is GENERATION:
        return now.generation
    return {FRESH: now.fresh, LEASE: now.lease}.get(value, value) if type(value) is str else value


def _escaped(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


_ONE = "/resource_providers/{}"
_MADE = {"allocations": {PROVIDER: {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u"}
_HELD = {**_MADE, "consumer_generation": None, "consumer_type": "INSTANCE"}
_OFFERED = {
    "VCPU": {"total": 1_000_000, "reserved": 0, "allocation_ratio": 1.0},
    "CUSTOM_A": {"total": 5},
}
_GROUPS = [
    {
        "suffix": "",
        "resources": {"VCPU": 1},
        "required": ["CUSTOM_T"],
        "forbidden": ["CUSTOM_U"],
        "member_of": [AGGREGATE],
        "in_tree": PROVIDER,
    }
]
_QUESTION = {"groups": _GROUPS, "group_policy": "none", "root_required": ["CUSTOM_T"]}
_LEASE = "/v1/leases/{}"

MAKING = (
    Ask("PUT", "/resource_classes/{}", ("CUSTOM_A",)),
    Ask("PUT", "/traits/{}", ("CUSTOM_T",)),
    Ask("PUT", "/traits/{}", ("CUSTOM_U",)),
    Ask(
        "PUT",
        f"{_ONE}/inventories",
        (PROVIDER,),
        body={"resource_provider_generation": GENERATION, "inventories": _OFFERED},
    ),
    Ask(
        "PUT",
        f"{_ONE}/traits",
        (PROVIDER,),
        body={"resource_provider_generation": GENERATION, "traits": ["CUSTOM_T"]},
    ),
    Ask(
        "PUT",
        f"{_ONE}/aggregates",
        (PROVIDER,),
        body={"resource_provider_generation": GENERATION, "aggregates": [AGGREGATE]},
    ),
    Ask(
        "PUT",
        "/v1/pools/{}",
        ("p",),
        body={
            "limit": 1_000_000,
            "ttl": 60,
            "pacing": {"interval": 0.001, "burst": 1_000},
            "labels": {"of": "texts"},
            "on_retry": "keep",
            "expire": "free",
        },
    ),
    Ask("POST", "/v1/pools/{}:resume", ("p",)),
    Ask(
        "POST",
        "/v1/leases",
        query=(("wait", "0"),),
        body={"needs": [{"pool": "p", "units": 1}], "key": FRESH, "labels": {"a": "b"}, "ttl": 60},
    ),
)
"""What the others rest on: asked for in this order, and again between them."""

ASKS = (
    *MAKING,
    Ask("GET", "/resource_providers", query=(("name", "one"), ("uuid", PROVIDER))),
    Ask(
        "GET",
        "/resource_providers",
        query=(("member_of", AGGREGATE), ("resources", "VCPU:1"), ("required", "CUSTOM_T")),
    ),
    Ask("GET", "/resource_providers", query=(("in_tree", PROVIDER),)),
    Ask("POST", "/resource_providers", body={"name": FRESH, "uuid": FRESH}),
    Ask("POST", "/resource_providers", body={"name": FRESH, "parent_provider_uuid": PROVIDER}),
    Ask("GET", _ONE, (PROVIDER,), headers=True),
    Ask("PUT", _ONE, (PROVIDER,), body={"name": "one"}),
    Ask("DELETE", _ONE, (CONSUMER,), sure=False),
    *[
        Ask("GET", f"{_ONE}/{each}", (PROVIDER,))
        for each in ("inventories", "usages", "allocations", "traits", "aggregates")
    ],
    Ask("GET", f"{_ONE}/inventories/{{}}", (PROVIDER, "CUSTOM_A")),
    Ask(
        "PUT",
        f"{_ONE}/inventories/{{}}",
        (PROVIDER, "CUSTOM_A"),
        body={"resource_provider_generation": GENERATION, "total": 6},
    ),
    Ask(
        "POST",
        f"{_ONE}/inventories",
        (PROVIDER,),
        body={"resource_class": "DISK_GB", "total": 6},
        sure=False,
    ),
    Ask("DELETE", f"{_ONE}/inventories/{{}}", (PROVIDER, "CUSTOM_Z"), sure=False),
    Ask("POST", "/resource_classes", body={"name": "CUSTOM_NEW"}),
    Ask("GET", "/resource_classes/{}", ("CUSTOM_A",)),
    Ask(
        "PUT",
        "/resource_classes/{}",
        ("CUSTOM_NEW",),
        body={"name": "CUSTOM_NEWER"},
        version="placement 1.6",
    ),
    Ask("DELETE", "/resource_classes/{}", ("CUSTOM_NEWER",)),
    Ask("GET", "/traits", query=(("name", "in:CUSTOM_T,CUSTOM_U"), ("associated", "true"))),
    Ask("GET", "/traits", query=(("name", "startswith:CUSTOM_"),)),
    Ask("GET", "/traits/{}", ("CUSTOM_T",)),
    Ask("DELETE", "/traits/{}", ("CUSTOM_Z",), sure=False),
    Ask("PUT", "/allocations/{}", (FRESH,), body=_HELD),
    Ask(
        "PUT",
        "/allocations/{}",
        (FRESH,),
        body={
            **_MADE,
            "allocations": [{"resource_provider": {"uuid": PROVIDER}, "resources": {"VCPU": 1}}],
        },
        version="placement 1.8",
    ),
    Ask("POST", "/allocations", body={FRESH: _HELD}),
    Ask("GET", "/allocations/{}", (CONSUMER,)),
    Ask("DELETE", "/allocations/{}", (CONSUMER,), sure=False),
    Ask(
        "GET",
        "/usages",
        query=(("project_id", "p"), ("user_id", "u"), ("consumer_type", "INSTANCE")),
        headers=True,
    ),
    Ask(
        "POST",
        "/reshaper",
        body={
            "inventories": {
                PROVIDER: {"resource_provider_generation": GENERATION, "inventories": _OFFERED}
            },
            "allocations": {FRESH: _HELD},
        },
    ),
    Ask(
        "GET",
        "/allocation_candidates",
        query=(
            *(("resources", "VCPU:1"), ("required", "CUSTOM_T"), ("member_of", AGGREGATE)),
            *(("resources_A", "VCPU:1"), ("in_tree_A", PROVIDER), ("group_policy", "none")),
            *(("same_subtree", "_A"), ("root_required", "CUSTOM_T"), ("limit", "5")),
        ),
    ),
    # The native API.
    Ask("GET", "/v1/providers", query=(("cursor", PROVIDER), ("limit", "5"))),
    Ask(
        "POST",
        "/v1/providers:bulk",
        body={
            "providers": [
                {
                    "uuid": FRESH,
                    "name": FRESH,
                    "parent": None,
                    "inventories": {"VCPU": {"total": 1}},
                    "traits": ["CUSTOM_T"],
                    "aggregates": [AGGREGATE],
                }
            ],
            "create_vocabulary": True,
        },
    ),
    Ask(
        "POST",
        "/v1/claims",
        body={
            **_QUESTION,
            "project_id": "p",
            "user_id": "u",
            "consumer": FRESH,
            "consumer_type": "INSTANCE",
            "choose": "pack",
        },
    ),
    Ask("POST", "/v1/explain", body=_QUESTION),
    Ask("GET", "/v1/explain", query=(("query", '{"groups":[{"resources":{"VCPU":1}}]}'),)),
    Ask("GET", "/v1/pools", query=(("cursor", "o"), ("limit", "5"))),
    Ask("GET", "/v1/pools/{}", ("p",)),
    Ask("GET", "/v1/pools/{}:report", ("p",)),
    Ask("POST", "/v1/pools/{}:pause", ("q",), sure=False),
    Ask("DELETE", "/v1/pools/{}", ("q",), sure=False),
    Ask(
        "POST",
        "/v1/leases",
        query=(("wait", "0.001"),),
        headers=True,
        body={
            "needs": [{"pool": "p"}],
            "key": FRESH,
            "ttl": 1,
            "hold": 60,
            "priority": 1,
            "patience": 1,
            "force": False,
            "allocations": {
                "consumer": FRESH,
                "allocations": {PROVIDER: {"VCPU": 1}},
                "project_id": "p",
                "user_id": "u",
                "consumer_type": "INSTANCE",
            },
        },
    ),
    Ask(
        "GET",
        "/v1/leases",
        query=(("pool", "p"), ("state", "granted"), ("owner", "admin"), ("limit", "5")),
    ),
    Ask("GET", "/v1/leases", query=(("cursor", "1.x"), ("limit", "5"))),
    Ask("GET", "/v1/leases/verify", query=(("pool", "p"), ("token", "1.1.0"))),
    Ask("GET", _LEASE, (LEASE,), query=(("wait", "0"),)),
    Ask("POST", f"{_LEASE}/renew", (LEASE,), body={"token": None}),
    Ask("PATCH", _LEASE, (LEASE,), body={"hold": 60, "token": None}),
    Ask("POST", f"{_LEASE}/outcome", (LEASE,), body={"result": "ok", "detail": "fine"}),
    Ask("POST", f"{_LEASE}/retry", (LEASE,), body={"key": FRESH}, sure=False),
    Ask("POST", f"{_LEASE}/revoke", (LEASE,), body={"reason": "texts"}, sure=False),
    Ask("DELETE", _LEASE, (LEASE,), query=(("token", "1.1.0"),), sure=False),
    Ask("POST", "/v1/tokens", body={"name": "n", "role": "reader", "project_id": "p"}),
    Ask("GET", "/v1/tokens", query=(("cursor", "1.x"), ("limit", "5"))),
    Ask("DELETE", "/v1/tokens/{}", ("0123456789ab",), sure=False),
    Ask("GET", "/v1/audit", query=(("cursor", "1.x"), ("limit", "5"))),
    Ask("GET", "/v1/watch", query=(("after", "1.0"), ("kinds", "pool,slot"), ("limit", "5"))),
    # The clients of Boskos and of the lease proxy.
    Ask(
        "POST",
        "/acquire",
        query=(
            *(("type", "t1"), ("state", "free"), ("dest", "busy"), ("owner", "me")),
            ("request_id", "r"),
        ),
        door="second",
    ),
    Ask(
        "POST",
        "/acquirebystate",
        query=(("state", "free"), ("dest", "busy"), ("owner", "me"), ("names", "t2-a,t2-b")),
        door="second",
    ),
    Ask(
        "POST",
        "/update",
        query=(("name", "t2-a"), ("owner", "me"), ("state", "busy")),
        body={"a": "b"},
        door="second",
    ),
    Ask(
        "POST",
        "/release",
        query=(("name", "t2-a"), ("owner", "me"), ("dest", "free")),
        door="second",
    ),
    Ask(
        "POST",
        "/reset",
        query=(("type", "t2"), ("state", "busy"), ("expire", "10m"), ("dest", "free")),
        door="second",
    ),
    Ask("GET", "/metric", query=(("type", "t2"),), door="second"),
    Ask("POST", "/lease/acquire", query=(("type", "t3"), ("count", "1")), door="second"),
    Ask(
        "POST",
        "/lease/release",
        query=(("name", "t3-a"),),
        body={"names": ["t3-a", "t3-b"]},
        door="second",
        sure=False,
    ),
)
