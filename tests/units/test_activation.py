"""Real programs of systemd pass sockets; and many restarts, under clients that never stop."""

import http.client
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.support.server import MOORAGE
from tests.e2e.support.typed import free_port
from tests.serve.test_restarts import check
from tests.serve.test_signals import CERTIFICATE, KEY
from tests.support.guard import Guard
from tests.support.suites import print_line
from tests.systemd.systemd_double import SECONDS, NotifySocket

TLS = ("--tls-cert", str(CERTIFICATE), "--tls-key", str(KEY))


@pytest.mark.parametrize(
    ("how", "options"), [(signal.SIGTERM, ()), (signal.SIGKILL, ()), (signal.SIGTERM, TLS)]
)
def test_twenty_restarts(tmp_path: Path, how: signal.Signals, options: tuple[str, ...]) -> None:
    """As in `tests/serve/test_restarts.py`, which restarts twice."""
    seen = check(tmp_path, how, 20, *options)
    print_line(f"units: 20 restarts by {how.name}{', TLS' if options else ''}: {seen}")


def test_systemd_socket_activate(tmp_path: Path) -> None:
    """The first connection starts the server, and is answered; it notifies who started it."""
    with NotifySocket(tmp_path) as systemd:
        port = free_port()  # the program does not choose one
        command = ["systemd-socket-activate", f"--listen=127.0.0.1:{port}", "--fdname=listen"]
        command += [f"--setenv={name}={value}" for name, value in systemd.variables().items()]
        command += ["--setenv=PATH", "--setenv=PYTHONPATH", *MOORAGE, "serve"]
        command += ["--auth", "noauth2", "--database", f"sqlite:///{tmp_path}/m.sqlite"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            guard = Guard(process.pid)
            assert process.stderr is not None
            assert "Listening on" in process.stderr.readline()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
            connection.request("GET", "/readyz")
            with connection.getresponse() as answer:
                assert answer.status == 200
            systemd.wait_for("READY")
            systemd.wait_for("STATUS", lambda text: text.startswith("serving http://127.0.0.1:"))
            connection.close()
            guard.close()
            process.terminate()
            process.stderr.read()
            assert process.wait(SECONDS) == 0
