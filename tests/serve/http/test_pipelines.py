"""Clients that send requests before they have received the earlier responses."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from moorage.serve.http.connection_limits import WAITING_BODY_MAX, WAITING_MAX
from tests.e2e.support.carried import eventually
from tests.e2e.support.leasing import NOAUTH, POOL, asked, called, pool_made, wish
from tests.e2e.support.peer import head
from tests.e2e.support.server import Server, serve
from tests.serve.wire import connect, request, talk

JSON = b"Content-Type: application/json\r\n"
GET = request(b"GET", b"/traits/CUSTOM_NOT_THERE", close=False)
CALLER = ("X-Auth-Token", "admin"), ("X-Roles", "admin"), ("Content-Type", "application/json")
PATIENCE = 1.0


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """A server with a pool of one unit."""
    with serve(tmp_path / "m.sqlite", *NOAUTH, "--no-access-log") as running:
        asyncio.run(pool_made(running.url, limit=1))
        yield running


def test_few_requests_wait(server: Server) -> None:
    """At most `WAITING_MAX` requests wait; the connection ends after the last response."""
    for many in (WAITING_MAX + 2, 50 * WAITING_MAX):
        found = talk(server.url, GET * many)
        assert [answer.status for answer in found] == [404] * (1 + WAITING_MAX)
        assert b"connection: close" in found[-1].head
    enough = GET * WAITING_MAX + request(b"GET", b"/traits/CUSTOM_NOT_THERE")
    assert len(talk(server.url, enough)) == 1 + WAITING_MAX


@pytest.mark.parametrize("more", [0, 1])
def test_a_waiting_request_has_a_short_body(server: Server, more: int) -> None:
    """One with a longer body is not executed: the connection ends after the earlier responses."""
    size = WAITING_BODY_MAX + more
    traits = json.dumps({"name": "n" * 20}).encode().ljust(size)
    length = b"Content-Length: %d\r\n" % size
    post = request(b"POST", b"/resource_providers", JSON, length, body=traits)
    found = talk(server.url, GET + post)
    assert [answer.status for answer in found] == [404, 200][: 2 - more]


@pytest.mark.parametrize("behind", [b"", GET, GET * WAITING_MAX])
def test_nothing_hides_that_a_client_has_gone(server: Server, behind: bytes) -> None:
    """Whatever it has sent after its request, its ticket lasts only for its patience."""
    asyncio.run(asked(server.url, wish("holder", ttl=600.0)))
    body = json.dumps(wish("gone", ttl=None, patience=PATIENCE)).encode()
    with connect(server.url) as connection:
        connection.sendall(head("POST", "/v1/leases?wait=60", [*CALLER], body) + behind)
        eventually(lambda: waiting(server) == 1 or None)
    eventually(lambda: waiting(server) == 0 or None)


def waiting(server: Server) -> int:
    """Return how many tickets wait for the pool."""
    found: int = asyncio.run(called(server.url, "GET", f"/v1/pools/{POOL}")).json()["waiting"]
    return found
