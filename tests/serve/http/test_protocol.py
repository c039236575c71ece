"""The HTTP connection with clients that send too much, too slowly, or ambiguous requests."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.support.carried import eventually
from tests.e2e.support.server import serve
from tests.serve.wire import (
    ADMIN,
    HOST,
    LATEST,
    answers,
    connect,
    read_to_end,
    request,
    talk,
)

CHUNKED = b"Transfer-Encoding: chunked\r\n"
JSON = b"Content-Type: application/json\r\n"
PROVIDERS = b"/resource_providers"
SMUGGLED = request(b"PUT", b"/traits/CUSTOM_SMUGGLED")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with tight bounds."""
    bounds = ("--header-bytes-max", "8192", "--query-bytes-max", "4096", "--header-count-max", "20")
    database = tmp_path_factory.mktemp("protocol") / "moorage.sqlite"
    with serve(database, "--auth", "noauth2", *bounds) as server:
        yield server.url


def exists(url: str, trait: bytes) -> bool:
    """Return whether the trait exists."""
    return talk(url, request(b"GET", b"/traits/" + trait))[0].status == 204


AMBIGUOUS = {
    "length and chunked": b"Content-Length: 5\r\n" + CHUNKED,
    "chunked and length": CHUNKED + b"Content-Length: 5\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n",
    "two equal lengths": b"Content-Length: 5\r\nContent-Length: 5\r\n",
    "negative length": b"Content-Length: -5\r\n",
    "length with a sign": b"Content-Length: +5\r\n",
    "list of lengths": b"Content-Length: 5, 5\r\n",
    "two lengths in one": b"Content-Length: 5 5\r\n",
    "hexadecimal length": b"Content-Length: 0x5\r\n",
    "empty length": b"Content-Length:\r\n",
    "overflowing length": b"Content-Length: 99999999999999999999999\r\n",
    "letters and chunked": b"Content-Length: hi mom\r\n" + CHUNKED,
    "letters and a number": b"Content-Length: hi mom\r\nContent-Length: 5\r\n",
    "letters twice": b"Content-Length: hi mom\r\nContent-Length: hi mom\r\n",
    "letters and digits": b"Content-Length: hi 5\r\n",
    "folded letters": b"Content-Length: hi\r\n mom\r\n",
    "space before colon": b"Transfer-Encoding : chunked\r\n",
    "space before the colon of letters": b"Content-Length : hi mom\r\n",
    "space before name": b" Transfer-Encoding: chunked\r\n",
    "folded line": b"A: b\r\n c\r\n",
    "folded encoding": b"Transfer-Encoding:\r\n chunked\r\n",
    "misspelt encoding": b"Transfer-Encoding: xchunked\r\n",
    "vertical tab": b"Transfer-Encoding: \x0bchunked\r\n",
    "quoted encoding": b'Transfer-Encoding: "chunked"\r\n',
    "chunked then identity": b"Transfer-Encoding: chunked, identity\r\n",
    "compressed then chunked": b"Transfer-Encoding: gzip, chunked\r\n",
    "two encodings": b"Transfer-Encoding: identity\r\n" + CHUNKED,
    "bare line feed": b"A: b\n",
    "bare carriage return": b"A: b\rC: d\r\n",
    "NUL in a value": b"A: b\x00c\r\n",
    "line without colon": b"Abc\r\n",
    "two hosts": b"Host: localhost\r\n",
}


@pytest.mark.parametrize("headers", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_ambiguous_requests_are_refused(url: str, headers: bytes) -> None:
    """A request that two parsers could read differently gets a 400 and a closed connection.

    Bytes after it are never read as a request.
    """
    start = b"POST /traits HTTP/1.1\r\n" + HOST + ADMIN + LATEST
    for packets in ([start + headers + b"\r\n" + SMUGGLED], [start + headers + b"\r\n", SMUGGLED]):
        assert [answer.status for answer in talk(url, *packets)] == [400]
    assert not exists(url, b"CUSTOM_SMUGGLED")


def test_length_of_letters_is_answered_by_placement(url: str) -> None:
    """A Content-Length of letters gets Placement's own 400, and nothing after it is read."""
    body = b'{"name": "n"}'
    for path, method in ((b"/", b"GET"), (PROVIDERS, b"POST")):
        sent = request(method, path, JSON, b"Content-Length: hi mom\r\n", body=body, close=False)
        (answer,) = talk(url, sent + SMUGGLED)
        assert answer.status == 400
        (error,) = json.loads(answer.body)["errors"]
        assert "content-length header must be an integer" in error["detail"]
        assert b"connection: close" in answer.head
    assert not exists(url, b"CUSTOM_SMUGGLED")


def test_length_of_letters_reaches_no_other_face(url: str) -> None:
    """Faces that do not check the length themselves never get such a request."""
    (answer,) = talk(url, request(b"GET", b"/healthz", b"Content-Length: hi mom\r\n"))
    assert answer.status == 400


@pytest.mark.parametrize(
    "chunk",
    [b"zz\r\n", b"5 \r\nhello\r\n", b"0x5\r\nhello\r\n", b"5\nhello\r\n", b"f" * 17 + b"\r\n"],
)
def test_broken_chunks_stop_the_request(url: str, chunk: bytes) -> None:
    """A request whose body is malformed in the same packet is not executed."""
    assert talk(url, request(b"PUT", b"/traits/CUSTOM_KEPT"))[0].status in (201, 204)
    sent = request(b"DELETE", b"/traits/CUSTOM_KEPT", CHUNKED, body=chunk)
    assert [answer.status for answer in talk(url, sent)] == [400]
    assert exists(url, b"CUSTOM_KEPT")


def test_trailers_never_become_headers(url: str) -> None:
    """A trailer that claims a role has no effect, in one packet or in several."""
    head = (
        b"PUT /traits/CUSTOM_TRAILED HTTP/1.1\r\nX-Auth-Token: nobody\r\nConnection: close\r\n"
        + HOST
        + LATEST
        + CHUNKED
        + b"\r\n"
    )
    for packets in (
        [head + b"0\r\nX-Roles: admin\r\n\r\n"],
        [head, b"0\r\nX-Roles: admin\r\n\r\n"],
    ):
        assert [answer.status for answer in talk(url, *packets)] == [403]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request(b"GET", b"/", b"A: " + b"b" * 9000 + b"\r\n"), 431),
        (request(b"GET", b"/?" + b"b" * 9000), 431),
        (request(b"GET", b"/", b"A: b\r\n" * 30), 431),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 20_000, 431),
        (b"\r\n" * 10_000, 431),
        (request(b"POST", PROVIDERS, JSON, CHUNKED, body=b"0\r\nA: " + b"b" * 300_000), 431),
        (request(b"GET", b"/resource_providers?name=" + b"b" * 5000), 414),
        (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET http://localhost HTTP/1.1\r\n" + HOST + b"\r\n", 421),
        (b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"FETCH / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ],
)
def test_bounds_of_the_head(url: str, sent: bytes, status: int) -> None:
    """Heads that are too long, have too many headers or are not HTTP/1 end the connection."""
    with connect(url) as connection:
        with suppress(ConnectionError):  # the server may refuse it before all of it is sent
            connection.sendall(sent)
        assert [answer.status for answer in answers(read_to_end(connection))] == [status]


@pytest.mark.parametrize(
    ("host", "target", "status"),
    [
        (b"localhost", b"/", 200),
        (b"LocalHost.:1234", b"/", 200),
        (b"127.0.0.1:80", b"/", 200),
        (b"[::1]:80", b"/", 200),
        (b"192.0.2.7:80", b"/", 200),
        (b"192.0.2.7.evil.example", b"/", 421),
        (b"[evil.example]", b"/", 421),
        (b"localhost", b"http://127.0.0.1/", 200),
        (b"evil.example", b"/", 421),
        (b"localhost.evil.example", b"/", 421),
        (b"localhost@evil.example", b"/", 421),
        (b"localhost", b"http://evil.example/", 421),
        (b"", b"/", 421),
    ],
)
def test_only_our_host_names_are_served(url: str, host: bytes, target: bytes, status: int) -> None:
    """Other host names are refused, because a web page may point its own name at this server."""
    sent = b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host)
    assert [answer.status for answer in talk(url, sent)] == [status]


def test_more_host_names_can_be_allowed(tmp_path: Path) -> None:
    """The setting allowed_hosts adds names; `*` allows all."""
    for allowed, status in (("other.example,moorage.example", 200), ("*", 200), ("a.example", 421)):
        with serve(tmp_path / "moorage.sqlite", "--allowed-hosts", allowed) as server:
            sent = b"GET / HTTP/1.1\r\nHost: moorage.example\r\nConnection: close\r\n\r\n"
            assert [answer.status for answer in talk(server.url, sent)] == [status]


def test_pipelined_requests_are_answered_in_order(url: str) -> None:
    """Requests that arrive together are answered one after the other."""
    sent = [
        request(b"PUT", b"/traits/CUSTOM_PIPED", close=False),
        request(b"GET", b"/traits/CUSTOM_PIPED", close=False),
        request(b"GET", b"/traits/CUSTOM_NOT_THERE"),
    ]
    assert [answer.status for answer in talk(url, b"".join(sent))] == [201, 204, 404]


def test_refusal_waits_for_the_answers_before_it(url: str) -> None:
    """A bad request after good ones is refused only after they have their own answers."""
    good = request(b"PUT", b"/traits/CUSTOM_FIRST", close=False)
    for bad in (b"garbage\r\n\r\n", request(b"POST", b"/traits", CHUNKED, body=b"zz\r\n")):
        assert [answer.status for answer in talk(url, good + bad)] in ([201], [204])
        assert [answer.status for answer in talk(url, good + good + bad)] == [204, 204]
    assert exists(url, b"CUSTOM_FIRST")


def test_refusal_after_an_answer_is_an_answer(url: str) -> None:
    """On an idle connection a bad request is refused just like a first one."""
    with connect(url) as connection:
        connection.sendall(request(b"GET", b"/", close=False))
        first = b""
        while not first.endswith(b"}"):
            first += connection.recv(65536)
        connection.sendall(b"garbage\r\n\r\n")
        assert [answer.status for answer in answers(read_to_end(connection))] == [400]


def test_offers_to_change_protocols_are_ignored(url: str) -> None:
    """An upgrade is answered in HTTP/1.1 and ends the connection; with a body it gets 400."""
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    plain = b"GET / HTTP/1.1\r\n" + HOST + offer + b"\r\n"
    assert [answer.status for answer in talk(url, plain + SMUGGLED)] == [200]
    with_body = b"POST / HTTP/1.1\r\n" + HOST + offer + b"Content-Length: 5\r\n\r\nhello"
    assert [answer.status for answer in talk(url, with_body)] == [400]
    assert not exists(url, b"CUSTOM_SMUGGLED")


def test_bodies_in_chunks_keep_to_the_limit(tmp_path: Path) -> None:
    """A chunked body is accepted within the limit and refused with 413 beyond it."""
    options = ("--auth", "noauth2", "--body-bytes-max", "100")
    with serve(tmp_path / "moorage.sqlite", *options) as server:
        body = b'{"name": "host"}'
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        sent = request(b"POST", PROVIDERS, JSON, CHUNKED, body=chunks)
        assert talk(server.url, sent)[0].status == 200
        long = b"40\r\n" + b" " * 64 + b"\r\n"
        sent = request(b"POST", PROVIDERS, JSON, CHUNKED, body=long * 3 + b"0\r\n\r\n")
        assert talk(server.url, sent)[0].status == 413


def test_continue_is_sent_before_the_body(url: str) -> None:
    """A client with `Expect: 100-continue` gets a 100 before it sends the body."""
    with connect(url) as connection:
        expecting = b"Expect: 100-continue\r\nContent-Length: 16\r\n"
        connection.sendall(request(b"POST", PROVIDERS, JSON, expecting))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 Continue\r\n")
        connection.sendall(b'{"name": "host"}')
        assert [answer.status for answer in answers(read_to_end(connection))] == [200]


def test_no_continue_is_sent_to_http_1_0(url: str) -> None:
    """A client of HTTP/1.0 knows no 100: it gets one answer, the final one."""
    sent = request(
        *(b"POST", PROVIDERS, JSON, b"Expect: 100-continue\r\nContent-Length: 16\r\n"),
        body=b'{"name": "old1"}',
    )
    told = talk(url, sent.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert [answer.status for answer in told] == [200]


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with short timeouts and room for three connections."""
    options = ["--header-seconds-max", "0.4", "--body-seconds-max", "0.6"]
    options += ["--idle-seconds-max", "0.5", "--connections-max", "3"]
    database = tmp_path_factory.mktemp("impatient") / "moorage.sqlite"
    with serve(database, "--auth", "noauth2", *options) as server:
        yield server.url


@pytest.mark.parametrize(
    ("packets", "statuses"),
    [
        ([], []),
        ([b"GET / HT"], [408]),
        ([b"GET / HTTP/1.1\r\nHost: localhost\r\nA:"], [408]),
        ([request(b"POST", PROVIDERS, JSON, b"Content-Length: 9\r\n")], [408]),
        ([request(b"POST", PROVIDERS, JSON, CHUNKED, body=b"5\r\nhel")], [408]),
        ([request(b"GET", b"/", close=False)], [200]),
        ([request(b"GET", b"/", close=False), b"\r\n"], [200]),
        ([request(b"GET", b"/", JSON, b"Content-Length: 9\r\n", close=False)], [200]),
    ],
    ids=[
        "silent",
        "half a line",
        "half a head",
        "no body",
        "half a chunk",
        "no second request",
        "an empty line",
        "answered before its body came",
    ],
)
def test_slow_clients_are_disconnected(
    impatient: str, packets: list[bytes], statuses: list[int]
) -> None:
    """A connection that sends nothing in time is closed, with a 408 if a request had begun."""
    assert [answer.status for answer in talk(impatient, *packets)] == statuses


def test_single_bytes_do_not_extend_the_deadline(impatient: str) -> None:
    """The deadline is for the whole head: a byte now and then does not extend it."""
    with connect(impatient) as connection:
        connection.settimeout(0.05)
        received = None
        for byte in b"GET /" + b"a" * 195:  # for ten seconds
            with suppress(TimeoutError):
                connection.sendall(bytes([byte]))
                received = connection.recv(65536)
                break
        assert received is not None
        assert [answer.status for answer in answers(received)] == [408]


def test_connections_beyond_the_bound_are_turned_away(impatient: str) -> None:
    """With three connections open, a fourth gets 503 at once; later there is room again."""
    held = [connect(impatient) for _ in range(3)]
    try:
        with connect(impatient) as fourth:
            assert [answer.status for answer in answers(read_to_end(fourth))] == [503]
        for connection in held:
            assert read_to_end(connection) == b""
    finally:
        for connection in held:
            connection.close()
    assert [answer.status for answer in talk(impatient, request(b"GET", b"/"))] == [200]


def test_abandoned_connections_leave_the_server_well(impatient: str) -> None:
    """Clients that reset their connections in the middle of a request do no harm."""
    for sent in (b"", b"GET / HT", request(b"POST", b"/traits", CHUNKED, body=b"5\r\nh")):
        connection = connect(impatient)
        connection.sendall(sent)
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # on, zero seconds: reset instead of close
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.close()
    eventually(  # their places are free once the server has noticed
        lambda: [one.status for one in talk(impatient, request(b"GET", b"/"))] == [200] or None
    )
