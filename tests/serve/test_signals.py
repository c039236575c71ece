"""SIGHUP reloads certificates, and stops a server in good order if its terminal was closed."""

import os
import pty
import shutil
import signal
import socket
import ssl
import sys
from pathlib import Path

from tests.e2e.support.server import MOORAGE, Server, serve
from tests.serve.wire import request, talk

HERE = Path(__file__).parent
CERTIFICATE, KEY = HERE / "tls-cert.pem", HERE / "tls-key.pem"
OTHER, OTHER_KEY = HERE / "tls-ec-cert.pem", HERE / "tls-ec-key.pem"
"""A certificate with a key of another kind."""

READ_AGAIN = "HUP: the certificate was reloaded"
SECONDS_MAX = 30


def alive(url: str) -> bool:
    """Return whether the server answers."""
    return [answer.status for answer in talk(url, request(b"GET", b"/healthz"))] == [200]


def certificate_of(url: str) -> bytes:
    """Return the certificate that a new connection gets."""
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


def install(folder: Path, certificate: Path, key: Path) -> None:
    """Replace the server's certificate and key."""
    shutil.copy(certificate, folder / "cert.pem")
    shutil.copy(key, folder / "key.pem")


def send_hup(server: Server, words: str) -> None:
    """Send SIGHUP, and wait until the server logs these words once more."""
    before = sum(words in line for line in server.said)
    os.kill(server.pid, signal.SIGHUP)
    server.wait_for(words, before + 1)


def test_hup_without_a_certificate_changes_nothing(tmp_path: Path) -> None:
    """The server logs a line, continues, and still ends in good order."""
    with serve(tmp_path / "m.sqlite") as server:
        for _ in range(2):
            send_hup(server, "HUP: there is no certificate to reload")
            assert alive(server.url)
        assert server.stop() == 0


def test_hup_reads_the_certificate_again(tmp_path: Path) -> None:
    """New connections get the new certificate, whatever its kind; an unusable one is ignored."""
    install(tmp_path, CERTIFICATE, KEY)
    old, new = (ssl.PEM_cert_to_DER_cert(path.read_text()) for path in (CERTIFICATE, OTHER))
    options = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    with serve(tmp_path / "m.sqlite", *options) as server:
        assert certificate_of(server.url) == old
        install(tmp_path, OTHER, OTHER_KEY)
        assert certificate_of(server.url) == old
        send_hup(server, READ_AGAIN)
        assert certificate_of(server.url) == new
        install(tmp_path, OTHER, KEY)
        send_hup(server, "HUP: cannot reload the certificate")
        assert certificate_of(server.url) == new
        install(tmp_path, CERTIFICATE, KEY)
        send_hup(server, READ_AGAIN)
        assert certificate_of(server.url) == old
        assert server.stop() == 0


HASTY = """
import moorage.serve.certificate
moorage.serve.certificate.LOOK_SECONDS = 0.2
from moorage.__main__ import main
main()
"""


def test_a_renewed_certificate_needs_no_signal(tmp_path: Path) -> None:
    """The files are looked at all the time; the log says once that new ones cannot be used."""
    install(tmp_path, CERTIFICATE, KEY)
    old, new = (ssl.PEM_cert_to_DER_cert(path.read_text()) for path in (CERTIFICATE, OTHER))
    command = [sys.executable, "-c", HASTY, "serve", "--listen", "127.0.0.1:0"]
    command += ["--database", f"sqlite:///{tmp_path}/m.sqlite"]
    command += ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    with Server(command) as server:
        assert certificate_of(server.url) == old
        install(tmp_path, OTHER, KEY)
        server.wait_for("the files have changed, but the old certificate stays in use")
        assert certificate_of(server.url) == old
        install(tmp_path, OTHER, OTHER_KEY)
        server.wait_for("the files have changed: the certificate was reloaded")
        assert certificate_of(server.url) == new
        (tmp_path / "key.pem").unlink()
        server.wait_for("the old certificate stays in use", 2)
        assert certificate_of(server.url) == new
        # As Kubernetes renews a Secret: the names lead to other files.
        other = tmp_path / "other"
        other.mkdir()
        install(other, CERTIFICATE, KEY)
        for name in ("cert.pem", "key.pem"):
            (tmp_path / name).unlink(missing_ok=True)
            (tmp_path / name).symlink_to(other / name)
        server.wait_for("the files have changed: the certificate was reloaded", 2)
        assert certificate_of(server.url) == old
        assert server.stop() == 0
    assert sum("stays in use" in line for line in server.said) in (2, 3)


def test_a_closed_terminal_stops_the_server_in_good_order(tmp_path: Path) -> None:
    """It exits with 0 and removes its announcement, although its output is no longer read."""
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
        os.kill(pid, signal.SIGHUP)  # this does not stop the server while the terminal exists
        while b"HUP: there is no certificate" not in said:
            said += os.read(terminal, 4096)
    finally:
        os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert not Path(f"{database}.server").exists()
    assert not Path(f"{database}-wal").exists()


def test_an_ignored_sighup_stays_ignored(tmp_path: Path) -> None:
    """A server started with `nohup` keeps ignoring SIGHUP."""
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
