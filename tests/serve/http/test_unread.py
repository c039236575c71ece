"""Unread answers when the server stops: a fault of the client, which is not logged."""

import json
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.support.carried import eventually
from tests.e2e.support.server import Server, serve
from tests.serve.wire import request, talk

PROVIDERS = 5_000
READERS = 5
LIST = request(b"GET", b"/resource_providers", close=False)


def fill(server: Server) -> None:
    """Create many providers."""
    described = [
        {"uuid": f"a0000000-0000-4000-8000-{n:012x}", "name": f"node-{n}"} for n in range(PROVIDERS)
    ]
    body = json.dumps({"providers": described}).encode()
    kind, length = b"Content-Type: application/json\r\n", b"Content-Length: %d\r\n" % len(body)
    sent = request(b"POST", b"/v1/providers:bulk", kind, length, body=body)
    assert [answer.status for answer in talk(server.url, sent)] == [200]


def unread(server: Server) -> socket.socket:
    """Request the list, and do not read the answer."""
    parts = urlsplit(server.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.connect((parts.hostname, parts.port))
    connection.sendall(LIST)
    return connection


def unsent(server: Server) -> float:
    """Return how many bytes of long answers have not been sent yet."""
    (answer,) = talk(server.url, request(b"GET", b"/metrics"))
    found = re.search(rb"^moorage_answers_unsent_bytes (\S+)$", answer.body, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_a_stop_is_not_delayed(tmp_path: Path) -> None:
    """It takes no longer than the setting permits, and logs no traceback for such clients."""
    with serve(tmp_path / "m.sqlite", "--auth", "noauth2", "--stop-seconds-max", "0.5") as server:
        fill(server)
        assert unsent(server) == 0
        connections = [unread(server) for _ in range(READERS)]
        eventually(lambda: unsent(server) > 0 or None)
        assert server.stop() == 0
        for connection in connections:
            connection.close()
    assert not [line for line in server.said if "Traceback" in line or "Exception" in line]
