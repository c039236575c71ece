"""Clients that do not read or have disappeared: the server frees what they occupy."""

import asyncio
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.carried import eventually
from tests.e2e.support.leasing import NOAUTH, POOL, asked, called, pool_made, token_of, wish
from tests.e2e.support.peer import Peer, differences, head
from tests.e2e.support.server import Server, serve
from tests.serve.wire import connect

CLIENTS = 20
IDLE_SECONDS = 1.0
PATIENCE = 1.0
TTL = 2.0
ADMIN = ("X-Auth-Token", "admin"), ("X-Roles", "admin"), ("Content-Type", "application/json")


def sent(url: str, body: dict[str, Any], wait: float) -> socket.socket:
    """Ask, and never look at the answer. What may come is hardly taken by the machine, either."""
    connection = connect(url)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    text = json.dumps(body).encode()
    connection.sendall(head("POST", f"/v1/leases?wait={wait}", [*ADMIN], text))
    return connection


def connections(server: Server) -> int:
    """Count the sockets that the server has open."""
    found = 0
    for one in Path(f"/proc/{server.pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            found += os.readlink(one).startswith("socket:")
    return found


def pool_of(server: Server) -> Any:
    """Return the pool."""
    return asyncio.run(called(server.url, "GET", f"/v1/pools/{POOL}")).json()


def until(look: Callable[[], bool]) -> None:
    """Wait for a condition."""
    eventually(lambda: True if look() else None)


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """A server that keeps idle connections for a moment only, with a pool of one unit."""
    settings = {"MOORAGE_IDLE_SECONDS_MAX": str(IDLE_SECONDS)}
    with serve(tmp_path / "m.sqlite", *NOAUTH, **settings) as running:
        asyncio.run(pool_made(running.url, limit=1))
        yield running
        assert asyncio.run(checked(running.url)) == []


async def checked(url: str) -> list[str]:
    """Return what the server's own check finds."""
    async with Peer(url) as peer:
        return await differences(peer)


def test_who_waits_and_never_reads(server: Server) -> None:
    """Its ticket is withdrawn when its patience is over, and its connection is closed."""
    asyncio.run(asked(server.url, wish("holder", ttl=600.0)))
    until(lambda: connections(server) < CLIENTS)
    before = connections(server)
    silent = [
        sent(server.url, wish(f"silent-{n}", patience=PATIENCE), wait=2) for n in range(CLIENTS)
    ]
    until(lambda: pool_of(server)["waiting"] == CLIENTS)
    assert connections(server) >= CLIENTS
    until(lambda: pool_of(server)["waiting"] == 0)
    until(lambda: connections(server) <= before)
    path = f"/v1/leases?pool={POOL}&state=ended"
    leases = asyncio.run(called(server.url, "GET", path)).json()["leases"]
    assert [lease["cause"] for lease in leases] == ["unheard"] * CLIENTS
    for connection in silent:
        connection.close()


def test_who_is_granted_and_never_reads(server: Server) -> None:
    """Its unit comes back when its TTL is over; the next has it with a higher token."""
    with sent(server.url, wish("silent", ttl=TTL), wait=0):
        until(lambda: bool(pool_of(server)["occupied"]))
        after = asyncio.run(asked(server.url, wish("next", ttl=TTL, patience=60.0), 20))
        assert after["state"] == "granted"
        path = f"/v1/leases?pool={POOL}&state=ended"
        (silent,) = asyncio.run(called(server.url, "GET", path)).json()["leases"]
        assert (silent["key"], silent["cause"]) == ("silent", "ttl_over")
        assert token_of(after["token"]) > token_of(silent["token"])


def vanish(connection: socket.socket) -> bool:
    """Take a connection away without telling the other side; False: that is not permitted."""
    repair = getattr(socket, "TCP_REPAIR", 19)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, repair, 1)
    except PermissionError:
        return False
    connection.close()
    return True


@pytest.mark.skipif(not os.environ.get("MOORAGE_SOAK"), reason="takes half a minute")
def test_who_vanishes_without_a_word(server: Server) -> None:
    """The client does not close its connection: the kernel notices long before the wait is over."""
    asyncio.run(asked(server.url, wish("holder", ttl=600.0)))
    until(lambda: connections(server) < CLIENTS)
    before = connections(server)
    silent = [
        sent(server.url, wish(f"gone-{n}", patience=PATIENCE), wait=60) for n in range(CLIENTS)
    ]
    until(lambda: pool_of(server)["waiting"] == CLIENTS)
    gone = [vanish(connection) for connection in silent]
    if not all(gone):
        pytest.skip("connections cannot be taken away silently here: CAP_NET_ADMIN is needed")
    assert connections(server) >= CLIENTS
    eventually(lambda: True if pool_of(server)["waiting"] == 0 else None, 45.0)
    until(lambda: connections(server) <= before)
