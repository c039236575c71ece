"""An upgrade on PostgreSQL, in the order of its steps: no client is refused.

The order is that of Kubernetes. While the `preStop` of a pod lasts, nodes learn that it gets no new
connections; then its process is asked to stop. Without one, both happen at the same time, so the
process may stop first.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.e2e.support.relay import Relay
from tests.e2e.support.server import Server
from tests.kubernetes.chart.helm import Helm, Object
from tests.kubernetes.chart.pods import Pod, asked, said
from tests.kubernetes.chart.sets import SETS
from tests.support.cluster import Cluster

CLIENTS = 4
SOME = 40
"""Requests after which the next step is taken."""

SECONDS = 60.0
CREATE = ("moorage", "token", "create", "--name", "alice", "--role", "admin")


@pytest.fixture(scope="module")
def database() -> Iterator[Cluster]:
    """A PostgreSQL."""
    with Cluster() as started:
        yield started


def sent(url: str, token: str, method: str, path: str, body: Any = None) -> int:
    """Send a request on a new connection; return its status. Raises OSError."""
    headers = {"X-Auth-Token": token, "Content-Type": "application/json"}
    text = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url + path, text, headers, method=method), timeout=SECONDS) as answer:
            answer.read()
            return int(answer.status)
    except HTTPError as refused:
        return refused.code


class Clients:
    """Some clients that call without a pause, each request on a new connection."""

    def __init__(self, url: str, token: str) -> None:
        self.failures: list[str] = []
        self._url, self._token = url, token
        self._number, self._more = 0, threading.Condition()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._call) for _ in range(CLIENTS)]
        for one in self._threads:
            one.start()

    def _call(self) -> None:
        while not self._stop.is_set():
            failure = None
            try:
                status = sent(self._url, self._token, "GET", "/v1/pools")
                failure = None if status == 200 else str(status)
            except OSError as error:
                failure = repr(error)
            with self._more:
                self.failures += [] if failure is None else [failure]
                self._number += 1
                self._more.notify_all()

    def some_more(self) -> None:
        """Return when they have called some more times."""
        with self._more:
            until = self._number + SOME
            assert self._more.wait_for(lambda: self._number >= until, SECONDS)

    def end(self) -> None:
        """Stop calling."""
        self._stop.set()
        for one in self._threads:
            one.join(SECONDS)


def started(
    stack: ExitStack, objects: list[Object], folder: Path, address: str
) -> tuple[Pod, Server, str]:
    """Start a pod; return it with its process and its address."""
    folder.mkdir()
    pod = Pod(objects, "Deployment/moorage", folder, {"Secret/db": {"address": address}})
    return pod, stack.enter_context(pod.start()), f"http://127.0.0.1:{pod.port(8778)}"


def upgraded(
    rendering: Helm, database: Cluster, folder: Path, drain: int
) -> tuple[list[str], list[int]]:
    """Replace a process; return the failures of clients, and what one got that waited."""
    values = {
        **SETS["postgresql"],
        "server": {
            "drainSeconds": drain,
            "database": {
                "engine": "postgresql",
                "postgresql": {"addressSecret": {"name": "db"}},
            },
        },
    }
    objects = rendering.template(values)
    address = database.create(f"ledger{drain}")
    with ExitStack() as stack:
        old, process, url = started(stack, objects, folder / "old", address)
        token = said(old.execute(*CREATE))
        asked(url, token, "pool", "create", "full", "--limit", "1")
        need = {"needs": [{"pool": "full"}]}
        assert sent(url, token, "POST", "/v1/leases", {**need, "key": "1"}) == 201
        relay = stack.enter_context(Relay(url))
        got: list[int] = []

        def wait() -> None:
            body = {**need, "key": "2"}
            got.append(sent(relay.url, token, "POST", "/v1/leases?wait=50", body))

        waiting = threading.Thread(target=wait)
        waiting.start()
        clients = Clients(relay.url, token)
        stack.callback(clients.end)
        clients.some_more()
        _, _, new = started(stack, objects, folder / "new", address)
        if "preStop" in old.container.get("lifecycle", {}):
            relay.aim(new)
            clients.some_more()
            assert process.stop() == 0
        else:
            assert process.stop() == 0
            clients.some_more()
            relay.aim(new)
        clients.some_more()
        clients.end()
        waiting.join(SECONDS)
        assert sent(new, token, "POST", "/v1/leases", {**need, "key": "2"}) == 202
    return clients.failures, got


def test_no_client_is_refused(tmp_path: Path, database: Cluster) -> None:
    """New connections go to the new process before the old one answers waiting clients and ends."""
    assert upgraded(Helm(tmp_path), database, tmp_path, 5) == ([], [202])


def test_without_draining_clients_are_refused(tmp_path: Path, database: Cluster) -> None:
    """This is the control: with `drainSeconds: 0` some connections find nobody."""
    failures, got = upgraded(Helm(tmp_path), database, tmp_path, 0)
    assert failures and got == [202]
