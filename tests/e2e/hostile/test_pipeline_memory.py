"""Connections that send thousands of requests and read nothing leave no memory behind.

`MOORAGE_SOAK`: 100 rounds of them instead of 10.
"""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.support.leasing import NOAUTH
from tests.e2e.support.server import Server, serve
from tests.serve.wire import HOST, connect, request, talk

pytestmark = pytest.mark.thorough

CONNECTIONS = 20
ROUNDS = 100 if os.environ.get("MOORAGE_SOAK") else 10
PACKET = (b"GET / HTTP/1.1\r\n" + HOST + b"\r\n") * 5_000
GROWTH_MAX = 20 << 20


def test_pipelines_leave_no_memory_behind(tmp_path: Path) -> None:
    """What was sent and not answered is forgotten with its connection."""
    with serve(tmp_path / "m.sqlite", *NOAUTH, "--no-access-log") as server:
        flood(server)
        before = server.resident()
        for _ in range(ROUNDS):
            flood(server)
        assert server.resident() - before < GROWTH_MAX


def flood(server: Server) -> None:
    """Send many requests on many connections at once, and close them without reading."""
    connections = [connect(server.url) for _ in range(CONNECTIONS)]
    for connection in connections:
        connection.settimeout(0.2)
        with suppress(OSError):  # the server may close it at once
            connection.sendall(PACKET)
    for connection in connections:
        connection.close()
    assert [one.status for one in talk(server.url, request(b"GET", b"/healthz"))] == [200]
