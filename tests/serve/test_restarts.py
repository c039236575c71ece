"""Clients that never stop asking, while the server is started again and again."""

import http.client
import re
import signal
import socket
import ssl
import threading
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.support.server import MOORAGE, Server
from tests.serve.test_signals import CERTIFICATE, KEY
from tests.systemd.systemd_double import passing

CLIENTS = 8
SECONDS = 60
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
RESET = (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected, ssl.SSLEOFError)
"""Without an answer, a client may send a request again that it may send twice."""


class Clients:
    """Threads that create traits, one request after the other, until they are stopped.

    Every other client opens a connection for each request; the others keep theirs. `seen` counts
    what went wrong. Each trait is asked for until there is an answer.
    """

    def __init__(self, url: str) -> None:
        """Start them."""
        self._url = url
        self._stop = threading.Event()
        self.seen: Counter[str] = Counter()
        self.made: list[str] = []
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(number,)) for number in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop them when what they have sent is answered."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self, client: int) -> None:
        count = 0
        connection: http.client.HTTPConnection | None = None
        while not self._stop.is_set():
            count += 1
            name = f"CUSTOM_{client}_{count}"
            status = 0
            while not status:
                if connection is None or client % 2:
                    connection = connected(self._url)
                try:
                    status = self._made(connection, name)
                except ConnectionRefusedError:
                    self._count("refused")
                    self._stop.wait(0.01)  # or they would take the processor from the start
                except RESET:
                    self._count("reset while kept" if not client % 2 else "reset while new")
                if not status or client % 2:
                    connection.close()
            self._count(str(status))
            self.made.append(name)
        if connection is not None:
            connection.close()

    def _made(self, connection: http.client.HTTPConnection, name: str) -> int:
        """Create a trait, return the status of the answer."""
        connection.request("PUT", f"/traits/{name}", headers=HEADERS)
        with connection.getresponse() as answer:
            answer.read()
            return answer.status

    def _count(self, what: str) -> None:
        with self._lock:
            self.seen[what] += 1


def connected(url: str) -> http.client.HTTPConnection:
    """Return a connection to a server, which is opened with the first request."""
    place = urlsplit(url).netloc
    if url.startswith("http:"):
        return http.client.HTTPConnection(place, timeout=SECONDS)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(place, timeout=SECONDS, context=context)


def traits_of(url: str) -> set[str]:
    """Return all traits that are there."""
    connection = connected(url)
    connection.request("GET", "/traits", headers=HEADERS)
    with connection.getresponse() as answer:
        found = set(re.findall(r"CUSTOM_\d+_\d+", answer.read().decode()))
    connection.close()
    return found


def played(
    folder: Path, how: signal.Signals, restarts: int, held: socket.socket | None, *options: str
) -> Clients:
    """Start a server again and again while clients ask; return what they have seen.

    `held`: is passed to each; None: each binds the address that the first has chosen. `options`:
    of each server.
    """
    port = 0 if held is None else held.getsockname()[1]
    clients = None
    for _ in range(restarts + 1):
        command = [*MOORAGE, "serve", "--database", f"sqlite:///{folder}/m.sqlite"]
        command += ["--auth", "noauth2", "--no-access-log", *options]
        if held is None:
            server = Server([*command, "--listen", f"127.0.0.1:{port}"])
        else:
            server = Server(passing(command, {"listen": held}), passed=[held.fileno()])
        with server:
            port = urlsplit(server.url).port or 0
            if clients is None:
                clients = Clients(server.url)
            _answered(clients)
            server.process.send_signal(how)
            assert server.process.wait(30) == (0 if how == signal.SIGTERM else -how)
    assert clients is not None
    with Server(
        passing(command, {"listen": held}) if held else [*command, "--listen", f"127.0.0.1:{port}"],
        passed=[held.fileno()] if held else [],
    ) as server:
        clients.stop()
        assert traits_of(server.url) >= {*clients.made}
    return clients


def _answered(clients: Clients) -> None:
    """Return when this process has answered some requests of each client."""
    until = len(clients.made) + 5 * CLIENTS
    waiting = threading.Event()
    while len(clients.made) < until:
        waiting.wait(0.01)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_connection_is_refused(tmp_path: Path, how: signal.Signals) -> None:
    """If somebody else holds the socket."""
    check(tmp_path, how, 2)


def test_no_connection_is_refused_with_tls(tmp_path: Path) -> None:
    """A handshake that was begun is finished, and its request answered."""
    tls = ["--tls-cert", str(CERTIFICATE), "--tls-key", str(KEY)]
    check(tmp_path, signal.SIGTERM, 2, *tls)


def check(folder: Path, how: signal.Signals, restarts: int, *options: str) -> dict[str, int]:
    """Start a server with a held socket again and again; return what the clients have seen.

    None is refused. After SIGTERM, a new connection is always answered; one that was kept may be
    closed between two requests. What was acknowledged is there.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=64) as held:
        clients = played(folder, how, restarts, held, *options)
    assert clients.seen["refused"] == 0
    assert {*clients.seen} <= {"201", "204", "reset while kept", "reset while new"}
    if how == signal.SIGTERM:
        assert clients.seen["reset while new"] == 0
    return dict(clients.seen)


def test_without_that_socket_connections_are_refused(tmp_path: Path) -> None:
    """What the test above would see if nobody held the socket."""
    clients = played(tmp_path, signal.SIGTERM, 2, None)
    assert clients.seen["refused"] > 0
