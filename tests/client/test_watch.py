"""The client's watch with broken connections, busy servers and lost histories."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import pytest

from moorage.client import watch
from moorage.client.transport import RefusedError, Transport
from moorage.client.watch import ChangesGoneError, Watch
from moorage.wire.changes import Change, NameValue

SECONDS = 10.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def at(n: int) -> str:
    """Return a time as a server sends it."""
    return f"2026-01-01T00:00:{n:02d}.000001Z"


def event(n: int, cursor: str) -> bytes:
    """Return the n-th change of a test as an event."""
    value = {"name": f"CUSTOM_{n}", "created_at": at(n), "updated_at": at(n)}
    data = {"revision": 1, "n": n, "kind": "trait", "key": f"CUSTOM_{n}", "value": value}
    return f"id: {cursor}\ndata: {json.dumps(data)}\n\n".encode()


def change(n: int) -> Change:
    """Return the n-th change of a test."""
    when = datetime.fromisoformat(at(n))
    value = NameValue(name=f"CUSTOM_{n}", created_at=when, updated_at=when)
    return Change(revision=1, n=n, kind="trait", key=f"CUSTOM_{n}", value=value)


def chunk(text: bytes) -> bytes:
    """Return a piece of a chunked response."""
    return b"%x\r\n%s\r\n" % (len(text), text)


def refusal(status: int, **members: Any) -> bytes:
    """Return a complete response that refuses."""
    body = json.dumps({"status": status, "code": "no", "detail": "No.", **members}).encode()
    return b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[str, list[str]]]:
    """Run a server that answers connections in turn; yield its URL and the cursors asked for."""
    asked: list[str] = []

    def serve(listener: socket.socket) -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                heard = b""
                while b"\r\n\r\n" not in heard:
                    heard += connection.recv(65536)
                asked.append(heard.partition(b"Last-Event-ID: ")[2].partition(b"\r\n")[0].decode())
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        thread.join()


def first(watch: Watch, count: int) -> list[Change]:
    """Return the first changes of a watch."""
    found = []
    for one in watch:
        found.append(one)
        if len(found) == count:
            watch.close()
    return found


def test_a_watch_resumes_after_the_last_whole_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a stream breaks off, the next one starts after the last complete event."""
    monkeypatch.setattr(watch, "PAUSE_SECONDS_MAX", 0.05)
    answers = [
        HEAD + chunk(b"id: 1.0\n\n" + event(0, "1.1.0")) + chunk(event(1, "1.1.1")[:-1]),
        HEAD + chunk(event(1, "1.1.1")[:9]) + b"ff\r\nid: 1.1",
        refusal(503),
        refusal(502),
        b"",
        HEAD + chunk(event(1, "1.1.1")) + chunk(event(2, "1.1") + b"id: 1.2\n\n") + b"0\r\n\r\n",
        HEAD + chunk(event(3, "1.3")),
    ]
    with answering(*answers) as (url, asked):
        following = Watch(Transport(url, None), "1.0")
        assert first(following, 4) == [change(n) for n in range(4)]
    assert asked == ["1.0", "1.1.0", "1.1.0", "1.1.0", "1.1.0", "1.1.0", "1.2"]
    assert following.cursor == "1.3"


def test_the_cursor_of_an_idle_stream_is_kept() -> None:
    """A watch without a cursor takes it from the stream."""
    answers = [HEAD + chunk(b"id: 4.7\n\n"), HEAD + chunk(event(0, "4.8"))]
    with answering(*answers) as (url, asked):
        assert first(Watch(Transport(url, None), kinds=["trait"]), 1) == [change(0)]
    assert asked == ["", "4.7"]


@pytest.mark.parametrize("begun", [False, True])
def test_a_lost_history_is_reported(begun: bool) -> None:
    """At the start or within a stream, `ChangesGoneError` names the cursor to continue from."""
    problem = {"status": 410, "code": "changes_gone", "detail": "Gone.", "oldest": "2.5"}
    response = b"event: problem\ndata: " + json.dumps(problem).encode() + b"\n\n"
    answer = HEAD + chunk(response) if begun else refusal(410, oldest="2.5")
    with answering(answer) as (url, _), pytest.raises(ChangesGoneError) as gone:
        first(Watch(Transport(url, None), "1.0"), 1)
    assert gone.value.oldest == "2.5"


def test_a_refusal_ends_a_watch() -> None:
    """A refusal that retries cannot cure is raised at once."""
    with answering(refusal(403)) as (url, _), pytest.raises(RefusedError) as refused:
        first(Watch(Transport(url, None)), 1)
    assert refused.value.status == 403


def test_a_watch_is_closed_while_nothing_changes() -> None:
    """It ends with the next sign of life of the server, which is no change."""

    def live(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(HEAD)
            while not gone.wait(0.01):
                connection.sendall(chunk(b"id: 4.7\n\n"))

    gone = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=live, args=(listener,), daemon=True).start()
        following = Watch(Transport(f"http://127.0.0.1:{listener.getsockname()[1]}", None))
        thread = threading.Thread(target=lambda: [*following], daemon=True)
        thread.start()
        while following.cursor is None:
            pass
        assert thread.is_alive()
        following.close()
        thread.join(SECONDS)
        assert not thread.is_alive()
        gone.set()
