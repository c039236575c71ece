"""The bash functions' releases, at a proxy that fails in the middle: nothing is released twice."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from moorage.client.run import lease_proxy


class Proxy(HTTPServer):
    """Releases names in order, and answers as a lease proxy does.

    `released` has all that it was asked to release; `failing` the statuses with which a name fails,
    the next first.
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
    """One connection to a `Proxy`."""

    server: Proxy

    def do_POST(self) -> None:
        """Answer `/lease/release`."""
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, text = self.server.answer(told["names"])
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy that the functions speak to without pauses, and a folder for `$SHARED_DIR`."""
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
    """Carry out `lease__release`; return its exit code."""
    return lease_proxy.main([str(os.getpid()), "release", *words])


def test_what_is_released_is_not_sent_again(proxy: Proxy) -> None:
    """A proxy that fails for a moment between two names has told which of them is released."""
    proxy.failing = {"b": [503, 503]}
    assert release("--names", "a,b,c") == 0
    assert proxy.released == ["a", "b", "c"]


def test_a_name_that_fails_hinders_no_other(proxy: Proxy, tmp_path: Path) -> None:
    """It alone is kept for another try; what is released may be somebody else's by then."""
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


def test_a_handle_keeps_what_is_not_released(proxy: Proxy, tmp_path: Path) -> None:
    """And the test forgets what is."""
    shared, handle = tmp_path / "leases", tmp_path / "handle"
    shared.write_text("a\nb\nc\nd\n")
    handle.write_text("a\nb\nc")
    proxy.failing = {"b": [500]}
    assert release("--handle", str(handle)) == 1
    assert (handle.read_text(), shared.read_text()) == ("b\n", "b\nd\n")
    assert release("--handle", str(handle)) == 0
    assert (handle.exists(), shared.read_text()) == (False, "d\n")
    assert proxy.released == ["a", "c", "b"]


def test_by_name_the_test_forgets_what_is_released(proxy: Proxy, tmp_path: Path) -> None:
    """Also when another of the names fails."""
    shared = tmp_path / "leases"
    shared.write_text("a\nb\n")
    proxy.failing = {"b": [500]}
    assert release("--names", "a,b") == 1
    assert (proxy.released, shared.read_text()) == (["a"], "b\n")
