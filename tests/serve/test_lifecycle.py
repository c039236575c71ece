"""The server's process: how it starts, what it announces and how it ends."""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import refusal
from tests.e2e.support.server import MOORAGE, Server, serve
from tests.serve.wire import answers, connect, read_to_end, request, talk

HERE = Path(__file__).parent
JSON = b"Content-Type: application/json\r\n"
READY = re.compile(
    r"moorage: serving http://127\.0\.0\.1:\d+ \(sqlite /\S+/moorage\.sqlite, revision 0\)\n"
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The path of the future database."""
    return tmp_path / "moorage.sqlite"


def status(url: str, path: bytes, *headers: bytes, method: bytes = b"GET") -> int:
    """Return the status of the answer to a request."""
    return talk(url, request(method, path, *headers))[0].status


def test_start_and_end(database: Path) -> None:
    """It prints a line when ready; SIGTERM and SIGINT end it with 0 and remove the announcement."""
    for how in (signal.SIGTERM, signal.SIGINT):
        with serve(database, "--no-access-log") as server:
            assert any(READY.fullmatch(line) for line in server.said), server.said
            announced = json.loads(Path(f"{database}.server").read_text())
            assert (announced["url"], announced["pid"]) == (server.url, server.pid)
            assert server.stop(how) == 0
        assert not Path(f"{database}.server").exists()


def test_health(database: Path) -> None:
    """Health, readiness and metrics need no token; methods other than GET are limited."""
    with serve(database) as server:
        for path in (b"/healthz", b"/readyz", b"/metrics"):
            sent = b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            assert [answer.status for answer in talk(server.url, sent)] == [200]
            assert status(server.url, path, method=b"POST") == 405
            for method in (b"HEAD", b"OPTIONS"):
                assert status(server.url, path, method=method) == 200
            as_haproxy = b"OPTIONS " + path + b" HTTP/1.0\r\n\r\n"
            assert [answer.status for answer in talk(server.url, as_haproxy)] == [200]
            assert status(server.url, path + b"/more") == 404


def test_metrics_count_requests(database: Path) -> None:
    """The metrics count answered requests and changes of the ledger."""
    with serve(database, "--auth", "noauth2") as server:
        assert status(server.url, b"/traits/CUSTOM_X", method=b"PUT") == 201
        assert status(server.url, b"/traits/CUSTOM_Y") == 404
        (answer,) = talk(server.url, request(b"GET", b"/metrics"))
        shown = dict(
            line.rsplit(" ", 1) for line in answer.body.decode().splitlines() if line[0] != "#"
        )
        counted = 'moorage_http_requests_total{face="placement",method="%s",status="%s"}'
        assert shown[counted % ("PUT", "201")] == "1.0"
        assert shown[counted % ("GET", "404")] == "1.0"
        assert shown["moorage_changes_total"] == "1.0"
        assert shown["moorage_revision"] == "1.0"
        assert shown['moorage_http_request_seconds_count{face="placement"}'] == "2.0"


def test_long_polls_are_not_counted_as_latency(database: Path) -> None:
    """Long polls have a separate histogram; those that did not have to wait are not in it."""

    def ask(method: bytes, path: bytes, body: bytes = b"") -> int:
        length = b"Content-Length: %d\r\n" % len(body)
        return talk(server.url, request(method, path, JSON, length, body=body))[0].status

    def counts(name: str) -> dict[str, float]:
        (answer,) = talk(server.url, request(b"GET", b"/metrics"))
        found = re.findall(name + r'_count\{face="v1"\} (\S+)', answer.body.decode())
        total = re.findall(name + r'_sum\{face="v1"\} (\S+)', answer.body.decode())
        return {"count": sum(map(float, found)), "seconds": sum(map(float, total))}

    with serve(database, "--auth", "noauth2") as server:
        lease = b'{"needs": [{"pool": "p"}], "key": "%s"}'
        assert ask(b"PUT", b"/v1/pools/p", b'{"limit": 1}') == 200
        assert ask(b"POST", b"/v1/leases?wait=30", lease % b"a") == 201
        assert counts("moorage_http_request_seconds")["count"] == 2
        assert counts("moorage_http_wait_seconds") == {"count": 0, "seconds": 0}
        assert ask(b"POST", b"/v1/leases?wait=0.6", lease % b"b") == 202
        assert ask(b"GET", b"/v1/watch?wait=0.6") == 200
        assert counts("moorage_http_request_seconds")["count"] == 2
        waits = counts("moorage_http_wait_seconds")
        assert waits["count"] == 2
        assert waits["seconds"] >= 1.2


def test_accepted_requests_are_finished(database: Path) -> None:
    """A request that began before the signal is answered; new ones are not accepted."""
    with serve(database, "--auth", "noauth2") as server:
        with connect(server.url) as connection:
            body = b'{"name": "host"}'
            length = b"Content-Length: %d\r\n" % len(body)
            head = request(b"POST", b"/resource_providers", JSON, length, close=False)
            connection.sendall(head + body[:-1])
            assert (
                status(server.url, b"/") == 200
            )  # then the first connection has been accepted, too
            os.kill(server.pid, signal.SIGTERM)
            until_refused(server.url)
            connection.sendall(body[-1:])
            (answer,) = answers(read_to_end(connection))
            assert answer.status == 200
            assert b"connection: close" in answer.head
        assert server.process.wait(10) == 0


def until_refused(url: str) -> None:
    """Return once the server accepts no more connections."""
    with contextlib.suppress(ConnectionError):
        while True:
            connect(url).close()


def test_requests_that_never_end_are_abandoned(database: Path) -> None:
    """A client that does not finish its request does not keep the process from ending."""
    options = ("--auth", "noauth2", "--stop-seconds-max", "0.5")
    with serve(database, *options) as server, connect(server.url) as connection:
        connection.sendall(request(b"POST", b"/resource_providers", JSON, b"Content-Length: 9\r\n"))
        assert status(server.url, b"/") == 200
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 5


def test_first_start_creates_the_administrators_token(database: Path) -> None:
    """The first start creates a token that only its user can read; later starts create none.

    The database does not contain it.
    """
    file = Path(f"{database}.token")
    with serve(database) as server:
        secret = file.read_text().strip()
        assert file.stat().st_mode & 0o777 == 0o600
        sent = b"GET /traits HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n\r\n"
        latest = b"OpenStack-API-Version: placement latest\r\n"
        for token in (b"X-Auth-Token: ", b"Authorization: Bearer "):
            header = latest + token + secret.encode()
            assert [answer.status for answer in talk(server.url, sent % header)] == [200]
        wrong = latest + b"X-Auth-Token: moorage_" + b"A" * 43
        (refused,) = talk(server.url, sent % wrong)
        assert refused.status == 401
        # The openstack client reads `errors` of every refusal, or fails with a KeyError.
        (error,) = json.loads(refused.body)["errors"]
        assert error["detail"] == "The token that was shown is not valid here."
        (refused,) = talk(server.url, sent % latest.rstrip())
        assert refused.status == 401
        assert set(json.loads(refused.body)) == {"message", "code", "title"}  # like the original
    for path in database.parent.glob("moorage.sqlite*"):
        assert path == file or secret.encode() not in path.read_bytes()
    file.unlink()
    with serve(database) as server:
        assert not file.exists()


def test_only_one_process_has_the_database(database: Path) -> None:
    """A second server on the same database exits with 2 and names the reason."""
    with serve(database):
        line = refusal(2, "serve", "--database", f"sqlite:///{database}", "--listen", "127.0.0.1:0")
        assert "in use by another process" in line


def test_an_address_in_use_is_named(database: Path) -> None:
    """If the port is in use, the start exits with 2 and one line."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        line = refusal(2, "serve", "--database", f"sqlite:///{database}", "--listen", where)
    assert where in line
    assert "--listen" in line
    assert "MOORAGE_LISTEN" in line
    assert not database.exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--auth", "noauth2", "--listen", "0.0.0.0:0"], "--insecure"),
        (["--testing"], "noauth2"),
        (
            ["--testing", "--auth", "noauth2", "--insecure-noauth2", "--listen", "0.0.0.0:0"],
            "loopback",
        ),
        (["--auth", "keystone"], "keystone_url"),
        (["--tls-cert", "x.pem"], "tls_key"),
        (["--listen", "nowhere"], "HOST:PORT"),
        (["--queue-max", "0"], "queue_max"),
        (["--database", "mysql://x"], "sqlite:///PATH"),
        (["--listen", "127.0.0.1:0", "--tls-cert", "x.pem", "--tls-key", "x.pem"], "tls_cert"),
        (["--listen", "no.such.host.invalid:0"], "not an address"),
    ],
)
def test_wrong_settings_say_what_to_change(tmp_path: Path, options: list[str], word: str) -> None:
    """With an impossible setting the start exits with 2 and one line that helps."""
    anywhere = ["--listen", "127.0.0.1:0"]  # the last --listen counts
    assert word in refusal(2, "serve", *anywhere, *options, directory=tmp_path)


def test_noauth2_where_others_can_reach_it(database: Path) -> None:
    """With --insecure-noauth2 the server accepts the test scheme on every address."""
    options = ["--auth", "noauth2", "--insecure-noauth2", "--listen", "0.0.0.0:0"]
    with serve(database, *options) as server:
        assert server.url.startswith("http://0.0.0.0:")
        announced = json.loads(Path(f"{database}.server").read_text())
        assert announced["url"] == server.url.replace("0.0.0.0", "127.0.0.1")
        assert status(announced["url"], b"/traits") == 200
        assert server.stop() == 0


def test_reset_exists_for_tests_only(database: Path) -> None:
    """Without --testing the reset is an unknown address."""
    reset = b"/_testing/reset"
    with serve(database, "--auth", "noauth2") as server:
        assert status(server.url, b"/traits/CUSTOM_X", method=b"PUT") == 201
        assert status(server.url, reset, method=b"POST") == 404
        assert status(server.url, b"/traits/CUSTOM_X") == 204
    with serve(database, "--auth", "noauth2", "--testing") as server:
        assert status(server.url, reset, method=b"POST") == 204
        assert status(server.url, b"/traits/CUSTOM_X") == 404


def test_profile_can_be_switched_for_tests(database: Path) -> None:
    """The test-only face changes the policy profile at once."""
    body = b'{"policy": "open"}'
    length = b"Content-Length: %d\r\n" % len(body)
    nobody = b"X-Roles: nobody\r\n"
    with serve(database, "--auth", "noauth2", "--testing") as server:
        assert status(server.url, b"/traits", nobody) == 403
        sent = request(b"POST", b"/_testing/reset", JSON, length, body=body)
        assert [answer.status for answer in talk(server.url, sent)] == [204]
        assert status(server.url, b"/traits", nobody) == 200


def test_open_files_are_raised(database: Path) -> None:
    """The limit of open files is raised to fit all permitted connections."""
    with serve(database) as server:
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        assert soft >= (12_064 if hard == resource.RLIM_INFINITY else min(12_064, hard))


@pytest.mark.parametrize("doors", [1, 2])
def test_too_few_open_files_are_reported_once(database: Path, doors: int) -> None:
    """However many addresses are served, one line names the limit that would suffice."""
    few = ("sh", "-c", 'ulimit -n 1024 && exec "$@"', "sh", *MOORAGE)
    second = ["--boskos-listen", "127.0.0.1:0"] if doors == 2 else []
    with serve(database, *second, moorage=few) as server:
        server.wait_for("limit of open files")
        server.stop()
        told = [line for line in server.said if "limit of open files" in line]
    assert len(told) == 1
    assert f"only {(1024 - 64) // doors - 32} connections per address" in told[0]
    assert f"limit of open files is 1024, raise it to {12_032 * doors + 64}" in told[0]


def test_logs_are_lines_or_json(database: Path) -> None:
    """Every answered request is logged in a line with its request id, as text or as JSON."""
    for form in ("line", "json"):
        with serve(database, "--auth", "noauth2", "--log-format", form) as server:
            (answer,) = talk(server.url, request(b"GET", b"/traits?name=in:A"))
            (request_id,) = re.findall(rb"x-openstack-request-id: (\S+)", answer.head)
            server.stop()
        (line,) = [line for line in server.said if request_id.decode() in line]
        if form == "json":
            shown = json.loads(line)
            assert shown["target"] == "/traits?name=in:A"
            assert (shown["caller"], shown["method"], shown["status"]) == ("user:admin", "GET", 200)
        else:
            assert f'{request_id.decode()} 127.0.0.1 user:admin "GET /traits?name=in:A" 200' in line


def on_a_faulty_disk(database: Path, trigger: Path) -> Server:
    """Start a server whose disk fails while TRIGGER.sync or TRIGGER.read exists."""
    command = [sys.executable, str(HERE / "faulty_server.py"), str(trigger), "serve"]
    where = ["--listen", "127.0.0.1:0", "--database", f"sqlite:///{database}"]
    return Server([*command, *where, "--auth", "noauth2"])


def test_a_failed_sync_ends_the_process(database: Path, tmp_path: Path) -> None:
    """When the disk cannot confirm a write, nothing is acknowledged and the process ends."""
    with on_a_faulty_disk(database, tmp_path / "disk") as server:
        assert status(server.url, b"/traits/CUSTOM_BEFORE", method=b"PUT") == 201
        (tmp_path / "disk.sync").touch()
        assert talk(server.url, request(b"PUT", b"/traits/CUSTOM_LOST")) == []
        assert server.process.wait(10) == 1
        server.stop()
        assert any("stopping at once" in line for line in server.said)
    with serve(database, "--auth", "noauth2") as server:
        assert status(server.url, b"/traits/CUSTOM_BEFORE") == 204


def test_a_disk_that_cannot_be_read(database: Path, tmp_path: Path) -> None:
    """While rows cannot be read the server is not ready and answers 503; then it continues.

    It logs the reason once, and does not return it.
    """
    consumer = b"/allocations/11111111-2222-4333-8444-555555555555"
    with on_a_faulty_disk(database, tmp_path / "disk") as server:
        (tmp_path / "disk.read").touch()
        assert status(server.url, consumer) == 503
        for _ in range(3):
            (answer,) = talk(server.url, request(b"GET", b"/readyz"))
            assert (answer.status, answer.body) == (503, b"the database cannot be read\n")
        server.wait_for("not ready: the database cannot be read: ")
        assert sum("not ready: the database cannot be read: " in line for line in server.said) == 1
        assert status(server.url, b"/healthz") == 200
        (tmp_path / "disk.read").unlink()
        assert status(server.url, consumer) == 200
        assert status(server.url, b"/readyz") == 200


def test_silent_connections_are_probed(database: Path) -> None:
    """The kernel checks whether the other end of a silent connection still exists."""
    with serve(database) as server, connect(server.url) as connection:
        ours, theirs = (
            f":{port:04X}" for port in (connection.getsockname()[1], connection.getpeername()[1])
        )
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        (timer,) = (row[5] for row in rows if row[1].endswith(theirs) and row[2].endswith(ours))
        assert timer.startswith("02:")  # 02: a keep-alive timer


def test_a_readable_token_file_is_reported(database: Path) -> None:
    """The server continues, because it does not need the file, and logs the wrong mode."""
    with serve(database, "--no-access-log") as server:
        assert not [line for line in server.said if "WARNING" in line]
    Path(f"{database}.token").chmod(0o644)
    with serve(database, "--no-access-log") as server:
        server.wait_for(f"{database}.token has the mode 0644")
