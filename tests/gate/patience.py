"""How patient stock clients are, measured: a small server answers 409 until they give up.

The gate's table of clients says how often each tries and what it does with `Retry-After`; here the
clients themselves say it, with their own clocks. `python -m tests.gate.patience` runs in the
environment of the clients; nova runs in its own.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from moorage.integrations.ironic.clients import policy_of
from tests.gate import clients
from tests.support.ironic import ROOT
from tests.support.suites import print_line

PAUSE = 3
"""Seconds of `Retry-After`: different from the pauses that clients make by themselves."""

TOLD = "unexpected keyword argument 'retry_after'"
"""How python-ironicclient fails at a `Retry-After`."""

VERSIONS = {
    "X-OpenStack-Ironic-API-Minimum-Version": "1.1",
    "X-OpenStack-Ironic-API-Maximum-Version": "1.95",
}
NODE: dict[str, Any] = {"uuid": "00000000-0000-4000-8000-000000000001", "name": "node-1"}
NODE |= {"provision_state": "available", "maintenance": False, "links": []}
FAULT = {"faultcode": "Client", "faultstring": "It waits for its turn.", "debuginfo": None}


@dataclass
class Tried:
    """When a client has asked, and who it says that it is."""

    times: list[float] = field(default_factory=list)
    user_agent: str = ""

    @property
    def pauses(self) -> list[float]:
        """Seconds between two requests."""
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]


@contextmanager
def refusing(retry_after: int | None) -> Iterator[tuple[str, Tried]]:
    """Serve an Ironic that refuses each start; yield its address, and what it was asked."""
    tried = Tried()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            version = {"id": "v1", "status": "CURRENT", "version": "1.95", "min_version": "1.1"}
            version["links"] = [{"href": f"{url}/v1/", "rel": "self"}]  # type: ignore[assignment] # JSON
            known = {"id": "v1", "default_version": version, "version": version}
            self._answer(200, NODE if "/nodes/" in self.path else {**known, "versions": [version]})

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            tried.times.append(time.monotonic())
            tried.user_agent = self.headers["User-Agent"]
            told = {} if retry_after is None else {"Retry-After": str(retry_after)}
            self._answer(409, {"error_message": json.dumps(FAULT)}, told)

        def _answer(self, status: int, body: Any, more: dict[str, str] | None = None) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            headers = {**VERSIONS, "Content-Type": "application/json", **(more or {})}
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield url, tried
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sdk(retries: int | None) -> Callable[[str], str]:
    """Return a deployment by openstacksdk; None: with its default."""

    def deploy(url: str) -> str:
        import openstack

        words = {} if retries is None else {"baremetal_status_code_retries": retries}
        client = openstack.connect(auth_type="none", endpoint=url, **words).baremetal
        try:
            client.set_node_provision_state("node-1", "active")
        except Exception as error:
            return repr(error)
        return ""

    return deploy


def command(url: str) -> str:
    """Deploy by `openstack baremetal`; return its error."""
    done = subprocess.run(
        [str(clients.OPENSTACK), "baremetal", "node", "deploy", "node-1"],
        env=clients.environment(url),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


def nova(python: Path, retries: int | None) -> Callable[[str], str]:
    """Return a deployment by nova's adapter; None: with its default."""

    def deploy(url: str) -> str:
        words = ["--once", "--retries", "default" if retries is None else str(retries)]
        done = subprocess.run(
            [python, "-m", "tests.gate.nova_adapter", url, "node-1", *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": "src"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    return deploy


@dataclass(frozen=True)
class Case:
    """A client, the `Retry-After` that it gets, how often it tries, and how long it pauses."""

    name: str
    deploy: Callable[[str], str]
    told: int | None
    tries: int
    pauses: float | None
    """Seconds of each pause; None: of other lengths."""
    error: str = ""
    """What its error must say."""


def cases(nova_python: Path) -> list[Case]:
    """Return all cases: those of the reference, docs/reference/gate.md."""
    return [
        Case("openstacksdk", sdk(None), PAUSE, 6, PAUSE),
        Case("openstacksdk, told nothing", sdk(None), None, 6, None),
        Case("openstacksdk, 2 retries", sdk(2), PAUSE, 3, PAUSE),
        Case("openstack baremetal", command, None, 6, 2.0, FAULT["faultstring"] or ""),
        Case("openstack baremetal, told to pause", command, PAUSE, 1, None, TOLD),
        Case("nova", nova(nova_python, None), PAUSE, 1, None),
        Case("nova, 2 retries", nova(nova_python, 2), PAUSE, 3, PAUSE),
    ]


def check(case: Case) -> str:
    """Let a client ask until it gives up; return what was seen. Raises AssertionError."""
    with refusing(case.told) as (url, tried):
        error = case.deploy(url)
    assert len(tried.times) == case.tries, (case.name, tried.times, error)
    assert error and case.error in error, (case.name, error)
    if case.pauses is not None:
        late = [pause for pause in tried.pauses if not -0.1 <= pause - case.pauses < 2.0]
        assert not late, (case.name, tried.pauses)
    policy = policy_of(tried.user_agent)
    assert (policy.retry_after == "none") == ("openstack baremetal" in case.name), tried.user_agent
    if "retries" not in case.name and case.error != TOLD:
        assert policy.tries == case.tries, (case.name, policy)
        if case.told is None and case.pauses is not None:
            assert policy.pause == case.pauses
    pauses = ", ".join(f"{pause:.1f}" for pause in tried.pauses)
    return f"{len(tried.times)} requests, pauses of {pauses or '-'} s; {tried.user_agent}"


def check_patience(nova_python: Path) -> None:
    """Measure all clients side by side. Raises AssertionError."""
    found: dict[str, str] = {}
    failed: list[AssertionError] = []

    def one(case: Case) -> None:
        try:
            found[case.name] = check(case)
        except AssertionError as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(case,)) for case in cases(nova_python)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, text in found.items():
        print_line(f"e2e: gate: patience: {name}: {text}")
    if failed:
        raise failed[0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.gate.patience", description=__doc__)
    parser.add_argument("--nova", type=Path, default=Path(".venv-nova/bin/python"))
    check_patience(parser.parse_args().nova.absolute())
    sys.exit(0)
