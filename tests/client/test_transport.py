"""The client's transport distinguishes an answer, a refusal, and no answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from moorage.client.transport import (
    RefusedError,
    Transport,
    UnreachableError,
    server_url,
    shown_url,
    token_of,
)


@contextmanager
def answering(raw: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server that answers one connection with these bytes; yield its URL and its requests."""
    heard: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            heard.append(_request(connection))
            connection.sendall(raw)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
        thread.join()


def _request(connection: socket.socket) -> bytes:
    """Read one request with its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head = received.partition(b"\r\n\r\n")[0]
    length = sum(
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(received) < len(head) + 4 + length:
        received += connection.recv(65536)
    return received


def http_response(status: str, body: bytes) -> bytes:
    """Return an HTTP response."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


def test_an_answer() -> None:
    """A request carries token and body; its answer is decoded, an empty one is None."""
    with answering(http_response("200 OK", b'{"a": [1]}')) as (url, heard):
        assert Transport(f"{url}/under/", "secret").request("POST", "/x", {"b": 2}) == {"a": [1]}
    assert heard[0].startswith(b"POST /under/x HTTP/1.1\r\n")
    assert b"X-Auth-Token: secret\r\n" in heard[0]
    assert heard[0].endswith(b'{"b": 2}')
    with answering(http_response("204 No Content", b"")) as (url, heard):
        assert Transport(url, None).request("DELETE", "/x") is None
    assert b"X-Auth-Token" not in heard[0]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            b'{"code": "unrouted", "detail": "There is no route at this address."}',
            "unrouted",
            "has nothing at /x: a name or an id in the address is not valid",
        ),
        (
            b'{"code": "gone", "detail": "It is gone.", "request_id": "req-1"}',
            "gone",
            "It is gone.",
        ),
        (b"<html>", "unknown", "is not a Moorage server (404 for /x)"),
        (b"[]", "unknown", "is not a Moorage server (404 for /x)"),
        (b"", "unknown", "is not a Moorage server (404 for /x)"),
    ],
)
def test_a_refusal(body: bytes, code: str, message: str) -> None:
    """An error has the server's code and text; a server that is not Moorage is named as such."""
    with (
        answering(http_response("404 Not Found", body)) as (url, _),
        pytest.raises(RefusedError) as refused,
    ):
        Transport(url, None).request("GET", "/x")
    assert (refused.value.status, refused.value.code) == (404, code)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("token", "message"),
    [(None, "the server requires a token"), ("old", "the server does not accept this token")],
)
def test_a_missing_and_a_wrong_token(token: str | None, message: str) -> None:
    """The error distinguishes a missing token from a wrong one."""
    with (
        answering(http_response("401 Unauthorized", b"{}")) as (url, _),
        pytest.raises(RefusedError) as refused,
    ):
        Transport(url, token).request("GET", "/x")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        http_response("200 OK", b"no JSON"),
        http_response("200 OK", b"[" * 200_000),
    ],
)
def test_no_answer(raw: bytes) -> None:
    """A closed connection or a response that is not JSON counts as no answer."""
    with answering(raw) as (url, _), pytest.raises(UnreachableError):
        Transport(url, None).request("GET", "/x")


def test_a_refusal_that_cannot_be_decoded() -> None:
    """It is a refusal without a text, whatever its body and its headers have."""
    head = b"HTTP/1.1 503 Busy\r\nRetry-After: \xb2\r\nContent-Length: 200000\r\n\r\n"
    with (
        answering(head + b"[" * 200_000) as (url, _),
        pytest.raises(RefusedError) as refused,
    ):
        Transport(url, None).request("GET", "/x")
    assert (refused.value.status, refused.value.retry_after) == (503, None)


@pytest.mark.parametrize("kind", ["of a known length", "in chunks"])
def test_an_answer_that_is_too_long_is_no_answer(kind: str) -> None:
    """A client that knows how long its answers can be reads no more."""
    with (
        answering(ANSWERS[kind]) as (url, _),
        pytest.raises(UnreachableError, match=r"breaks off, or is too long$"),
    ):
        Transport(url, None, answer_bytes_max=12).request("GET", "/x")
    with answering(ANSWERS[kind]) as (url, _):
        assert Transport(url, None, answer_bytes_max=13).request("GET", "/x") == {"a": [1, 2]}


ANSWERS = {
    "of a known length": http_response("200 OK", b'{"a": [1, 2]}'),
    "a refusal": http_response(
        "409 Conflict", b'{"code": "lease_ended", "detail": "It has ended."}'
    ),
    "in chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'4\r\n{"a"\r\n9\r\n: [1, 2]}\r\n0\r\n\r\n'
    ),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_partial_answer_is_no_answer(kind: str) -> None:
    """A response that ends early, in its head or its body, counts as no answer."""
    raw = ANSWERS[kind]
    last = len(raw) - (4 if kind == "in chunks" else 0)  # the final 0 is enough
    for length in range(last):
        with answering(raw[:length]) as (url, _), pytest.raises(UnreachableError) as lost:
            Transport(url, None).request("GET", "/x")
        assert "(" not in str(lost.value), "this is the name of a class"
    with answering(raw) as (url, _):
        if kind == "a refusal":
            with pytest.raises(RefusedError):
                Transport(url, None).request("GET", "/x")
        else:
            assert Transport(url, None).request("GET", "/x") == {"a": [1, 2]}


def test_a_port_without_a_listener() -> None:
    """A port without a listener is reported as unreachable."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        transport = Transport(f"http://127.0.0.1:{bound.getsockname()[1]}", None)
        with pytest.raises(UnreachableError):
            transport.request("GET", "/x")
        assert not transport.reachable()
    with answering(http_response("500 Oops", b"")) as (url, _):
        assert Transport(url, None).reachable()


@pytest.mark.parametrize(
    "url",
    [
        *("", " ", "127.0.0.1:80", "ftp://host", "http://", "http://host:port", "http://host/a b"),
        *("http://two..dots:80", f"http://{'long' * 16}"),
    ],
)
def test_invalid_urls(url: str) -> None:
    """Anything but the URL of a server is refused before a request is sent."""
    with pytest.raises(ValueError, match="is not the URL of a server"):
        Transport(url, None)


def test_white_space_is_removed() -> None:
    """White space around URL and token, as in files, is removed."""
    with answering(http_response("204 No Content", b"")) as (url, heard):
        assert Transport(f" {url} \n", " secret\r\n").request("GET", "/x") is None
    assert heard[0].startswith(b"GET /x HTTP/1.1\r\n")
    assert b"X-Auth-Token: secret\r\n" in heard[0]


@pytest.mark.parametrize(
    "token", ["", " \n", "two\nlines", "two words", "it\u2019s", "a\x00b", "\xff"]
)
def test_invalid_tokens(token: str) -> None:
    """A token that a header cannot carry is refused before a request is sent, and is not shown."""
    with pytest.raises(ValueError, match=r"^MOORAGE_TOKEN is not a token: .* on one line$"):
        token_of(token, "MOORAGE_TOKEN")
    with pytest.raises(ValueError, match="is not a token") as refused:
        Transport("http://127.0.0.1:1", token)
    assert not token.strip() or token not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:8080/prefix", "http://host:8080/prefix"),
        (" https://[::1]:1 ", "https://[::1]:1"),
        ("http://user:secret@host/x", "http://***@host/x"),
        ("http://user:secret/@?#@host/x?token=secret#secret", "http://***@host/x"),
        ("http://host?token=secret", "http://host"),
        ("user:secret@host:1", "***@host:1"),
        ("ftp://secret@", "ftp://***@"),
        ("", ""),
    ],
)
def test_shown_urls(url: str, shown: str) -> None:
    """People see no user and password, no query and no fragment."""
    assert shown_url(url) == shown


def test_a_url_that_is_refused_keeps_its_password() -> None:
    """It is not in the error."""
    with pytest.raises(ValueError, match="is not the URL of a server") as error:
        server_url("ftp://user:secret@host")
    assert "secret" not in str(error.value)
