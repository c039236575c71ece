"""The client's transport tells apart: an answer, a refusal, and no answer at all."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from moorage.client.transport import RefusedError, Transport, UnreachableError


@contextmanager
def answering(raw: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers one connection with these bytes; yields its URL and what it heard."""
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
    """Read one request with the body that it announces."""
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


def spelled(status: str, body: bytes) -> bytes:
    """An answer on the wire."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


def test_an_answer() -> None:
    """A request carries token and body; its answer is decoded, an empty one is None."""
    with answering(spelled("200 OK", b'{"a": [1]}')) as (url, heard):
        assert Transport(f"{url}/under/", "secret").request("POST", "/x", {"b": 2}) == {"a": [1]}
    assert heard[0].startswith(b"POST /under/x HTTP/1.1\r\n")
    assert b"X-Auth-Token: secret\r\n" in heard[0]
    assert heard[0].endswith(b'{"b": 2}')
    with answering(spelled("204 No Content", b"")) as (url, heard):
        assert Transport(url, None).request("DELETE", "/x") is None
    assert b"X-Auth-Token" not in heard[0]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            b'{"code": "gone", "detail": "It is gone.", "request_id": "req-1"}',
            "gone",
            "It is gone.",
        ),
        (b"<html>", "unknown", "the server answered 404"),
        (b"[]", "unknown", "the server answered 404"),
        (b"", "unknown", "the server answered 404"),
    ],
)
def test_a_refusal(body: bytes, code: str, message: str) -> None:
    """A refusal carries the server's code and words, as far as there are any."""
    with (
        answering(spelled("404 Not Found", body)) as (url, _),
        pytest.raises(RefusedError) as refused,
    ):
        Transport(url, None).request("GET", "/x")
    assert (refused.value.status, refused.value.code, str(refused.value)) == (404, code, message)


@pytest.mark.parametrize("raw", [b"", b"nonsense\r\n\r\n", spelled("200 OK", b"no JSON")])
def test_no_answer(raw: bytes) -> None:
    """A server that closes, or that is no Moorage, has not answered."""
    with answering(raw) as (url, _), pytest.raises(UnreachableError):
        Transport(url, None).request("GET", "/x")


def test_nobody_there() -> None:
    """A port where nobody listens is unreachable, and known to be."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        transport = Transport(f"http://127.0.0.1:{bound.getsockname()[1]}", None)
        with pytest.raises(UnreachableError):
            transport.request("GET", "/x")
        assert not transport.reachable()
    with answering(spelled("500 Oops", b"")) as (url, _):
        assert Transport(url, None).reachable()


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "ftp://host", "http://", "http://host:port"])
def test_no_url(url: str) -> None:
    """What is not the URL of a server is refused before anything is sent."""
    with pytest.raises(ValueError, match=r"URL|[Pp]ort"):
        Transport(url, None)
