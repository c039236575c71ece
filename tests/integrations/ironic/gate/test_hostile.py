"""What could be understood in two ways is refused, and never reaches Ironic."""

import pytest

from tests.e2e.support.server import Server
from tests.integrations.ironic.gate.gates import connect, exchange, gate, request
from tests.integrations.ironic.gate.hostile import HOSTILE
from tests.integrations.ironic.gate.raw_upstream import RawUpstream


def first_line(url: str, sent: bytes) -> bytes:
    """Return the first line of the answer to bytes after which the client sends nothing."""
    with connect(url) as client:
        client.sendall(sent)
        return client.recv(65_536).partition(b"\r\n")[0]


@pytest.mark.parametrize("name", HOSTILE)
def test_refused(upstream: RawUpstream, proxy: Server, name: str) -> None:
    """The answer is 400, or the connection ends; Ironic has got no request with a body."""
    before = len(upstream.of("PUT") + upstream.of("POST"))
    line = first_line(proxy.url, HOSTILE[name])
    assert line.split(b" ")[1:2] in ([b"400"], [b"404"], []), line
    assert len(upstream.of("PUT") + upstream.of("POST")) == before


def test_a_body_that_nobody_reads() -> None:
    """It is not taken for the request of another client: Ironic's server reads none of a GET.

    So a reading with a body has a connection of its own.
    """
    inner = request("GET", "/v1/nodes/stolen")
    pieces = b"%x\r\n" % len(inner) + inner + b"\r\n0\r\n\r\n"
    head = request("GET", "/v1/nodes/node-1", {"Transfer-Encoding": "chunked"})
    with RawUpstream() as upstream, gate(upstream.url) as proxy:
        exchange(proxy.url, request("GET", "/v1/nodes/node-2"))
        exchange(proxy.url, request("GET", "/v1/nodes/node-2"))
        shared = upstream.connections
        exchange(proxy.url, head + pieces)
        assert upstream.connections == shared + 1
        exchange(proxy.url, request("GET", "/v1/nodes/node-2"))
        assert upstream.connections == shared + 1


def test_what_is_not_http_is_not_logged(upstream: RawUpstream) -> None:
    """Neither a token in a header that is not valid, nor a traceback for each request."""
    with gate(upstream.url) as proxy:
        head = request("GET", "/v1", {"X-Auth-Token": "s3cret\x01"})
        assert b" 400 " in exchange(proxy.url, head)
        assert b" 400 " in exchange(proxy.url, b"GET / s3cret/1.1\r\n\r\n")
        proxy.stop()
        assert not any("s3cret" in line or "Traceback" in line for line in proxy.said)
