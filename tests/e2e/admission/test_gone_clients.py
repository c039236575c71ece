"""Clients that are gone hold nothing: how soon a unit is free again, by way to the lease.

Real processes and sockets, on both engines. The figures are those of the table in
docs/reference/native-api.md, see tests/core/admission/presence/.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from moorage.serve.http.delivery import OPEN_SECONDS
from tests.client import single
from tests.e2e.support.carried import eventually
from tests.faces.boskos.boskos_server import BoskosServer, serve_boskos
from tests.support import cluster

AT_ONCE = 3.0
"""Seconds: it needs no deadline of the server, only a busy machine's time."""
PRESENCE = 10.0
CONFIRM = 15.0
SLACK = 5.0
IN_TIME = OPEN_SECONDS / 2
TRIES = 8
"""Clients that are tried until one is killed before it counts as one that has read its grant."""

ROOT = Path(__file__).parents[3]
BLOCK = """
from moorage.client import Client
with Client().lease("{pool}"):
    input()
"""
ASYNC_BLOCK = """
import asyncio
from moorage.client import AsyncClient
async def main():
    async with AsyncClient().lease("{pool}"):
        input()
asyncio.run(main())
"""
POLLS = """
import http.client, sys, threading
method, path, body = sys.argv[2:5]
pause = threading.Event()
while True:
    connection = http.client.HTTPConnection(sys.argv[1])
    headers = {{"X-Auth-Token": "admin", "Content-Type": "application/json"}}
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status == 200 or '"granted"' in text:
        sys.stdin.read()
    connection.close()
    pause.wait(1.0)
"""


class Place(NamedTuple):
    """A pool of one unit at a server, and the kind of its database."""

    boskos: BoskosServer
    pool: str
    engine: str

    def native(self, method: str, path: str, body: Any = None) -> Any:
        """Call the native API as an administrator."""
        return self.boskos.native(method, path, body)

    def seen(self) -> tuple[int, int]:
        """Return the occupied units and the waiting tickets."""
        pool = self.native("GET", f"/v1/pools/{self.pool}")
        return pool["occupied"], pool["waiting"]

    def until(self, occupied: int, waiting: int, seconds: float = 30.0) -> None:
        """Wait until this is seen."""
        eventually(lambda: True if self.seen() == (occupied, waiting) else None, seconds)

    def wish(self, key: str) -> dict[str, Any]:
        """Return a request for the unit."""
        needs = [{"pool": self.pool, "units": 1}]
        return {"needs": needs, "key": f"{key} of {self.pool}", "patience": 60.0}

    def held(self) -> str:
        """Ask for the unit and renew the lease; return its id."""
        lease = self.native("POST", "/v1/leases", {**self.wish("holder"), "ttl": 600.0})
        self.native("POST", f"/v1/leases/{lease['id']}/renew", {})
        return str(lease["id"])

    def awaited(self) -> str:
        """Ask for the unit, which is held; return the id of the ticket."""
        return str(self.native("POST", "/v1/leases", self.wish("live"))["id"])

    def free(self, lease: str) -> None:
        """Release a lease, or withdraw a ticket."""
        self.native("DELETE", f"/v1/leases/{lease}")

    def until_granted(self, lease: str, seconds: float) -> None:
        """Wait for the grant of a ticket, by long polls of a second."""
        path = f"/v1/leases/{lease}?wait=1"
        eventually(lambda: self.native("GET", path)["state"] == "granted" or None, seconds)


def program(place: Place, *command: str) -> subprocess.Popen[str]:
    """Start a program that finds the server in its environment."""
    environment = {"MOORAGE_URL": place.boskos.server.url, "MOORAGE_TOKEN": "admin"}
    return single.Started(
        command,
        env={**single.BARE, **environment, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def run(place: Place) -> subprocess.Popen[str]:
    """`moorage run`."""
    return program(place, *single.command("run", "--pool", place.pool, "--", "cat"))


def acquire(place: Place) -> subprocess.Popen[str]:
    """`moorage lease acquire`."""
    return program(place, *single.command("lease", "acquire", "--pool", place.pool))


def block(place: Place) -> subprocess.Popen[str]:
    """The Python client."""
    return program(place, sys.executable, "-c", BLOCK.format(pool=place.pool))


def async_block(place: Place) -> subprocess.Popen[str]:
    """The Python client for asyncio."""
    return program(place, sys.executable, "-c", ASYNC_BLOCK.format(pool=place.pool))


def polls(place: Place) -> subprocess.Popen[str]:
    """A program that repeats its request every second, without `wait`."""
    body = {**place.wish("polls"), "patience": 600.0}
    where = urlsplit(place.boskos.server.url).netloc
    words = (where, "POST", "/v1/leases", json.dumps(body))
    return program(place, sys.executable, "-c", POLLS.format(), *words)


def boskos(place: Place) -> subprocess.Popen[str]:
    """A client of Boskos, which polls every second."""
    where = urlsplit(place.boskos.url).netloc
    path = f"/acquire?type={place.pool}&state=free&dest=busy&owner=o&request_id=r"
    return program(place, sys.executable, "-c", POLLS.format(), where, "POST", path, "")


def proxy(place: Place) -> subprocess.Popen[str]:
    """`curl` at the lease proxy."""
    url = f"{place.boskos.url}/lease/acquire?type={place.pool}"
    return program(place, "curl", "-sS", "-X", "POST", url)


Start = Callable[[Place], subprocess.Popen[str]]
CONNECTED: dict[str, Start] = {
    "moorage run": run,
    "moorage lease acquire": acquire,
    "Python client": block,
    "Python client, asyncio": async_block,
    "lease proxy": proxy,
}
TICKETS = {way: int(way != "lease proxy") for way in CONNECTED}
"""The tickets that still wait after a grant was taken back: callers of the proxy have none."""
POLLING: dict[str, Start] = {"native API without wait": polls, "Boskos": boskos}


@contextmanager
def killed_at_the_end(*started: subprocess.Popen[str]) -> Iterator[None]:
    """Kill what is left of these programs."""
    try:
        yield
    finally:
        for one in started:
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()
            assert one.stdin is not None
            one.stdin.close()


class Serving(NamedTuple):
    """A server on one engine."""

    boskos: BoskosServer
    engine: str

    def made(self, name: str) -> Place:
        """Return a new pool of one unit."""
        pool = re.sub("[^a-z0-9/]", "-", name.lower())
        place = Place(self.boskos, pool, self.engine)
        place.native("PUT", f"/v1/pools/{pool}", {"limit": 1, "ttl": 600.0})
        return place


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    """Return a server with types, each with three slots."""
    database = cluster.fresh() if request.param == "postgresql" else None
    with serve_boskos(tmp_path_factory.mktemp("gone"), database=database) as running:
        yield Serving(running, request.param)
        assert running.native("POST", "/v1/database/check", {})["differences"] == []


def test_killed_while_it_waits(server: Serving) -> None:
    """A killed waiter is passed over at once; who waits behind it gets the unit."""
    places = {way: server.made(f"waits/{way}") for way in CONNECTED}
    holders = {way: place.held() for way, place in places.items()}
    dead = {way: CONNECTED[way](place) for way, place in places.items()}
    with killed_at_the_end(*dead.values()):
        for place in places.values():
            place.until(1, 1)
        live = {way: place.awaited() for way, place in places.items()}
    killed = time.monotonic()
    for way, place in places.items():
        path = f"/v1/leases?pool={place.pool}&state=waiting"

        def gone(place: Place = place, path: str = path) -> bool | None:
            codes = [one["waiting"]["code"] for one in place.native("GET", path)["leases"]]
            return True if len(codes) == 1 or codes[0] == "absent" else None

        eventually(gone)
        # Requests of this process that ended before do not count as ones that wait elsewhere.
        assert time.monotonic() - killed < AT_ONCE, way
        place.native("GET", f"/v1/leases/{live[way]}")
        begun = time.monotonic()
        place.free(holders[way])
        place.until_granted(live[way], AT_ONCE)
        assert time.monotonic() - begun < AT_ONCE, way


def waiters(server: Serving) -> int:
    """Return how many requests wait at a server."""
    with urlopen(f"{server.boskos.server.url}/metrics") as answer:
        (count,) = re.findall(r"^moorage_waiters (\S+)$", answer.read().decode(), re.MULTILINE)
    return int(float(count))


def killed_unread(server: Serving, way: str) -> Place:
    """Kill a client before it reads of its grant; return its place.

    A client that has the bytes for `OPEN_SECONDS` counts as one that has read them: on a machine
    that was too busy to kill it in time, another one is tried.
    """
    for number in range(TRIES):
        place = server.made(f"grant/{way}/{number}")
        holder = place.held()
        stopped = CONNECTED[way](place)
        with killed_at_the_end(stopped):
            place.until(1, 1)
            eventually(lambda: True if waiters(server) == 1 else None)  # it polls
            os.kill(stopped.pid, signal.SIGSTOP)
            freed = time.monotonic()
            place.free(holder)
            place.until(1, 0)
        if time.monotonic() - freed < IN_TIME:
            return place
    raise AssertionError(f"no {way} was killed within {IN_TIME} s of its grant")


def test_killed_at_the_grant(server: Serving) -> None:
    """A client that is killed before it reads of its grant leaves the unit within seconds."""
    killed = {}
    for way in CONNECTED:
        killed[way] = killed_unread(server, way)
        # Several processes of the service may tell several clients of one native grant.
        if way == "lease proxy" or server.engine == "sqlite":
            killed[way].until(0, TICKETS[way], AT_ONCE)
    for way, place in killed.items():
        place.until(0, TICKETS[way], CONFIRM + SLACK)
        path = f"/v1/leases?pool={place.pool}"
        left = [one["cause"] for one in place.native("GET", path)["leases"][1:]]
        assert (way, left) == (way, [None if TICKETS[way] else "unconfirmed"])


def test_killed_between_polls(server: Serving) -> None:
    """A client that polls is passed over seconds after its last poll."""
    kind, names = server.boskos.new_type()
    places = {way: server.made(f"polls/{way}") for way in POLLING}
    places["Boskos"] = Place(server.boskos, kind, server.engine)
    for name in names[1:]:
        assert server.boskos.acquire(kind, "other", request_id=name) is not None
    holders = {way: place.held() for way, place in places.items()}
    dead = {way: POLLING[way](place) for way, place in places.items()}
    with killed_at_the_end(*dead.values()):
        for place in places.values():
            place.until(place.seen()[0], 1)
        live = {way: place.awaited() for way, place in places.items()}
    begun = time.monotonic()
    for way, place in places.items():
        place.free(holders[way])
    for way, place in places.items():
        place.until_granted(live[way], PRESENCE + CONFIRM + SLACK)
        assert time.monotonic() - begun < PRESENCE + CONFIRM + SLACK, way


def test_live_holders_keep_their_leases(server: Serving) -> None:
    """The control: a client that has read of its grant keeps it for longer than a confirmation."""
    ways = {**CONNECTED, **POLLING}
    places = {way: server.made(f"live/{way}") for way in ways}
    kind, _ = server.boskos.new_type()
    places["Boskos"] = Place(server.boskos, kind, server.engine)
    started = [ways[way](place) for way, place in places.items()]
    with killed_at_the_end(*started):
        for place in places.values():
            place.until(1, 0)
        begun = time.monotonic()
        eventually(lambda: True if time.monotonic() - begun > CONFIRM + 1 else None)
        assert {way: place.seen() for way, place in places.items()} == dict.fromkeys(ways, (1, 0))


def test_killed_with_the_server(tmp_path: Path) -> None:
    """Server and waiters are killed together; after the restart the next gets the unit soon."""
    with ExitStack() as stack:
        first = Serving(stack.enter_context(serve_boskos(tmp_path)), "sqlite")
        place, other = first.made("restart"), first.made("restart/granted")
        holder, second = place.held(), other.held()
        dead = [run(place), acquire(place), proxy(place), run(other)]
        with killed_at_the_end(*dead):
            place.until(1, 3)
            other.until(1, 1)
            os.kill(dead[3].pid, signal.SIGSTOP)
            other.free(second)
            other.until(1, 0)
            first.boskos.server.stop(signal.SIGKILL)
        again = stack.enter_context(serve_boskos(tmp_path))
        begun = time.monotonic()
        place, other = place._replace(boskos=again), other._replace(boskos=again)
        live = place.awaited()
        place.free(holder)
        place.until_granted(live, PRESENCE + CONFIRM + SLACK)
        other.until(0, 1, CONFIRM + SLACK)
        assert time.monotonic() - begun < PRESENCE + CONFIRM + SLACK
