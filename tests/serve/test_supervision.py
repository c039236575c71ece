"""What a real server tells systemd, and what systemd does if it hangs."""

import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.support.server import Server, serve
from tests.serve.test_signals import (
    CERTIFICATE,
    KEY,
    OTHER,
    OTHER_KEY,
    certificate_of,
    install,
)
from tests.serve.wire import connect, request, talk
from tests.systemd.systemd_double import NotifySocket

HERE = Path(__file__).parent
WATCHDOG_SECONDS = 4.0
READING = "not ready: the database cannot be read"


@pytest.fixture
def systemd() -> Iterator[NotifySocket]:
    """The socket that systemd would listen on."""
    with NotifySocket() as double:
        yield double


def status(url: str, path: bytes, method: bytes = b"GET") -> int:
    """Return the status of the answer to a request."""
    return talk(url, request(method, path))[0].status


@contextmanager
def on_a_faulty_disk(
    folder: Path, variables: Mapping[str, str], trigger: str = "disk"
) -> Iterator[Server]:
    """Serve on a disk that fails, or hangs, while TRIGGER.sync or TRIGGER.read exists."""
    with Server(faulty(folder, trigger), {**os.environ, **variables}) as server:
        yield server


def faulty(folder: Path, trigger: str = "disk") -> list[str]:
    """Return the command of a server on such a disk."""
    command = [sys.executable, str(HERE / "faulty_server.py"), str(folder / trigger), "serve"]
    where = ["--listen", "127.0.0.1:0", "--database", f"sqlite:///{folder}/m.sqlite"]
    return [*command, *where, "--auth", "noauth2"]


@contextmanager
def waiting_start(
    command: list[str], variables: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a server, which need not become ready."""
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def killer(systemd: NotifySocket, server: Server) -> Iterator[None]:
    """Do what systemd does: SIGABRT if no sign of life has come for the time of the watchdog."""
    ended = threading.Event()

    def watch() -> None:
        systemd.wait_for("WATCHDOG")
        seen, since = -1, 0.0
        while not ended.wait(0.05):
            count = len(systemd.all_of("WATCHDOG"))
            if count != seen:
                seen, since = count, time.monotonic()
            elif time.monotonic() - since > WATCHDOG_SECONDS:
                os.kill(server.pid, signal.SIGABRT)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_the_life_of_a_server(tmp_path: Path, systemd: NotifySocket) -> None:
    """It is ready when /readyz is 200, says what it does, and that it stops."""
    with serve(tmp_path / "m.sqlite", "--auth", "noauth2", **systemd.variables()) as server:
        systemd.wait_for("READY")
        assert status(server.url, b"/readyz") == 200
        systemd.wait_for("STATUS", f"serving {server.url}, 0 connections".__eq__)
        assert server.stop() == 0
    told = [*systemd.received]
    assert told.index({"STATUS": "reading the catalog"}) < told.index({"READY": "1"})
    assert told[0] == {"STATUS": "opening the database"}
    assert told[-1] == {"STATUS": "stopping: closing the database"}
    assert told.index({"READY": "1"}) < told.index({"STOPPING": "1"}) < len(told) - 1
    assert systemd.all_of("STOPPING") == systemd.all_of("READY") == ["1"]
    assert systemd.all_of("WATCHDOG") == []  # nobody expects it


def test_answers_during_a_stop_end_their_connections(tmp_path: Path) -> None:
    """So no client sends its next request on a connection that is about to be closed."""
    for attempt in range(5):
        if (answer := answered_while_stopping(tmp_path / str(attempt))) is not None:
            assert b"\r\nconnection: close" in answer.lower()
            return
    pytest.fail("this machine is too busy: the server had always ended before")


def answered_while_stopping(folder: Path) -> bytes | None:
    """Return the answer to a request on a kept connection after the signal; None: too late."""
    folder.mkdir()
    wanted = request(b"GET", b"/healthz", close=False)
    with (
        NotifySocket() as systemd,
        serve(folder / "m.sqlite", "--auth", "noauth2", **systemd.variables()) as server,
        connect(server.url) as kept,
    ):
        kept.sendall(wanted)
        assert kept.recv(4_096).startswith(b"HTTP/1.1 200")
        os.kill(server.pid, signal.SIGTERM)
        systemd.wait_for("STOPPING")
        with suppress(ConnectionError):
            kept.sendall(wanted)
            return kept.recv(4_096) or None
    return None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_waits_is_stopped_at_once(
    tmp_path: Path, systemd: NotifySocket, number: signal.Signals
) -> None:
    """A signal ends it with exit code 0 while the event loop waits for the database. The next
    start works.
    """
    with on_a_faulty_disk(tmp_path, {}) as server:
        assert server.stop() == 0
    os.mkfifo(tmp_path / "disk.read")
    with waiting_start(faulty(tmp_path), systemd.variables(WATCHDOG_SECONDS)) as process:
        systemd.wait_for("STATUS", "opening the database".__eq__)
        process.send_signal(number)
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 0, said
    assert "serving" not in said
    assert systemd.all_of("STOPPING") == ["1"]
    assert systemd.all_of("READY") == []
    (tmp_path / "disk.read").unlink()
    with on_a_faulty_disk(tmp_path, {}) as server:
        assert status(server.url, b"/readyz") == 200


def test_a_reload_waits_for_the_start(tmp_path: Path, systemd: NotifySocket) -> None:
    """SIGHUP does not end a start; it is handled as soon as the event loop runs."""
    with on_a_faulty_disk(tmp_path, {}) as server:
        assert server.stop() == 0
    hang = tmp_path / "disk.read"
    os.mkfifo(hang)
    with waiting_start(faulty(tmp_path), systemd.variables()) as process:
        systemd.wait_for("STATUS", "opening the database".__eq__)
        process.send_signal(signal.SIGHUP)
        with hang.open("wb"):
            hang.unlink()
        systemd.wait_for("READY")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 0
    assert "HUP: there is no certificate to reload" in said
    assert "moorage: serving" in said


def test_a_reload_in_the_start_is_not_lost(tmp_path: Path, systemd: NotifySocket) -> None:
    """A certificate that is renewed while the server starts is the one that clients get."""
    with on_a_faulty_disk(tmp_path, {}) as server:
        assert server.stop() == 0
    hang = tmp_path / "disk.read"
    os.mkfifo(hang)
    install(tmp_path, CERTIFICATE, KEY)
    options = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    with waiting_start([*faulty(tmp_path), *options], systemd.variables()) as process:
        systemd.wait_for("STATUS", "opening the database".__eq__)
        install(tmp_path, OTHER, OTHER_KEY)
        process.send_signal(signal.SIGHUP)
        with hang.open("wb"):
            hang.unlink()
        shown = systemd.wait_for("STATUS", lambda text: text.startswith("serving "))
        found = certificate_of(shown.split()[1].rstrip(","))
    assert found == ssl.PEM_cert_to_DER_cert(OTHER.read_text())


SLOW_NAMES = """
import socket, sys
from moorage.__main__ import main

answer = sys.argv.pop(1)

def lookup(*args, **options):
    print("asks for the name", flush=True)
    open(answer).read()

socket.getaddrinfo = lookup
main()
"""
"""A server on a machine on which looking up a name hangs."""


def test_a_start_that_waits_for_a_name_is_stopped_at_once(tmp_path: Path) -> None:
    """A signal counts as soon as the process handles signals."""
    os.mkfifo(tmp_path / "answer")
    command = [sys.executable, "-c", SLOW_NAMES, str(tmp_path / "answer"), "serve"]
    command += ["--listen", "127.0.0.1:0", "--database", f"sqlite:///{tmp_path}/m.sqlite"]
    with waiting_start(command, {}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asks for the name\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_failed_start_is_never_ready(tmp_path: Path, systemd: NotifySocket) -> None:
    """The exit code says that it failed."""
    (tmp_path / "m.sqlite").write_bytes(b"no database at all" * 1_000)
    with pytest.raises(Exception, match=r"m\.sqlite"):
        serve(tmp_path / "m.sqlite", **systemd.variables())
    assert systemd.all_of("READY") == []


def test_a_reload(tmp_path: Path, systemd: NotifySocket) -> None:
    """SIGHUP is a reload with a beginning and an end, for which `systemctl reload` can wait."""
    with serve(tmp_path / "m.sqlite", **systemd.variables()) as server:
        systemd.wait_for("READY")
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        os.kill(server.pid, signal.SIGHUP)
        systemd.wait_for("READY", times=2)
        told = [one for one in systemd.received if "READY" in one or "RELOADING" in one]
        assert [sorted(one) for one in told] == [
            ["READY"],
            ["MONOTONIC_USEC", "RELOADING"],
            ["READY"],
        ]
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        assert before <= int(told[1]["MONOTONIC_USEC"]) <= after


def test_a_broken_notify_socket(tmp_path: Path) -> None:
    """The server serves, and logs one line."""
    with serve(tmp_path / "m.sqlite", "--auth", "noauth2", NOTIFY_SOCKET="/nowhere") as server:
        assert status(server.url, b"/readyz") == 200
        server.wait_for("cannot notify '/nowhere' (NOTIFY_SOCKET)")
        assert server.stop() == 0
    assert sum("cannot notify" in line for line in server.said) == 1


def test_a_disk_that_fails_is_not_restarted(tmp_path: Path, systemd: NotifySocket) -> None:
    """An error is an answer: another start could not read it either. The status says it."""
    with on_a_faulty_disk(tmp_path, systemd.variables(WATCHDOG_SECONDS)) as server:
        systemd.wait_for("READY")
        with killer(systemd, server):
            # The next read cannot use what is in memory: a commit has changed it.
            assert status(server.url, b"/traits/CUSTOM_ONE", b"PUT") == 201
            (tmp_path / "disk.read").touch()
            systemd.wait_for("STATUS", READING.__eq__)
            before = len(systemd.all_of("WATCHDOG"))
            systemd.wait_for("WATCHDOG", times=before + 4)
            (tmp_path / "disk.read").unlink()
            systemd.wait_for("STATUS", lambda text: text.startswith("serving"), times=2)
            assert server.process.poll() is None


@pytest.mark.parametrize("what", ["sync", "read"])
def test_a_server_that_hangs_is_killed(tmp_path: Path, systemd: NotifySocket, what: str) -> None:
    """A sync hangs in the commit thread, a read in the event loop. What was acknowledged is there
    after the next start, and the log shows where each thread was.
    """
    with on_a_faulty_disk(tmp_path, systemd.variables(WATCHDOG_SECONDS)) as server:
        systemd.wait_for("READY")
        assert status(server.url, b"/traits/CUSTOM_BEFORE", b"PUT") == 201
        with killer(systemd, server):
            os.mkfifo(tmp_path / f"disk.{what}")
            hung = threading.Thread(target=_provoke, args=(server.url, what))
            hung.start()
            if what == "sync":
                assert status(server.url, b"/healthz") == 200  # the loop turns
                systemd.wait_for("STATUS", lambda text: text.startswith("hangs: "))
            assert server.process.wait(30) == -signal.SIGABRT
            hung.join()
        server.stop()
    assert any("Fatal Python error: Aborted" in line for line in server.said)
    (tmp_path / f"disk.{what}").unlink()
    with on_a_faulty_disk(tmp_path, {}) as server:
        assert status(server.url, b"/traits/CUSTOM_BEFORE") == 204


def _provoke(url: str, what: str) -> None:
    """Send a request that needs the disk; it is never answered."""
    if what == "sync":
        talk(url, request(b"PUT", b"/traits/CUSTOM_LOST"))
    else:
        talk(url, request(b"GET", b"/allocations/11111111-2222-4333-8444-555555555555"))
