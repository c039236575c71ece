"""Connections count as soon as they are accepted, and their number per address is limited."""

import json
import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from moorage.config import ConfigError
from moorage.config.addresses import networks_parse
from moorage.config.settings import load
from moorage.serve.http.connection_limits import (
    HEALTH_CONNECTIONS_MAX,
    HEALTH_SECONDS_MIN,
)
from moorage.serve.http.listening import ConnectionCounter, HealthPlaces, NoPlaceError
from moorage.serve.http.proxies import HOPS_MAX, Proxies
from tests.e2e.support.carried import eventually
from tests.e2e.support.server import Server, serve
from tests.serve.wire import ANSWER_SECONDS, answers, connect, read_to_end, request, talk

HERE = Path(__file__).parents[1]
TLS = ["--tls-cert", str(HERE / "tls-cert.pem"), "--tls-key", str(HERE / "tls-key.pem")]
READYZ = request(b"GET", b"/readyz")
HEALTH = request(b"GET", b"/healthz")
ROOT = request(b"GET", b"/")
CONNECTIONS = 3


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with TLS, short timeouts and room for three connections."""
    bounds = ["--header-seconds-max", "0.5", "--connections-max", str(CONNECTIONS)]
    with serve(tmp_path_factory.mktemp("tls") / "m.sqlite", *TLS, *bounds) as server:
        yield server


def opened(server: Server) -> socket.socket:
    """Open a connection without a handshake."""
    return connect(server.url.replace("https", "http"))


def statuses(server: Server, packet: bytes = ROOT) -> list[int]:
    """Return the statuses of the answers over TLS; empty if the connection was refused."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    found = b""
    with opened(server) as plain, suppress(OSError), context.wrap_socket(plain) as connection:
        connection.sendall(packet)
        found = read_to_end(connection)
    return [answer.status for answer in answers(found)]


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"])
def test_handshakes_have_a_deadline(secured: Server, sent: bytes) -> None:
    """Clients that do not finish a handshake are disconnected after the time for headers."""
    with opened(secured) as connection:
        connection.sendall(sent)
        assert b"HTTP" not in read_to_end(connection)
    assert statuses(secured) == [200]


def statuses_beside_handshakes(server: Server, packet: bytes) -> list[int] | None:
    """Return the statuses while three connections are in a handshake; None if too late."""
    with ExitStack() as stack:
        held = [stack.enter_context(opened(server)) for _ in range(CONNECTIONS)]
        found = statuses(server, packet)
        # A place is free a moment before its connection is closed.
        over, _, _ = select.select(held, [], [], 0.1 if found == [200] else 0)
        for connection in held:
            assert read_to_end(connection) == b""
        return None if over else found  # on a busy machine they may time out first


def test_handshakes_count_as_connections(secured: Server) -> None:
    """Three connections without a handshake leave no room for a fourth until they end."""
    assert eventually(lambda: statuses_beside_handshakes(secured, ROOT)) == [503]
    eventually(lambda: statuses(secured) == [200] or None)


def test_health_is_answered_beside_handshakes(secured: Server) -> None:
    """They take all places for other requests."""
    assert eventually(lambda: statuses_beside_handshakes(secured, HEALTH)) == [200]
    eventually(lambda: statuses(secured) == [200] or None)


def test_many_broken_handshakes_leave_nothing_behind(secured: Server) -> None:
    """Handshakes that either side aborts at any point free their places."""
    for count in range(60):
        with opened(secured) as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01"[: count % 7])
            if count % 2:
                read_to_end(connection)
    eventually(lambda: statuses(secured) == [200] or None)
    with ExitStack() as stack:
        for _ in range(CONNECTIONS - 1):
            stack.enter_context(opened(secured))
        assert statuses(secured) == [200]
    assert not [line for line in secured.said if "Traceback" in line or "ERROR" in line]


def places(most: int = 10, each: int = 2, *trusted: str) -> ConnectionCounter:
    """Return a counter with small limits."""
    return ConnectionCounter(most, each, Proxies(networks_parse(trusted)))


def test_connections_per_address_are_limited() -> None:
    """Each address may have two connections; other addresses are not affected."""
    some = places()
    first = some.enter("192.0.2.1")
    some.enter("192.0.2.1")
    with pytest.raises(NoPlaceError, match=r"2 connections from one address.*per_address_max"):
        some.enter("192.0.2.1")
    some.enter("192.0.2.2")
    first.leave()
    first.leave()
    some.enter("::ffff:192.0.2.1")  # the same address on a dual-stack socket
    with pytest.raises(NoPlaceError):
        some.enter("192.0.2.1")


def test_an_ipv6_network_counts_as_one_address() -> None:
    """A client with one IPv6 address usually has a /64, which is 2**64 addresses."""
    some = places()
    some.enter("2001:db8::1")
    some.enter("2001:db8::2")
    with pytest.raises(NoPlaceError):
        some.enter("2001:db8:0:0:ffff::3")
    some.enter("2001:db8:0:1::1")


def test_proxies_and_this_machine_are_exempt() -> None:
    """A proxy carries the connections of many clients; only the total limit applies to it."""
    some = places(8, 2, "10.0.0.0/8", "2001:db8::/32")
    for host in ("127.0.0.1", "::1", "10.1.2.3", "2001:db8::9") * 2:
        some.enter(host)
    with pytest.raises(NoPlaceError, match="8 connections, the limit set by connections_max"):
        some.enter("10.1.2.3")


def test_nothing_is_kept_of_addresses_that_left() -> None:
    """Only addresses with open connections take memory."""
    some = places(1_000_000, 2)
    for n in range(10_000):
        some.enter(f"10.0.{n // 256}.{n % 256}").leave()
    assert some._counts == {}
    assert some._count == 0


def test_too_many_of_one_address_are_turned_away(tmp_path: Path) -> None:
    """The third connection of an address gets a 503 that names the setting; loopback is exempt."""
    options = ["--connections-per-address-max", "2", "--listen", "0.0.0.0:0"]
    own = own_address()
    if own is None:
        pytest.skip("this machine has loopback addresses only")
    with serve(tmp_path / "m.sqlite", *options) as server, ExitStack() as stack:
        url = server.url.replace("0.0.0.0", own)
        for _ in range(2):
            stack.enter_context(connect(url))
        (answer,) = talk(url, ROOT)
        assert answer.status == 503
        assert b"connections_per_address_max" in answer.body
        assert [talk(url, one)[0].status for one in (HEALTH, READYZ)] == [200, 200]
        loopback = server.url.replace("0.0.0.0", "127.0.0.1")
        assert [talk(loopback, HEALTH)[0].status for _ in range(3)] == [200] * 3


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose connections are all in use, by clients that are silent."""
    options = ["--connections-max", str(CONNECTIONS), "--header-seconds-max", "600"]
    options += ["--path-prefix", "/placement"]
    with (
        serve(tmp_path_factory.mktemp("full") / "m.sqlite", *options) as server,
        ExitStack() as stack,
    ):
        for _ in range(CONNECTIONS):
            stack.enter_context(connect(server.url))
        yield server


@pytest.mark.parametrize("name", [b"healthz", b"readyz"])
@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS"])
@pytest.mark.parametrize("prefix", [b"/", b"/placement/"])
def test_a_full_server_is_healthy(full: Server, prefix: bytes, method: bytes, name: bytes) -> None:
    """Otherwise its supervisor would kill it, and then all clients would connect again."""
    sent = request(method, prefix + name + b"?full", close=False)
    if method == b"HEAD":  # its answer has no body
        with connect(full.url) as connection:
            connection.sendall(sent)
            assert read_to_end(connection).startswith(b"HTTP/1.1 200 ")
    else:
        (answer,) = talk(full.url, sent, sent)
        assert answer.status == 200
        assert b"\r\nconnection: close" in answer.head.lower()


@pytest.mark.parametrize(
    "wanted",
    [
        request(b"GET", b"/"),
        request(b"GET", b"/metrics"),
        request(b"GET", b"/healthz/x"),
        request(b"GET", b"/traits?x=/healthz"),
        request(b"OPTIONS", b"*"),
        request(b"DELETE", b"/traits/healthz"),
        request(b"GET", b"/v1/pools/healthz"),
        request(b"GET", b"//healthz"),
        request(b"POST", b"/healthz"),
        request(b"GET", b"/healthz", b"Content-Length: 1\r\n", body=b"x"),
        request(b"GET", b"/readyz", b"Transfer-Encoding: chunked\r\n"),
        # The face waits for its body; it may take body_seconds_max to arrive.
        request(b"PUT", b"/v1/pools/healthz", b"Content-Length: 100\r\n"),
    ],
)
def test_a_full_server_answers_nothing_else(full: Server, wanted: bytes) -> None:
    """The refusal names the setting. A health check before it does not help."""
    (answer,) = talk(full.url, wanted)
    assert answer.status == 503
    assert b"connections_max" in answer.body
    both = request(b"GET", b"/healthz", close=False) + wanted
    assert [answer.status for answer in talk(full.url, both)] == [200]


def test_the_places_for_health_are_few_and_soon_free(full: Server) -> None:
    """Beyond them, connections are refused at once. Silent ones read why, and are closed."""
    with ExitStack() as stack:
        held = [stack.enter_context(connect(full.url)) for _ in range(HEALTH_CONNECTIONS_MAX)]
        (answer,) = talk(full.url, HEALTH)
        assert answer.status == 503
        held[0].sendall(b"GET /healthz HTTP/1.1\r\n")
        for connection in held:
            (refused,) = answers(read_to_end(connection))
            assert refused.status == 503
            assert b"connections_max" in refused.body
    assert [talk(full.url, HEALTH)[0].status for _ in range(HEALTH_CONNECTIONS_MAX + 1)] == [
        200
    ] * (HEALTH_CONNECTIONS_MAX + 1)


def health_is_answered(url: str) -> bool | None:
    """Return True; None: it is not."""
    return talk(url, HEALTH)[0].status == 200 or None


def test_silent_clients_do_not_hold_the_places_for_health(full: Server) -> None:
    """A client takes each place again that is free; health checks get one all the same."""
    with ExitStack() as stack:
        held = [stack.enter_context(connect(full.url)) for _ in range(HEALTH_CONNECTIONS_MAX)]
        eventually(lambda: health_is_answered(full.url))
        over, _, _ = select.select(held, [], [], ANSWER_SECONDS)
        assert over == held[:1], "only the oldest gives way"
        (refused,) = answers(read_to_end(over[0]))
        assert b"connections_max" in refused.body


@pytest.fixture(scope="module")
def full_secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with TLS whose connections are all in use, by clients that are silent."""
    options = [*TLS, "--connections-max", str(CONNECTIONS), "--header-seconds-max", "600"]
    with (
        serve(tmp_path_factory.mktemp("full") / "m.sqlite", *options) as server,
        ExitStack() as stack,
    ):
        for _ in range(CONNECTIONS):
            stack.enter_context(opened(server))
        yield server


@pytest.mark.parametrize("ends", ["in the handshake", "before a request", "after the answer"])
def test_clients_with_tls_do_not_hold_the_places_for_health(
    full_secured: Server, ends: str
) -> None:
    """Not even those that never confirm the end of a connection; TLS waits for that."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with ExitStack() as stack:
        for _ in range(HEALTH_CONNECTIONS_MAX):
            connection = stack.enter_context(opened(full_secured))
            if ends == "in the handshake":
                connection.sendall(b"\x16\x03\x01\x02\x00\x01")
                continue
            with suppress(OSError):  # on a busy machine an earlier one gives way
                wrapped = stack.enter_context(context.wrap_socket(connection))
                if ends == "after the answer":
                    wrapped.sendall(HEALTH)
                    assert wrapped.recv(12) == b"HTTP/1.1 200"
        eventually(lambda: statuses(full_secured, HEALTH) == [200] or None)
    assert not [line for line in full_secured.said if "Traceback" in line or "ERROR" in line]


def test_one_address_does_not_take_all_places_for_health() -> None:
    """The supervisor at another address gets one at once, however young the others are."""
    some, dropped = HealthPlaces(), list[int]()

    def enter(host: str, number: int, now: float = 0.0) -> None:
        some.enter(host, now).drop = lambda: dropped.append(number)

    for number in range(HEALTH_CONNECTIONS_MAX):
        enter(f"2001:db8::{number}", number)
    with pytest.raises(NoPlaceError):
        enter("2001:db8::1", -1)
    enter("192.0.2.2", -2)
    enter("192.0.2.2", -3)
    assert dropped == [0, 1]
    enter("2001:db8::1", -4, HEALTH_SECONDS_MIN)
    assert dropped == [0, 1, 2]


def test_many_addresses_wait_for_each_other() -> None:
    """Otherwise a crowd that connects again would not leave anybody the time for a request."""
    some = HealthPlaces()
    places = [some.enter(f"192.0.2.{number}", 0.0) for number in range(HEALTH_CONNECTIONS_MAX)]
    with pytest.raises(NoPlaceError):
        some.enter("198.51.100.1", HEALTH_SECONDS_MIN / 2)
    places[5].leave()
    places[5].leave()
    some.enter("198.51.100.1", HEALTH_SECONDS_MIN / 2)
    with pytest.raises(NoPlaceError):
        some.enter("198.51.100.2", HEALTH_SECONDS_MIN / 2)
    with pytest.raises(NoPlaceError):
        HealthPlaces(0).enter("198.51.100.1", 10.0)


def test_the_address_for_boskos_answers_no_health_checks(tmp_path: Path) -> None:
    """It has none, so nothing is accepted beyond its limit."""
    options = ["--boskos-listen", "127.0.0.1:0", "--connections-max", str(CONNECTIONS)]
    with serve(tmp_path / "m.sqlite", *options) as server, ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(connect(server.boskos_url))
        (answer,) = talk(server.boskos_url, HEALTH)
        assert answer.status == 503
        assert talk(server.url, HEALTH)[0].status == 200


def own_address() -> str | None:
    """Return an address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return None
        found: str = probe.getsockname()[0]
    return None if found.startswith("127.") else found


FORWARDED = [
    # the headers, the client in the log, the scheme of locations
    ({}, "127.0.0.1", "http"),
    ({"X-Forwarded-For": "192.0.2.7"}, "192.0.2.7", "http"),
    ({"X-Forwarded-For": "192.0.2.7, 127.0.0.9"}, "192.0.2.7", "http"),
    ({"X-Forwarded-For": "198.51.100.1, 192.0.2.7"}, "192.0.2.7", "http"),
    ({"X-Forwarded-For": "192.0.2.7:4711"}, "192.0.2.7", "http"),
    ({"X-Forwarded-For": "[2001:db8::7]:4711"}, "2001:db8::7", "http"),
    ({"X-Forwarded-For": "2001:db8::7"}, "2001:db8::7", "http"),
    ({"X-Forwarded-For": "\x1b[31m, nobody"}, "127.0.0.1", "http"),
    ({"X-Forwarded-For": "fe80::1%eth0"}, "127.0.0.1", "http"),
    ({"X-Forwarded-For": "fe80::1%\x9b31m - admin"}, "127.0.0.1", "http"),
    ({"X-Forwarded-For": "fe80::1%x, 127.0.0.9"}, "127.0.0.9", "http"),
    ({"X-Forwarded-For": ""}, "127.0.0.1", "http"),
    ({"X-Forwarded-For": "192.0.2.7" + ", 127.0.0.9" * (HOPS_MAX - 1)}, "192.0.2.7", "http"),
    ({"X-Forwarded-For": "192.0.2.7" + ", 127.0.0.9" * HOPS_MAX}, "127.0.0.9", "http"),
    ({"X-Forwarded-Proto": "https"}, "127.0.0.1", "https"),
    ({"X-Forwarded-Proto": "http, HTTPS"}, "127.0.0.1", "https"),
    ({"X-Forwarded-Proto": "javascript"}, "127.0.0.1", "http"),
]


@pytest.fixture(scope="module", params=["127.0.0.0/8", ""])
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, bool]]:
    """A server that trusts proxies on this machine, and one that trusts none."""
    options = ["--auth", "noauth2", "--log-format", "json", "--trusted-proxies", request.param]
    with serve(tmp_path_factory.mktemp("proxied") / "m.sqlite", *options) as server:
        yield server, bool(request.param)


@pytest.mark.parametrize(("headers", "client", "scheme"), FORWARDED)
def test_forwarded_clients(
    proxied: tuple[Server, bool], headers: dict[str, str], client: str, scheme: str
) -> None:
    """Only a trusted proxy may set the client and the scheme."""
    server, trusted = proxied
    raw = [f"{name}: {value}\r\n".encode("latin-1") for name, value in headers.items()]
    body = b'{"name": "%s"}' % f"n-{abs(hash(str(headers)))}".encode()
    length = b"Content-Length: %d\r\n" % len(body)
    kind = b"Content-Type: application/json\r\nOpenStack-API-Version: placement 1.19\r\n"
    sent = request(b"POST", b"/resource_providers", kind, length, *raw, body=body)
    if b"\x1b" in b"".join(raw):
        assert talk(server.url, sent)[0].status == 400
        return
    sent = sent.replace(b"OpenStack-API-Version: placement latest\r\n", b"")
    (answer,) = talk(server.url, sent)
    assert answer.status == 201, answer
    (location,) = (
        line for line in answer.head.split(b"\r\n") if line.lower().startswith(b"location:")
    )
    wanted = scheme if trusted else "http"
    assert location.split(b" ")[1].startswith(f"{wanted}://".encode())
    (request_id,) = (
        line.split(b" ")[1].decode()
        for line in answer.head.split(b"\r\n")
        if line.startswith(b"x-openstack-request-id")
    )
    (line,) = eventually(lambda: [one for one in server.said if request_id in one] or None)
    assert json.loads(line)["client"] == (client if trusted else "127.0.0.1")


@pytest.mark.parametrize("text", ["nowhere", "10.0.0.1/8", "10.0.0.0/33", "*"])
def test_trusted_proxies_are_networks(text: str) -> None:
    """Anything else is refused, because trusting too many addresses is dangerous."""
    with pytest.raises(ConfigError, match=r"trusted_proxies: .* is not a network"):
        load({"trusted_proxies": text}, {})
