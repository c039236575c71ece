"""Callers of the lease proxy with short timeouts: whatever they close, no unit is lost."""

import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.support.carried import eventually
from tests.faces.boskos.boskos_server import (
    SECONDS_MAX,
    BoskosServer,
    http_request,
    parse_answer,
    read_all,
    serve_boskos,
)

CALLERS = 25
SECONDS = 4.0
SOON = 5.0
LIMIT = 2


@pytest.fixture(scope="module")
def boskos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoskosServer]:
    """Return a server."""
    with serve_boskos(tmp_path_factory.mktemp("hasty")) as server:
        yield server


def is_whole(answer: bytes) -> bool:
    """Tell whether an answer has come to its end."""
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return bool(end and length) and len(body) == int(length[1])


class Caller:
    """Acquires again and again, gives up after a moment, and releases what it has got."""

    def __init__(self, boskos: BoskosServer, pool: str, seed: int) -> None:
        self.boskos = boskos
        self.pool = pool
        self.chance = random.Random(seed)
        self.got = self.given_up = 0

    def work(self, until: float) -> None:
        """Work until then, and hold nothing afterwards."""
        while time.monotonic() < until:
            with self.boskos.connect() as connection:
                connection.settimeout(self.chance.uniform(0.02, 0.6))
                more = ["Connection: close"] if self.chance.random() < 0.5 else []
                target = f"/lease/acquire?type={self.pool}"
                connection.sendall(http_request("POST", target, b"", *more))
                try:
                    answer = connection.recv(65_536)
                except TimeoutError:
                    self.given_up += 1
                    self._end(connection)
                    continue
                if b" 200 " in answer:
                    self.got += 1
                    self._give_back(connection, answer)

    def _give_back(self, connection: socket.socket, answer: bytes) -> None:
        """Release what an answer grants, of which a part has come: it may come in pieces."""
        connection.settimeout(SECONDS_MAX)
        while not is_whole(answer):
            answer += connection.recv(65_536)
        given = self.boskos.call("POST", "/lease/release", parse_answer(answer).body.encode())
        assert given.status == 204, given

    def _end(self, connection: socket.socket) -> None:
        """End a connection in one of the ways that there are."""
        how = self.chance.choice(("close", "reset", "half"))
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == "half":
            connection.shutdown(socket.SHUT_WR)


def test_nothing_is_lost(boskos: BoskosServer) -> None:
    """25 callers give up at random at a pool of two units; soon after, the pool is idle."""
    boskos.native("PUT", "/v1/pools/hasty", {"limit": LIMIT})
    callers = [Caller(boskos, "hasty", seed) for seed in range(CALLERS)]
    until = time.monotonic() + SECONDS
    with ThreadPoolExecutor(CALLERS) as threads:
        for done in [threads.submit(one.work, until) for one in callers]:
            done.result()
    assert sum(one.got for one in callers)
    assert sum(one.given_up for one in callers)
    eventually(lambda: True if idle(boskos) else None, SOON)


def test_a_caller_that_gives_up_at_the_moment_of_its_grant(boskos: BoskosServer) -> None:
    """A caller that never reads its answer, for which the unit was just freed, holds nothing."""
    boskos.native("PUT", "/v1/pools/hasty", {"limit": 1})
    for n in range(20):
        names = boskos.call("POST", "/lease/acquire?type=hasty").body
        assert json.loads(names)["names"]
        with boskos.connect() as connection:
            connection.sendall(http_request("POST", "/lease/acquire?type=hasty", b""))
            eventually(lambda: True if pool_of(boskos)["waiting"] == 1 else None)
            give = threading.Thread(
                target=boskos.call, args=("POST", "/lease/release", names.encode())
            )
            give.start()
            if n % 2:
                connection.recv(1, socket.MSG_PEEK)  # it has come, and is not read
        give.join()
        eventually(lambda: True if idle(boskos) else None, SOON)


@pytest.mark.parametrize("more", [[], ["Connection: close"]], ids=["open", "close"])
def test_a_caller_that_ends_its_half(boskos: BoskosServer, more: list[str]) -> None:
    """It holds nothing if it closes without reading, and has its lease if it reads."""
    boskos.native("PUT", "/v1/pools/hasty", {"limit": 1})
    for reads in (False, True, False):
        with boskos.connect() as connection:
            connection.sendall(http_request("POST", "/lease/acquire?type=hasty", b"", *more))
            connection.recv(1, socket.MSG_PEEK)  # it has come
            connection.shutdown(socket.SHUT_WR)
            answer = read_all(connection) if reads else b""
        if reads:
            (lease,) = boskos.native("GET", "/v1/leases?pool=hasty&state=granted")["leases"]
            assert lease["hold_until"] is not None
            given = boskos.call("POST", "/lease/release", parse_answer(answer).body.encode())
            assert given.status == 204, given
        eventually(lambda: True if idle(boskos) else None, SOON)


def pool_of(boskos: BoskosServer) -> dict[str, int]:
    """Return the pool."""
    found: dict[str, int] = boskos.native("GET", "/v1/pools/hasty")
    return found


def idle(boskos: BoskosServer) -> bool:
    """Is nothing of the pool occupied, and does nobody wait?"""
    pool = pool_of(boskos)
    return (pool["occupied"], pool["waiting"]) == (0, 0)


def test_the_default_bounds_what_is_lost_all_the_same(tmp_path: Path) -> None:
    """A caller that has read its names and vanishes has them for 8 hours at most by default."""
    with serve_boskos(tmp_path) as boskos:
        kind, _ = boskos.new_type()
        boskos.native("PUT", "/v1/pools/plain", {"limit": 1})
        for pool in (kind, "plain"):
            assert boskos.native("GET", f"/v1/pools/{pool}")["proxy_ttl"] == 8 * 3600
            boskos.call("POST", f"/lease/acquire?type={pool}")
            (lease,) = boskos.native("GET", f"/v1/leases?pool={pool}&state=granted")["leases"]
            assert lease["hold_until"] is not None
