"""Every hostile request of the table gets the expected answers, and all leave nothing behind."""

import json
import re
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from tests.e2e.support.server import Server, serve
from tests.serve.probes import PROBES, SECOND_DOOR, SQL, Probe, json_request, lease
from tests.serve.wire import Answer, answers, connect, read_to_end, request, talk

HERE = Path(__file__).parent
ROUNDS = 3
GROWTH_MAX = 20 << 20
BOSKOS = "resources:\n- {type: t, state: free, names: [slot]}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with both addresses, a pool and a slot."""
    folder = tmp_path_factory.mktemp("probes")
    (folder / "boskos.yaml").write_text(BOSKOS)
    options = ["--auth", "noauth2", "--boskos-listen", "127.0.0.1:0", "--header-seconds-max", "2"]
    options += ["--body-seconds-max", "2", "--boskos-config", str(folder / "boskos.yaml")]
    with serve(folder / "m.sqlite", *options) as running:
        made = json_request(b"PUT", b"/v1/pools/probes", {"limit": 1, "pacing": None})
        assert talk(running.url, made)[0].status in (200, 201)
        yield running


def exchanged(url: str, probe: Probe) -> list[Answer]:
    """Send a probe, or as much of it as the server accepts, and return all answers."""
    with connect(url) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):  # the server may refuse it before all of it is sent
            connection.sendall(probe.sent)
            if probe.half:
                connection.shutdown(socket.SHUT_WR)
        return answers(read_to_end(connection))


def statuses(url: str, probe: Probe) -> tuple[int, ...]:
    """Return the statuses of the answers to a probe."""
    return tuple(answer.status for answer in exchanged(url, probe))


@pytest.mark.parametrize("probe", PROBES, ids=[probe.name for probe in PROBES])
def test_probes(server: Server, probe: Probe) -> None:
    """Each probe gets exactly the answers of its row, within seconds."""
    assert statuses(server.url, probe) == probe.statuses


@pytest.mark.parametrize("probe", SECOND_DOOR, ids=[probe.name for probe in SECOND_DOOR])
def test_probes_of_the_second_address(server: Server, probe: Probe) -> None:
    """The same holds at the address for clients of Boskos, which needs no token."""
    assert statuses(server.boskos_url, probe) == probe.statuses


def test_no_answer_is_html(server: Server) -> None:
    """A browser never shows content of a request as a page."""
    for probe in PROBES:
        for answer in exchanged(server.url, probe) if len(probe.sent) < 50_000 else ():
            kind = re.search(rb"content-type: (\S+)", answer.head.lower())
            assert kind is None or not kind[1].startswith(b"text/html"), probe.name


def test_answers_stay_out_of_caches(server: Server) -> None:
    """The native API forbids caching and sniffing; Placement's headers are the original's."""
    for path in (b"/v1/tokens", b"/v1/leases", b"/v1/openapi.json", b"/v1/none", b"/healthz"):
        (answer,) = talk(server.url, request(b"GET", path))
        assert b"\r\ncache-control: no-store\r\n" in answer.head + b"\r\n", path
        assert b"\r\nx-content-type-options: nosniff\r\n" in answer.head + b"\r\n", path
    (answer,) = talk(server.url, request(b"GET", b"/traits"))
    assert b"nosniff" not in answer.head


def test_together_they_leave_nothing_behind(server: Server) -> None:
    """However often they are sent, memory does not grow and the ledger and the log stay clean."""
    rows = [(server.url, probe) for probe in PROBES]
    rows += [(server.boskos_url, probe) for probe in SECOND_DOOR]

    def round_of_all() -> int:
        with ThreadPoolExecutor(8) as threads:
            for probe, found in zip(
                rows, threads.map(lambda row: statuses(*row), rows), strict=True
            ):
                assert all(status < 500 or status == 505 for status in found), probe
        return server.resident()

    before = round_of_all()
    after = [round_of_all() for _ in range(ROUNDS)][-1]
    assert after - before < GROWTH_MAX
    assert talk(server.url, request(b"GET", b"/healthz"))[0].status == 200
    (check,) = talk(server.url, json_request(b"POST", b"/v1/database/check", {}))
    assert json.loads(check.body)["differences"] == []
    (named,) = talk(server.url, request(b"GET", b"/resource_providers"))
    assert SQL in {one["name"] for one in json.loads(named.body)["resource_providers"]}
    assert not [line for line in server.said if "Traceback" in line or " ERROR " in line]
    assert all(line.rstrip("\n").isprintable() for line in server.said)


VERSIONS = {
    "TLS 1.0": (ssl.TLSVersion.TLSv1, False),
    "TLS 1.1": (ssl.TLSVersion.TLSv1_1, False),
    "TLS 1.2": (ssl.TLSVersion.TLSv1_2, True),
    "TLS 1.3": (ssl.TLSVersion.TLSv1_3, True),
}


@pytest.mark.parametrize(("version", "served"), VERSIONS.values(), ids=VERSIONS)
def test_versions_of_tls(tmp_path: Path, version: ssl.TLSVersion, served: bool) -> None:
    """Broken versions are refused, though this client offers them as far as its library permits."""
    tls = ["--tls-cert", str(HERE / "tls-cert.pem"), "--tls-key", str(HERE / "tls-key.pem")]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning) if version < ssl.TLSVersion.TLSv1_2 else nullcontext():
        context.minimum_version = version
        context.maximum_version = version
    with serve(tmp_path / "m.sqlite", *tls) as server:
        with connect(server.url.replace("https", "http")) as plain:
            try:
                with context.wrap_socket(plain) as connection:
                    connection.sendall(request(b"GET", b"/healthz"))
                    found = answers(read_to_end(connection))
            except (ssl.SSLError, ConnectionError):
                found = []
        assert [answer.status for answer in found] == ([200] if served else [])
        assert server.stop() == 0
        assert not [line for line in server.said if "Traceback" in line]


def test_the_undamaged_request_is_valid() -> None:
    """A control: the request that the probes damage names the pool of the fixture."""
    assert lease()["needs"] == [{"pool": "probes", "units": 1}]
