"""Releases by the bash functions through a proxy that fails midway: no name is released twice."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from moorage.client.run import lease_proxy


class Proxy(HTTPServer):
    """Releases names in order, and responds as a lease proxy does.

    `released` lists the released names; `failing` has the statuses of the next failures of a name.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.released: list[str] = []
        self.failing: dict[str, list[int]] = {}

    def answer(self, names: list[str]) -> tuple[int, str]:
        """Release some names; return status and text."""
        done: list[str] = []
        for name in names:
            statuses = self.failing.get(name)
            if statuses:
                text = f"Failed to release lease {name}: no resource name {name}\n"
                return statuses.pop(0), f"{text}Released: {' '.join(done)}\n"
            self.released.append(name)
            done.append(name)
        return 204, ""


class Answering(BaseHTTPRequestHandler):
    """The handler of a connection to a `Proxy`."""

    server: Proxy

    def do_POST(self) -> None:
        """Answer `/lease/release`."""
        response = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, text = self.server.answer(response["names"])
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Yield a proxy for the functions, which retry without pauses, and set `$SHARED_DIR`."""
    with Proxy() as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(lease_proxy, "URL", f"http://127.0.0.1:{serving.server_port}")
        monkeypatch.setattr(lease_proxy, "PAUSE_SECONDS", 0.0)
        monkeypatch.setenv("SHARED_DIR", str(tmp_path))
        yield serving
        serving.shutdown()
        thread.join()


def release(*words: str) -> int:
    """Run `lease__release`; return its exit code."""
    return lease_proxy.main([str(os.getpid()), "release", *words])


def test_a_released_name_is_not_sent_again(proxy: Proxy) -> None:
    """A proxy that fails between two names reports the released ones, and those are not retried."""
    proxy.failing = {"b": [503, 503]}
    assert release("--names", "a,b,c") == 0
    assert proxy.released == ["a", "b", "c"]


def test_a_failed_name_does_not_affect_others(proxy: Proxy, tmp_path: Path) -> None:
    """Only the failed name is kept for a retry; a released one may be another caller's by then."""
    shared = tmp_path / "leases"
    shared.write_text("a\nb\nc\n")
    proxy.failing = {"b": [500, 500]}
    assert release("--scope", "test") == 1
    assert proxy.released == ["a", "c"]
    assert shared.read_text() == "b\n"
    assert release("--scope", "test") == 1
    assert proxy.released == ["a", "c"]
    assert release("--scope", "test") == 0
    assert (proxy.released, shared.read_text()) == (["a", "c", "b"], "")


def test_a_handle_keeps_names_that_were_not_released(proxy: Proxy, tmp_path: Path) -> None:
    """Released names are also removed from the list of the test."""
    shared, handle = tmp_path / "leases", tmp_path / "handle"
    shared.write_text("a\nb\nc\nd\n")
    handle.write_text("a\nb\nc")
    proxy.failing = {"b": [500]}
    assert release("--handle", str(handle)) == 1
    assert (handle.read_text(), shared.read_text()) == ("b\n", "b\nd\n")
    assert release("--handle", str(handle)) == 0
    assert (handle.exists(), shared.read_text()) == (False, "d\n")
    assert proxy.released == ["a", "c", "b"]


def test_released_names_leave_the_shared_list(proxy: Proxy, tmp_path: Path) -> None:
    """Released names are removed from the list even if another name fails."""
    shared = tmp_path / "leases"
    shared.write_text("a\nb\n")
    proxy.failing = {"b": [500]}
    assert release("--names", "a,b") == 1
    assert (proxy.released, shared.read_text()) == (["a"], "b\n")
