"""Sockets that systemd passes to a server: which it takes, and which it refuses."""

import os
import socket
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest

from tests.e2e.support.server import MOORAGE, Server
from tests.serve.test_signals import CERTIFICATE, KEY, certificate_of
from tests.serve.wire import request, talk
from tests.systemd.systemd_double import passing

LISTEN, BOSKOS = "listen", "boskos_listen"


def held(address: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """Return a socket that listens, as systemd holds it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family)


def command(folder: Path, *options: str) -> list[str]:
    """Return the command of a server without `--listen`."""
    return [*MOORAGE, "serve", "--database", f"sqlite:///{folder}/m.sqlite", *options]


def started(folder: Path, sockets: dict[str, socket.socket], *options: str) -> Server:
    """Start a server with sockets by name."""
    numbers = [one.fileno() for one in sockets.values()]
    return Server(passing(command(folder, *options), sockets), passed=numbers)


def refused(folder: Path, sockets: dict[str, socket.socket], *options: str) -> str:
    """Return why a server does not start; the exit code is 2."""
    done = subprocess.run(
        passing(command(folder, *options), sockets),
        pass_fds=[one.fileno() for one in sockets.values()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return line


def status(url: str, path: bytes) -> int:
    """Return the status of the answer to a request."""
    return talk(url, request(b"GET", path))[0].status


@pytest.mark.parametrize("name", [LISTEN, "moorage.socket", ""])
def test_one_socket_is_for_all_clients(tmp_path: Path, name: str) -> None:
    """Whatever its name is; the default of `listen` does not count."""
    with held() as one, started(tmp_path, {name: one}, "--auth", "noauth2") as server:
        assert server.url == f"http://127.0.0.1:{one.getsockname()[1]}"
        assert status(server.url, b"/readyz") == 200


def test_two_addresses_by_name(tmp_path: Path) -> None:
    """The second one serves clients of Boskos, in any order, without the setting."""
    with held() as one, held() as two, started(tmp_path, {BOSKOS: two, LISTEN: one}) as server:
        assert server.url.endswith(f":{one.getsockname()[1]}")
        assert server.boskos_url.endswith(f":{two.getsockname()[1]}")
        assert (status(server.boskos_url, b"/metric"), status(server.url, b"/metric")) == (400, 401)


def test_only_the_second_address_is_passed(tmp_path: Path) -> None:
    """The first one is bound as its setting says."""
    with (
        held() as two,
        started(tmp_path, {BOSKOS: two}, "--listen", "127.0.0.1:0", "--auth", "noauth2") as server,
    ):
        assert server.boskos_url.endswith(f":{two.getsockname()[1]}")
        assert status(server.url, b"/readyz") == 200


def test_a_setting_that_agrees(tmp_path: Path) -> None:
    """It may say what the socket unit says, in another spelling."""
    with held("0.0.0.0") as one:
        port = one.getsockname()[1]
        with started(tmp_path, {LISTEN: one}, "--listen", f"[::]:{port}") as server:
            assert server.url == f"http://0.0.0.0:{port}"


def test_a_setting_that_contradicts(tmp_path: Path) -> None:
    """Nobody listens elsewhere than they believe."""
    with held() as one:
        port = one.getsockname()[1]
        line = refused(tmp_path, {LISTEN: one}, "--listen", "127.0.0.1:0")
        assert f"listen is 127.0.0.1:0, but systemd passes a socket on 127.0.0.1:{port}" in line
        assert "ListenStream=" in line
        assert "boskos_listen is" in refused(
            tmp_path, {BOSKOS: one}, "--boskos-listen", "127.0.0.1:0"
        )


@pytest.mark.parametrize("how", ["option", "environment", "file"])
def test_the_default_can_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Who asks for loopback is not served on all addresses, whatever the default is."""
    options, default = [], "127.0.0.1:8778"
    if how == "option":
        options = ["--listen", default]
    elif how == "environment":
        monkeypatch.setenv("MOORAGE_LISTEN", default)
    else:
        (tmp_path / "moorage.toml").write_text(f'listen = "{default}"\n')
        options = ["--config", str(tmp_path / "moorage.toml")]
    with held("0.0.0.0") as one:
        line = refused(tmp_path, {LISTEN: one}, *options)
        assert f"listen is {default}, but systemd passes a socket on 0.0.0.0:" in line


def test_a_socket_is_the_address_that_other_settings_need(tmp_path: Path) -> None:
    """Passwords and a configuration of Boskos are for the passed socket; without it, for nobody."""
    passwords, resources = tmp_path / "passwords", tmp_path / "boskos.yaml"
    passwords.write_text("ci:secret\n")
    resources.write_text("resources: [{type: t, state: free, names: [one]}]\n")
    options = ["--boskos-password-file", str(passwords), "--boskos-config", str(resources)]
    with (
        held("0.0.0.0") as two,
        started(tmp_path, {BOSKOS: two}, "--listen", "127.0.0.1:0", *options) as server,
    ):
        url = server.boskos_url.replace("0.0.0.0", "127.0.0.1")
        assert status(url, b"/metric?type=t") == 403
        basic = b"Authorization: Basic " + b64encode(b"ci:secret") + b"\r\n"
        assert talk(url, request(b"GET", b"/metric?type=t", basic))[0].status == 200
    with held() as one:
        assert "needs boskos_listen" in refused(tmp_path, {LISTEN: one}, *options)


def test_the_rules_of_addresses_hold(tmp_path: Path) -> None:
    """A public socket is as public as a public setting."""
    with held("0.0.0.0") as one:
        assert "noauth2 lets anyone in" in refused(tmp_path, {LISTEN: one}, "--auth", "noauth2")
        assert "Boskos does not authenticate" in refused(tmp_path, {BOSKOS: one})


def test_sockets_that_cannot_be_used(tmp_path: Path) -> None:
    """Each is refused with a line that says what to change in the unit."""
    with held() as one, held() as two:
        mixed = refused(tmp_path, {LISTEN: one, "boskos-listen": two})
        assert "'boskos-listen': set FileDescriptorName= of its unit to listen or" in mixed
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        unix.listen()
        assert "ListenStream= must be a port" in refused(tmp_path, {LISTEN: unix})
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        assert "ListenStream= must be a port" in refused(tmp_path, {LISTEN: datagrams})
    with held() as one, socket.create_connection(one.getsockname()) as connection:
        assert "Accept=no" in refused(tmp_path, {LISTEN: connection})


def test_two_sockets_of_one_name(tmp_path: Path) -> None:
    """A server has one address for each name."""
    with held() as one, held() as two:
        numbers = [one.fileno(), two.fileno()]
        words = passing(command(tmp_path), {LISTEN: one, "": two})
        words[words.index(f"{LISTEN}:")] = f"{LISTEN}:{LISTEN}"
        done = subprocess.run(words, pass_fds=numbers, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "systemd passes 2 sockets for listen" in done.stderr


def test_sockets_for_another_process(tmp_path: Path) -> None:
    """The variables of a parent, which was passed sockets, are not for its children."""
    environment = {**os.environ, "LISTEN_PID": "1", "LISTEN_FDS": "1"}
    words = [*command(tmp_path), "--listen", "127.0.0.1:0", "--auth", "noauth2"]
    with Server(words, environment) as server:
        assert status(server.url, b"/readyz") == 200


def test_tls(tmp_path: Path) -> None:
    """A passed socket serves HTTPS like any other."""
    options = ["--tls-cert", str(CERTIFICATE), "--tls-key", str(KEY)]
    with held() as one, started(tmp_path, {LISTEN: one}, *options) as server:
        assert server.url.startswith("https://")
        assert certificate_of(server.url)
