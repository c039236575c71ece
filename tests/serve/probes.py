"""Hostile requests, one per row, and the expected answers.

`statuses` are those of all answers until the server closes the connection; `()` means no answer.
Requests that two parsers could read differently have a separate table in `test_protocol.py`.
"""

import gzip
import json
from typing import Any, NamedTuple

from tests.serve.wire import HOST, LATEST, request

JSON = b"Content-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CONSUMER = "c0000000-0000-4000-8000-000000000001"
PROVIDER = "a0000000-0000-4000-8000-000000000001"
SQL = "x'); DROP TABLE resource_providers; --"
SCRIPT = "<script>alert(1)</script>"
ESCAPE = "\x1b]52;c;aGk=\x07"


class Probe(NamedTuple):
    """A hostile request and the expected statuses."""

    name: str
    sent: bytes
    statuses: tuple[int, ...]
    half: bool = False
    """The client shuts down its sending side before it waits for the answer."""


def quoted(text: str) -> bytes:
    """Return a text percent-encoded for an address."""
    return "".join(f"%{byte:02x}" for byte in text.encode()).encode()


def body(method: bytes, path: bytes, content: bytes, *headers: bytes) -> bytes:
    """Return a request with a JSON body."""
    length = b"Content-Length: %d\r\n" % len(content)
    return request(method, path, JSON, length, *headers, body=content)


def json_request(method: bytes, path: bytes, value: Any, *headers: bytes) -> bytes:
    """Return a request with this value as its JSON body."""
    return body(method, path, json.dumps(value).encode(), *headers)


def lease(**more: Any) -> dict[str, Any]:
    """Return a valid request for a lease, with these members changed."""
    return {"needs": [{"pool": "probes", "units": 1}], "key": "k", "ttl": 1, **more}


def allocation(**more: Any) -> dict[str, Any]:
    """Return allocations of a consumer on a provider that does not exist."""
    known = {"project_id": "p", "user_id": "u", "consumer_generation": None}
    held = {PROVIDER: {"resources": {"VCPU": 1}}}
    return {"allocations": held, "consumer_type": "INSTANCE", **known, **more}


PARSER = [
    Probe("nothing", b"", (), half=True),
    Probe("an empty line", b"\r\n\r\n", (), half=True),
    Probe("bytes", bytes(range(256)), (400,)),
    Probe("zeros", b"\0" * 1_000, (400,)),
    Probe("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (400,)),
    Probe("SSH", b"SSH-2.0-OpenSSH_9.9\r\n", (400,)),
    Probe("HTTP/0.9", b"GET /\r\n\r\n", (505,)),
    Probe("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400,)),
    Probe("HTTP/1.2", b"GET / HTTP/1.2\r\n" + HOST + b"\r\n", (400,)),
    Probe("HTTP/3.0", b"GET / HTTP/3.0\r\n" + HOST + b"\r\n", (400,)),
    Probe("a method in small letters", b"get / HTTP/1.1\r\n" + HOST + b"\r\n", (400,)),
    Probe("a method of 10 KB", b"A" * 10_000 + b" / HTTP/1.1\r\n" + HOST + b"\r\n", (400,)),
    Probe("two blanks", request(b"GET ", b"/"), (200,)),
    Probe("a tab", b"GET\t/ HTTP/1.1\r\n" + HOST + b"\r\n", (400,)),
    Probe("no Host", b"GET / HTTP/1.1\r\n\r\n", (400,)),
    Probe("an empty Host", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", (421,)),
    Probe("a Host with a user", b"GET / HTTP/1.1\r\nHost: a@localhost\r\n\r\n", (421,)),
    Probe("a foreign Host", b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", (421,)),
    Probe(
        "a Host in the address", b"GET http://evil.example/ HTTP/1.1\r\n" + HOST + b"\r\n", (421,)
    ),
    Probe("CONNECT", b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST + b"\r\n", (400,)),
    Probe("TRACE", request(b"TRACE", b"/"), (405,)),
    Probe("an escape sequence in a header", request(b"GET", b"/", b"A: \x1b[31m\r\n"), (400,)),
    Probe("a NUL in a header", request(b"GET", b"/", b"A: \0\r\n"), (400,)),
    Probe("a name of a header with a blank", request(b"GET", b"/", b"A B: c\r\n"), (400,)),
    Probe("a header without a name", request(b"GET", b"/", b": c\r\n"), (400,)),
    Probe("a header of 70 KB", request(b"GET", b"/", b"A: " + b"b" * 70_000 + b"\r\n"), (431,)),
    Probe("an address of 70 KB", request(b"GET", b"/" + b"a" * 70_000), (431,)),
    Probe("200 headers", request(b"GET", b"/", b"A: b\r\n" * 200), (431,)),
    Probe("an unfinished head", b"GET / HTTP/1.1\r\n" + HOST, (), half=True),
    Probe(
        "half a request", request(b"POST", b"/traits", b"Content-Length: 9\r\n"), (400,), half=True
    ),
    Probe("half-closed", request(b"GET", b"/healthz"), (200,), half=True),
    Probe(
        "an unknown encoding", request(b"POST", b"/traits", b"Transfer-Encoding: gzip\r\n"), (400,)
    ),
    Probe(
        "a chunk of 16 EB", request(b"PUT", b"/traits/CUSTOM_A", CHUNKED, body=b"f" * 16), (201,)
    ),
    Probe(
        "a negative chunk", request(b"PUT", b"/traits/CUSTOM_A", CHUNKED, body=b"-1\r\n"), (400,)
    ),
    Probe(
        "WebSocket", request(b"GET", b"/", b"Upgrade: websocket\r\nConnection: upgrade\r\n"), (200,)
    ),
]

ADDRESSES = [
    Probe("out of the folder", request(b"GET", b"/../../etc/passwd"), (404,)),
    Probe("out of it, encoded", request(b"GET", b"/%2e%2e/%2e%2e/etc/passwd"), (404,)),
    Probe("out of it, below v1", request(b"GET", b"/v1/../../etc/passwd"), (404,)),
    Probe("a NUL in the address", request(b"GET", b"/traits/%00"), (400,)),
    Probe("no UTF-8 in the address", request(b"GET", b"/traits/%ff"), (404,)),
    Probe("no UTF-8 in the query", request(b"GET", b"/traits?name=%ff"), (400,)),
    Probe("a broken escape", request(b"GET", b"/traits/%zz"), (404,)),
    Probe("a line break in the address", request(b"GET", b"/traits/%0d%0aSet-Cookie:a=b"), (404,)),
    Probe("an escape sequence in it", request(b"GET", b"/traits/" + quoted(ESCAPE)), (404,)),
    Probe("2,000 parameters", request(b"GET", b"/traits?" + b"a=b&" * 2_000), (400,)),
    Probe("a repeated parameter", request(b"GET", b"/v1/leases?state=ended&state=ended"), (400,)),
    Probe("an unknown page", request(b"GET", b"/v1/audit?cursor=" + quoted(SQL)), (400,)),
    Probe("the reset of tests", request(b"POST", b"/_testing/reset"), (404,)),
    Probe("Python's own", request(b"GET", b"/__class__/__init__"), (404,)),
]

DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
BODIES = {
    "deep lists": b"[" * 50_000 + b"]" * 50_000,
    "deep objects": DEEP,
    "an unfinished object": b'{"name":' * 10_000,
    "100,000 keys": b"{" + b",".join(b'"%d":1' % n for n in range(60_000)) + b"}",
    "a number of 100,000 digits": b'{"name":' + b"9" * 100_000 + b"}",
    "an endless exponent": b'{"name":1e999999999}',
    "NaN": b'{"name":NaN}',
    "a key twice": b'{"name":"a","name":"b"}',
    "no UTF-8": b'{"name":"\xff"}',
    "half a surrogate": b'{"name":"\\ud800"}',
    "a NUL": b'{"name":"\\u0000"}',
    "a byte order mark": b'\xef\xbb\xbf{"name":"a"}',
    "UTF-16": '{"name":"a"}'.encode("utf-16"),
    "two values": b'{"name":"a"}{"name":"b"}',
    "a list": b"[]",
    "a word": b"null",
    "nothing": b"",
    "pickle": b"cos\nsystem\n(S'id'\ntR.",
    "YAML": b"!!python/object/apply:os.system ['id']",
    "XML": b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
}
BOMBS = [
    *(
        Probe(f"{name} to {face}", body(b"POST", path, content), (400,))
        for name, content in BODIES.items()
        for face, path in (("Placement", b"/resource_providers"), ("v1", b"/v1/leases"))
    ),
    Probe(
        "a compressed bomb",
        body(
            b"POST", b"/v1/leases", gzip.compress(b" " * 10_000_000), b"Content-Encoding: gzip\r\n"
        ),
        (415,),
    ),
    Probe("a body that is too long", body(b"POST", b"/v1/leases", b" " * 1_100_000), (413,)),
    Probe(
        "a provider of 300 KB",
        json_request(
            b"POST",
            b"/v1/providers:bulk",
            {"providers": [{"uuid": PROVIDER, "name": "n", "traits": ["CUSTOM_A"] * 30_000}]},
        ),
        (413,),
    ),
    Probe(
        "a length that lies",
        request(b"POST", b"/v1/leases", JSON, b"Content-Length: 999999999999\r\n"),
        (413,),
    ),
]

INJECTED = [
    Probe(
        "a provider's name", json_request(b"POST", b"/resource_providers", {"name": SQL}), (200,)
    ),
    Probe(
        "a name that is asked for",
        request(b"GET", b"/resource_providers?name=" + quoted(SQL)),
        (200,),
    ),
    Probe("a UUID", request(b"GET", b"/resource_providers/" + quoted(SQL)), (404,)),
    Probe("a trait", request(b"PUT", b"/traits/" + quoted("CUSTOM_" + SQL)), (400,)),
    Probe("a class", request(b"PUT", b"/resource_classes/" + quoted("CUSTOM_" + SQL)), (400,)),
    Probe("a consumer", json_request(b"PUT", b"/allocations/" + quoted(SQL), allocation()), (400,)),
    Probe(
        "a project",
        json_request(b"PUT", b"/allocations/" + CONSUMER.encode(), allocation(project_id=SQL)),
        (400,),
    ),
    Probe(
        "a consumer type",
        json_request(b"PUT", b"/allocations/" + CONSUMER.encode(), allocation(consumer_type=SQL)),
        (400,),
    ),
    Probe("usages", request(b"GET", b"/usages?project_id=" + quoted(SQL)), (200,)),
    Probe(
        "candidates",
        request(b"GET", b"/allocation_candidates?resources=VCPU:1&required=" + quoted(SQL)),
        (400,),
    ),
    Probe("a pool", json_request(b"PUT", b"/v1/pools/" + quoted(SQL), {"limit": 1}), (400,)),
    Probe("a key", json_request(b"POST", b"/v1/leases", lease(key=SQL)), (201,)),
    Probe(
        "a label", json_request(b"POST", b"/v1/leases", lease(key="l", labels={SQL: SQL})), (202,)
    ),
    Probe(
        "an owner that is asked for", request(b"GET", b"/v1/leases?owner=" + quoted(SQL)), (200,)
    ),
    Probe("a lease", request(b"GET", b"/v1/leases/" + quoted(SQL)), (404,)),
    Probe(
        "a token's name",
        json_request(b"POST", b"/v1/tokens", {"name": SQL, "role": "reader"}),
        (201,),
    ),
    Probe("a token", request(b"DELETE", b"/v1/tokens/" + quoted(SQL)), (404,)),
    Probe(
        "a header", request(b"GET", b"/v1/tokens", b"X-Roles: " + SQL.encode() + b"\r\n"), (403,)
    ),
    Probe(
        "markup in a name", json_request(b"POST", b"/resource_providers", {"name": SCRIPT}), (200,)
    ),
    Probe(
        "an escape sequence in a key",
        json_request(b"POST", b"/v1/leases", lease(key=ESCAPE)),
        (400,),
    ),
    Probe(
        "an escape sequence in a label",
        json_request(b"POST", b"/v1/leases", lease(key="m", labels={"job": ESCAPE})),
        (400,),
    ),
]

STRANGER = b"Host: localhost\r\nConnection: close\r\n"
"""The headers of a client without a token."""

NOBODY = [
    *(
        Probe(
            f"{method.decode()} {path.decode()} without a token",
            b"%s %s HTTP/1.1\r\n%s\r\n" % (method, path, STRANGER),
            (401,),
        )
        for method, path in (
            (b"GET", b"/resource_providers"),
            (b"PUT", b"/traits/CUSTOM_A"),
            (b"GET", b"/allocation_candidates?resources=VCPU:1"),
            (b"POST", b"/reshaper"),
            (b"GET", b"/v1/tokens"),
            (b"POST", b"/v1/tokens"),
            (b"POST", b"/v1/leases"),
            (b"GET", b"/v1/audit"),
            (b"GET", b"/v1/watch"),
            (b"POST", b"/v1/database/backup"),
            (b"POST", b"/v1/providers:bulk"),
        )
    ),
    Probe(
        "a role that was not given",
        b"GET /traits HTTP/1.1\r\nX-Roles: admin\r\n" + LATEST + STRANGER + b"\r\n",
        (401,),
    ),
]

GET = request(b"GET", b"/healthz", close=False)
PIPELINES = [
    Probe(
        "17 at once",
        GET * 16 + HOST.join([b"GET /healthz HTTP/1.1\r\n", b"Connection: close\r\n\r\n"]),
        (200,) * 17,
    ),
    Probe("10,000 at once", GET * 10_000, (200,) * 17),
    Probe("garbage behind", GET + b"\0" * 100, (200,)),
    Probe("a request behind the last", request(b"GET", b"/healthz") + GET, (200,)),
]

PROBES = [*PARSER, *ADDRESSES, *BOMBS, *INJECTED, *NOBODY, *PIPELINES]


def boskos(path: bytes, content: bytes = b"", method: bytes = b"POST", *headers: bytes) -> bytes:
    """Return a request as Boskos' Go client writes it."""
    length = b"Content-Length: %d\r\n" % len(content)
    head = b"%s %s HTTP/1.1\r\n%s%s%s\r\n" % (method, path, STRANGER, length, b"".join(headers))
    return head + content


ACQUIRE = b"/acquire?type=%s&state=free&dest=busy&owner=me"
UPDATE = b"/update?name=slot&owner=me&state=busy"
SECOND_DOOR = [
    Probe(
        "a web page",
        boskos(ACQUIRE % b"t", b"", b"POST", b"Origin: https://evil.example\r\n"),
        (403,),
    ),
    Probe(
        "a page of the same site",
        boskos(ACQUIRE % b"t", b"", b"POST", b"Sec-Fetch-Site: same-site\r\n"),
        (403,),
    ),
    Probe("SQL in a type", boskos(ACQUIRE % quoted(SQL)), (404,)),
    Probe("SQL in an owner", boskos(b"/release?name=slot&dest=free&owner=" + quoted(SQL)), (401,)),
    Probe("SQL in a name", boskos(b"/release?owner=me&dest=free&name=" + quoted(SQL)), (404,)),
    Probe(
        "SQL in a state", boskos(b"/reset?type=t&expire=0s&dest=free&state=" + quoted(SQL)), (200,)
    ),
    Probe("no UTF-8", boskos(ACQUIRE % b"%ff"), (404,)),
    Probe("a NUL", boskos(ACQUIRE % b"%00"), (404,)),
    Probe(
        "30,000 names",
        boskos(b"/acquirebystate?state=a&dest=b&owner=c&names=" + b"a," * 30_000),
        (400,),
    ),
    Probe(
        "an endless duration",
        boskos(b"/reset?type=t&state=a&dest=b&expire=" + b"9" * 30_000 + b"h"),
        (400,),
    ),
    Probe(
        "a count of 30,000 digits", boskos(b"/lease/acquire?type=t&count=" + b"9" * 30_000), (400,)
    ),
    Probe("out of the folder", boskos(b"/../../etc/passwd", b"", b"GET"), (301,)),
    Probe("a redirect elsewhere", boskos(b"//evil.example/", b"", b"GET"), (301,)),
    *(
        Probe(
            f"{name} to {path.decode().partition('?')[0]}", boskos(path, content[:65_536]), (400,)
        )
        for name, content in BODIES.items()
        if name
        not in (
            "an endless exponent",
            "a word",
            "nothing",
            "a key twice",
            "no UTF-8",
            "half a surrogate",
            "a NUL",
        )
        for path in (UPDATE, b"/lease/release")
        if (name, path) != ("two values", UPDATE)
    ),
]
