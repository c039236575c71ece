"""One post, and a receiver that would not let go of it, or fails at one lease again and again."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from moorage.client import Client
from moorage.client.transport import Transport
from moorage.integrations.webhooks import following, posting
from moorage.integrations.webhooks.cursor_files import CursorFile
from moorage.integrations.webhooks.following import Following
from moorage.integrations.webhooks.hooks import Hook, Post
from moorage.integrations.webhooks.posting import Verdict, send
from tests.integrations.webhooks.receiver import Received, Receiver

POST = Post("id", "/hook", {"content-type": "application/json"}, b"{}")


@contextmanager
def dripping(head: bytes, byte: bytes) -> Iterator[str]:
    """Serve one connection: send a head, and then a byte again and again; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.sendall(head)
                while not ended.wait(0.05):
                    connection.sendall(byte)

        ended = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook"
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize(
    ("head", "byte", "verdict"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x", Verdict.TAKEN),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", b"x", Verdict.TAKEN),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", Verdict.TAKEN),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", Verdict.LATER),
    ],
    ids=["body", "long", "header", "continue"],
)
def test_an_answer_without_an_end(
    monkeypatch: pytest.MonkeyPatch, head: bytes, byte: bytes, verdict: Verdict
) -> None:
    """It is broken off: each byte comes in time, but all of them would take for ever."""
    monkeypatch.setattr(posting, "SECONDS_MAX", 1.0)
    began = monotonic()
    with dripping(head, byte) as url:
        assert send(Hook(name="ci", url=url), POST).verdict is verdict
    assert monotonic() - began < 30.0


def test_a_receiver_fails_at_a_lease_for_a_time_in_all(
    client: Client,
    served: tuple[str, str],
    pool: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A grant that is taken back and given again does not begin this time again: others wait."""
    monkeypatch.setattr(following, "FAILING_SECONDS_MAX", 0.9)
    said: list[str] = []
    stopped = threading.Event()

    def fail(_: Received) -> int:
        if len(receiver.posts) == 1:
            stopped.set()  # as at the end of the first grant
        return 500

    with Receiver(answer=fail) as receiver, client.lease(pool) as held:
        hook = Hook(name="ci", url=f"{receiver.url}/hook", attend=True)
        file = CursorFile(str(tmp_path), "ci")
        one = Following(Transport(*served), hook, file, stopped, said.append)
        lease = replace(client.admission.lease(held.id), labels={"notify": "ci"})
        one._deliver("granted", lease)
        assert lease.id not in one.refused
        stopped.clear()
        before = len(receiver.posts)
        one._deliver("granted", lease)
        assert lease.id in one.refused
        assert len(receiver.posts) - before <= 2
    assert "gave up" in said[-1]
