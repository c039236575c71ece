"""Workers that deploy nodes side by side, each with one client. Standard library only."""

import contextlib
import json
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.client import HTTPException
from queue import Empty, SimpleQueue
from urllib.error import HTTPError
from urllib.request import Request, urlopen

VERSION = {"X-OpenStack-Ironic-API-Version": "1.95", "Content-Type": "application/json"}
POLL_SECONDS = 0.5
DEPLOY_SECONDS_MAX = 240.0
TRIES = 20

Deploy = Callable[[str], None]
"""Deploys a node and waits until it is active. Raises if it fails."""


@dataclass
class Work:
    """Nodes to deploy, what has failed, and when to stop."""

    nodes: SimpleQueue[str] = field(default_factory=SimpleQueue)
    failures: dict[str, str] = field(default_factory=dict)


def run(nodes: Iterable[str], workers: int, deploy: Deploy) -> dict[str, str]:
    """Deploy nodes by a number of workers; return what failed, by node."""
    work = Work()
    for node in nodes:
        work.nodes.put(node)

    def one() -> None:
        while True:
            try:
                node = work.nodes.get_nowait()
            except Empty:
                return
            try:
                deploy(node)
            except Exception as error:
                work.failures[node] = repr(error)

    threads = [threading.Thread(target=one) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return work.failures


def provision(node: str, target: str) -> tuple[str, str, object]:
    """Return the request for a provision state: method, path and body."""
    return "PUT", f"/v1/nodes/{node}/states/provision", {"target": target}


class Raw:
    """Plain HTTP to Ironic, without any client's patience."""

    def __init__(self, url: str, seconds_max: float = 60.0) -> None:
        self.url = url
        self._seconds_max = seconds_max
        self._pause = threading.Event()

    def send(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        """Send a request; return status and JSON. Raises OSError: there is no answer.

        Ironic has a backlog of 5 connections, and a gate may be killed: so it tries again.
        """
        for _ in range(TRIES):
            with contextlib.suppress(ConnectionError, HTTPException):
                return self.send_once(method, path, body)
            self.pause(POLL_SECONDS)
        return self.send_once(method, path, body)

    def send_once(
        self, method: str, path: str, body: object = None
    ) -> tuple[int, dict[str, object]]:
        """Send a request on one connection. Raises OSError."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, VERSION, method=method)
        try:
            with urlopen(request, timeout=self._seconds_max) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")

    def ask(self, node: str, target: str) -> int:
        """Ask for a provision state; return the status."""
        return self.send(*provision(node, target))[0]

    def state(self, node: str) -> str:
        """Return the state of a node."""
        status, found = self.send("GET", f"/v1/nodes/{node}?fields=provision_state")
        assert status == 200, f"{node}: {status} {found}"
        return str(found["provision_state"])

    def pause(self, seconds: float) -> None:
        """Wait, as a client does between two requests."""
        self._pause.wait(seconds)

    def until(self, node: str, state: str) -> None:
        """Wait until a node is in a state. Raises AssertionError if that takes too long."""
        waited = 0.0
        while (found := self.state(node)) != state:
            assert waited < DEPLOY_SECONDS_MAX, f"{node} is still {found}"
            assert not found.endswith("failed"), f"{node}: {found}"
            self.pause(POLL_SECONDS)
            waited += POLL_SECONDS


def metal3(url: str) -> Deploy:
    """Return a client like metal3's: it tries again after 409, and anything else is an error.

    It pauses for 3 s, and up to 25 % more; a request may take 30 seconds. It looks at the node
    before each request, also after a lost answer. Source: baremetal-operator,
    `tryChangeNodeProvisionState`.
    """
    raw, chance = Raw(url, seconds_max=30.0), random.Random(3)

    def deploy(node: str) -> None:
        while raw.state(node) == "available":
            with contextlib.suppress(ConnectionError, HTTPException):
                status, answer = raw.send_once(*provision(node, "active"))
                assert status in (202, 409), f"{node}: {status} {answer}"
                if status == 202:
                    break
            raw.pause(3.0 * (1 + chance.random() / 4))
        raw.until(node, "active")

    return deploy
