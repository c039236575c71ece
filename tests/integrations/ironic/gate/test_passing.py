"""What is not decided passes through byte for byte, in both directions."""

import pytest

from tests.e2e.support.server import Server
from tests.integrations.ironic.gate.gates import connect, exchange, gate, request
from tests.integrations.ironic.gate.raw_upstream import USUAL, RawUpstream

TARGETS = [
    "/",
    "/v1/nodes?",
    "/v1/nodes?a=%2F+b%20&x=%C3%A9;y&&=&a",
    "/v1/nodes/a%2Db/~x!$'()*,",
    "/v1/nodes?limit=1?2",
    "/v1/x?a=b%23c",
    "/v1/nodes/node-1/vifs/",
]

ANSWERS = {
    "a length": b"HTTP/1.1 200 OK\r\nX-Z: 1\r\nset-cookie: b=2\r\nContent-Length: 3\r\n\r\nabc",
    "a strange reason": b"HTTP/1.1 299 So  So\r\nContent-Length: 0\r\n\r\n",
    "nothing": b"HTTP/1.1 204 No Content\r\nX-Z: 1\r\n\r\n",
    "an own date": b"HTTP/1.1 200 OK\r\ndate: x\r\nServer: y\r\nContent-Length: 0\r\n\r\n",
    "an encoding": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "twice": b"HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\na: 3\r\nContent-Length: 0\r\n\r\n",
    "pieces": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "an error": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nA: 7\r\n\r\n{}",
}


@pytest.fixture(autouse=True)
def usual(upstream: RawUpstream) -> None:
    """Let each test begin with the usual answer."""
    upstream.answer, upstream.closes = USUAL, False


@pytest.mark.parametrize("target", TARGETS)
def test_targets(upstream: RawUpstream, proxy: Server, target: str) -> None:
    """Path and query arrive as they were sent."""
    assert exchange(proxy.url, request("PATCH", target)).startswith(b"HTTP/1.1 200 OK\r\n")
    head, _ = upstream.of("PATCH")[-1]
    assert head.split(b"\r\n")[0] == f"PATCH {target} HTTP/1.1".encode()


def test_headers(upstream: RawUpstream, proxy: Server) -> None:
    """Headers keep order, spelling and duplicates; those of one connection are not passed on."""
    lines = b"X-b: 1\r\nHOST: ironic.example:6385\r\nx-A: 2\r\ncookie: q=1\r\nX-B: 3\r\n"
    lines += b"Accept-encoding: gzip\r\nX-Auth-Token: secret\r\n"
    own = b"Connection: close, x-hop\r\nX-Hop: 1\r\nTE: trailers\r\nKeep-Alive: 5\r\n"
    exchange(proxy.url, b"GET /v1/headers HTTP/1.1\r\n" + lines + own + b"\r\n")
    head, _ = upstream.of("GET")[-1]
    got = [line for line in head.split(b"\r\n")[1:] if line]
    wanted = [line for line in lines.split(b"\r\n") if line]
    # aiohttp writes the host first; a duplicate has the spelling of the first one.
    assert got == [wanted[1], wanted[0], *wanted[2:4], b"X-b: 3", *wanted[5:]]


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(upstream: RawUpstream, proxy: Server, name: str) -> None:
    """An answer arrives as Ironic has written it, and says that the gate closes the connection."""
    upstream.answer = answer = ANSWERS[name]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert exchange(proxy.url, request("GET", "/v1/nodes")) == (
        head + b"\r\nConnection: close\r\n\r\n" + body
    )


def test_answers_without_a_body(upstream: RawUpstream, proxy: Server) -> None:
    """The answer to HEAD keeps its length and has no body."""
    upstream.answer, upstream.closes = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", True
    found = exchange(proxy.url, request("HEAD", "/v1/nodes"))
    assert found == b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"


def test_answers_until_the_connection_closes(upstream: RawUpstream, proxy: Server) -> None:
    """An answer without a length arrives complete."""
    upstream.answer = b"HTTP/1.1 200 OK\r\n\r\nabc"
    found = exchange(proxy.url, request("GET", "/v1/nodes"))
    assert found.endswith(b"3\r\nabc\r\n0\r\n\r\n")


@pytest.mark.parametrize("framing", [b"Content-Length: 9", b"Transfer-Encoding: chunked"])
def test_answers_that_break_off(upstream: RawUpstream, proxy: Server, framing: bytes) -> None:
    """The client notices that an answer is not complete."""
    upstream.answer, upstream.closes = (
        b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n3\r\nabc\r\n",
        True,
    )
    try:
        found = exchange(proxy.url, request("GET", "/v1/nodes"))
    except ConnectionResetError:
        return
    assert len(found.partition(b"\r\n\r\n")[2]) < 9 or b"0\r\n\r\n" not in found


HARMLESS = {
    "a coding that is none": b"Content-Encoding: identity\r\n",
    "a name": b"X-Forwarded-User: J\xc3\xbcrgen\r\n",
    "what the proxy was asked for": b"X-Original-URI: /v1/nodes\r\nX-HTTP-Method: POST\r\n",
}
"""Headers of real clients and proxies that say nothing else than the rest of the request."""


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_headers(upstream: RawUpstream, proxy: Server, name: str) -> None:
    """They arrive as they came."""
    head = request("POST", "/v1/nodes", {}, b"{}")
    sent = head.replace(b"Host:", HARMLESS[name] + b"Host:")
    assert exchange(proxy.url, sent).startswith(b"HTTP/1.1 200 OK\r\n")
    assert HARMLESS[name] in upstream.of("POST")[-1][0]


@pytest.mark.parametrize("offer", [b"", b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"])
def test_offers_of_another_protocol(upstream: RawUpstream, proxy: Server, offer: bytes) -> None:
    """What Java's client offers, and what proxies leave of it, is not taken and not passed on.

    The body and the next request of the connection are read as ever.
    """
    lines = b"Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\n" + offer
    with connect(proxy.url) as client:
        client.sendall(b"POST /v1/first HTTP/1.1\r\n" + lines + b"Content-Length: 2\r\n\r\n{}")
        answer = b""
        while not answer.endswith(b"\r\n\r\n{}"):
            answer += client.recv(65_536)
        client.sendall(request("POST", "/v1/second"))
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 OK\r\n")
    (head, body), (second, _) = upstream.of("POST")[-2:]
    assert (body, b"pgrade" in head, b"HTTP2" in head) == (b"{}", False, False)
    assert second.startswith(b"POST /v1/second ")


def test_bodies(upstream: RawUpstream, proxy: Server) -> None:
    """A body has a length if the client sent one, and is in pieces otherwise."""
    exchange(proxy.url, request("PUT", "/v1/a", {"Content-Encoding": "gzip"}, b"hello"))
    pieces = request("PUT", "/v1/b", {"Transfer-Encoding": "chunked"}) + b"5\r\nworld\r\n0\r\n\r\n"
    exchange(proxy.url, pieces)
    (first, hello), (second, world) = upstream.of("PUT")[-2:]
    assert (hello, world) == (b"hello", b"world")
    assert b"\r\nContent-Length: 5\r\n" in first
    assert b"chunked" not in first
    assert b"\r\nTransfer-Encoding: chunked\r\n" in second
    assert b"Content-Length" not in second


def test_continue(proxy: Server) -> None:
    """A client that waits for `100 Continue` gets it once, before the answer."""
    with connect(proxy.url) as client:
        head = request("POST", "/v1/c", {"Expect": "100-continue", "Content-Length": "5"})
        client.sendall(head)
        assert client.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hello")
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 OK\r\n")


def test_connections_stay(proxy: Server) -> None:
    """A connection can be used for several requests, one after the other."""
    with connect(proxy.url) as client:
        for number in range(3):
            client.sendall(f"GET /v1/{number} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            found = b""
            while not found.endswith(b"{}"):
                found += client.recv(65_536)
            assert b"Connection" not in found


def test_ironic_away() -> None:
    """Without Ironic the answer is 503, in the form of Ironic's errors."""
    with RawUpstream() as gone:
        url = gone.url
    with gate(url) as proxy:
        found = exchange(proxy.url, request("GET", "/v1/nodes"))
        assert found.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b'{"error_message": "{' in found
        decided = request(
            "PUT",
            "/v1/nodes/node-1/states/provision",
            {"Content-Type": "application/json"},
            b'{"target": "active"}',
        )
        assert exchange(proxy.url, decided).startswith(b"HTTP/1.1 503 ")


def test_bodies_that_are_not_valid(upstream: RawUpstream, proxy: Server) -> None:
    """A body that ends too soon or has a bad piece is no complete request for Ironic."""
    before = len(upstream.of("POST"))
    head = request("POST", "/v1/bad", {"Transfer-Encoding": "chunked"})
    found = exchange(proxy.url, head + b"3\r\nabc\r\nzz\r\n")
    assert found[8:13] in (b" 400 ", b"")
    with connect(proxy.url) as client:
        client.sendall(request("POST", "/v1/short", {"Content-Length": "10"}) + b"abc")
    exchange(proxy.url, request("GET", "/v1/after"))
    assert not any(len(body) == 10 for _, body in upstream.of("POST")[before:])
