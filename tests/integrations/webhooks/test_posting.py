"""One post, and a receiver that would not let go of it, or fails at one lease again and again."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from moorage.client import Client
from moorage.client.transport import Transport
from moorage.integrations.webhooks import following, given_up, posting
from moorage.integrations.webhooks.cursor_files import CursorFile
from moorage.integrations.webhooks.following import Following
from moorage.integrations.webhooks.given_up import GivenUp
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
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", Verdict.BUSY),
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


@pytest.mark.parametrize(("status", "ends"), [(503, True), (429, True), (0, True), (401, False)])
def test_a_post_that_never_gets_through_does_not_stop_its_hook(
    client: Client,
    served: tuple[str, str],
    pool: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    ends: bool,
) -> None:
    """After its time the event is kept for people, and the next one is posted.

    So it is if the receiver drops this post without an answer (0), but takes others. The control is
    an access that is refused: no other post would succeed, so nothing is given up.
    """
    monkeypatch.setattr(following, "BUSY_SECONDS_MAX", 0.9)
    stopped = threading.Event()

    def answer(post: Received) -> int:
        if len(receiver.posts) == 4:
            stopped.set()
        return status if post.content["event"] == "granted" else 200

    with Receiver(answer=answer) as receiver, client.lease(pool) as held:
        hook = Hook(name="ci", url=f"{receiver.url}/hook")
        file = CursorFile(str(tmp_path), "ci")
        one = Following(Transport(*served), hook, file, stopped, lambda _: None)
        lease = replace(client.admission.lease(held.id), labels={"notify": "ci"})
        one._deliver("granted", lease)
        one._deliver("ended", replace(lease, state="ended"))
        kept = tmp_path / "ci.given-up"
        assert kept.exists() == ends
        assert [post.content["event"] for post in receiver.posts].count("ended") == ends
        if ends:
            (line,) = map(json.loads, kept.read_text().splitlines())
            assert (line["event"], line["lease"], line["owner"]) == (
                "granted",
                held.id,
                lease.owner,
            )
            answered = f"the receiver answers {status}"
            dropped = f"no answer from {receiver.url}: it does not answer"
            assert line["why"] == (answered if status else dropped)


def test_events_that_are_given_up_are_read_as_they_are_written(tmp_path: Path) -> None:
    """In any locale: a file that is read in another one would grow each time it is written."""
    (tmp_path / "ci.given-up").write_text('{"labels": {"job": "Größe"}}\n', "utf-8")
    code = "import sys; from moorage.integrations.webhooks.given_up import GivenUp\n"
    code += "assert 'Größe' in GivenUp(sys.argv[1], 'ci')._lines()[0]"
    strict = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    subprocess.run([sys.executable, *strict, "-c", code, str(tmp_path)], check=True)


def test_events_that_are_given_up_are_bounded(
    client: Client, pool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest go; others cannot read the file."""
    monkeypatch.setattr(given_up, "KEPT_MAX", 3)
    with client.lease(pool) as held:
        lease = client.admission.lease(held.id)
    file = GivenUp(str(tmp_path), "ci")
    for n in range(5):
        file.add("granted", lease, f"{n}")
    kept = tmp_path / "ci.given-up"
    assert [json.loads(one)["why"] for one in kept.read_text().splitlines()] == ["2", "3", "4"]
    assert kept.stat().st_mode & 0o777 == 0o600


def test_texts_of_given_up_events_stay_as_they_are(tmp_path: Path) -> None:
    """The file is UTF-8 in every locale: each event writes those before it again."""
    program = """if True:
        from types import SimpleNamespace
        from moorage.integrations.webhooks.given_up import GivenUp
        lease = SimpleNamespace(id="1", key=chr(252), owner="ci", labels={}, granted_at=None)
        for n in range(3):
            GivenUp(".", "ci").add("granted", lease, "refused")
    """
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {**os.environ, **ascii_only}
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=tmp_path, check=True)
    lines = (tmp_path / "ci.given-up").read_text("utf-8").splitlines()
    assert [json.loads(line)["key"] for line in lines] == [chr(252)] * 3
