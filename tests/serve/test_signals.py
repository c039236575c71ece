"""HUP: it reads certificates again, stops a server whose terminal was closed, and kills none."""

import os
import pty
import shutil
import signal
import socket
import ssl
from pathlib import Path

from tests.e2e.support.server import MOORAGE, Server, serve
from tests.serve.wire import request, talk

HERE = Path(__file__).parent
CERTIFICATE, KEY = HERE / "tls-cert.pem", HERE / "tls-key.pem"
OTHER, OTHER_KEY = HERE / "tls-ec-cert.pem", HERE / "tls-ec-key.pem"
"""With a key of another kind."""

READ_AGAIN = "HUP: the certificate was reloaded"
SECONDS_MAX = 30


def alive(url: str) -> bool:
    """Does it still answer?"""
    return [answer.status for answer in talk(url, request(b"GET", b"/healthz"))] == [200]


def shown(url: str) -> bytes:
    """Return the certificate that a new connection is shown."""
    host, port = url.removeprefix("https://").split(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((host, int(port)), SECONDS_MAX) as plain,
        context.wrap_socket(plain) as secured,
    ):
        found = secured.getpeercert(binary_form=True)
    assert found is not None
    return found


def put(folder: Path, certificate: Path, key: Path) -> None:
    """Put a certificate and its key where the server has its own."""
    shutil.copy(certificate, folder / "cert.pem")
    shutil.copy(key, folder / "key.pem")


def heard(server: Server, words: str) -> None:
    """Send HUP, and wait until the server has said that it was heard, as often as it was sent."""
    before = sum(words in line for line in server.said)
    os.kill(server.pid, signal.SIGHUP)
    server.wait_for(words, before + 1)


def test_hup_without_a_certificate_changes_nothing(tmp_path: Path) -> None:
    """It goes on serving, says so in a line, and still ends in good order."""
    with serve(tmp_path / "m.sqlite") as server:
        for _ in range(2):
            heard(server, "HUP: there is no certificate to reload")
            assert alive(server.url)
        assert server.stop() == 0


def test_hup_reads_the_certificate_again(tmp_path: Path) -> None:
    """New connections are shown the new one, whatever its kind; one that cannot be used is not."""
    put(tmp_path, CERTIFICATE, KEY)
    old, new = (ssl.PEM_cert_to_DER_cert(path.read_text()) for path in (CERTIFICATE, OTHER))
    options = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    with serve(tmp_path / "m.sqlite", *options) as server:
        assert shown(server.url) == old
        put(tmp_path, OTHER, OTHER_KEY)
        assert shown(server.url) == old
        heard(server, READ_AGAIN)
        assert shown(server.url) == new
        put(tmp_path, OTHER, KEY)
        heard(server, "HUP: cannot reload the certificate")
        assert shown(server.url) == new
        put(tmp_path, CERTIFICATE, KEY)
        heard(server, READ_AGAIN)
        assert shown(server.url) == old
        assert server.stop() == 0


def test_a_closed_terminal_stops_it_in_good_order(tmp_path: Path) -> None:
    """Though nobody reads what it says any more: exit code 0, and the announcement is withdrawn."""
    database = tmp_path / "m.sqlite"
    pid, terminal = pty.fork()
    if not pid:
        url = f"sqlite:///{database}"
        command = [*MOORAGE, "serve", "--listen", "127.0.0.1:0", "--database", url]
        os.execv(command[0], command)
    try:
        said = b""
        while b"moorage: serving" not in said:
            said += os.read(terminal, 4096)
        assert Path(f"{database}.server").exists()
        os.kill(pid, signal.SIGHUP)  # as long as the terminal is there, that stops nothing
        while b"HUP: there is no certificate" not in said:
            said += os.read(terminal, 4096)
    finally:
        os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert not Path(f"{database}.server").exists()
    assert not Path(f"{database}-wal").exists()


def test_nohup_stays_nohup(tmp_path: Path) -> None:
    """Whoever has HUP ignored for the server wants it to be ignored."""
    database = f"sqlite:///{tmp_path}/m.sqlite"
    command = [*MOORAGE, "serve", "--listen", "127.0.0.1:0", "--database", database]
    with Server(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *command]) as server:
        ignored = int(
            next(
                line.split()[1]
                for line in Path(f"/proc/{server.pid}/status").read_text().splitlines()
                if line.startswith("SigIgn:")
            ),
            16,
        )
        assert ignored & 1 << (signal.SIGHUP - 1)
        os.kill(server.pid, signal.SIGHUP)
        assert alive(server.url)
        assert server.stop() == 0
