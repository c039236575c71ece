"""A client that sends exact bytes, and sees when the server closes the connection."""

import re
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

ANSWER_SECONDS = 10.0
HOST = b"Host: localhost\r\n"
ADMIN = b"X-Auth-Token: admin\r\n"
LATEST = b"OpenStack-API-Version: placement latest\r\n"


class Answer(NamedTuple):
    """One answer as it was on the wire."""

    status: int
    head: bytes
    body: bytes


def connect(url: str) -> socket.socket:
    """Open a connection to a server."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 80), ANSWER_SECONDS)


def read_to_end(connection: socket.socket) -> bytes:
    """Read until the server closes; it is an error if it does not within ANSWER_SECONDS."""
    received = bytearray()
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass  # the server closed before it read all of our bytes
    return bytes(received)


def talk(url: str, *packets: bytes) -> list[Answer]:
    """Send packets on one connection and return every answer until the server closes it."""
    with connect(url) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for packet in packets:
            connection.sendall(packet)
        return answers(read_to_end(connection))


class Wire:
    """A connection that stays open; it is opened again if the server has closed it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: socket.socket | None = None

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def ask(self, packet: bytes) -> Answer:
        """Send one request as one packet, and wait for its answer."""
        if self._connection is None:
            self._connection = connect(self._url)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sendall(packet)
        received = b""
        while True:
            piece = self._connection.recv(65536)
            received += piece
            head, end, body = received.partition(b"\r\n\r\n")
            found = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
            if end and found is not None and len(body) >= int(found[1]):
                break
            assert piece, f"cut off: {received!r}"
        if b"\r\nconnection: close" in head.lower():
            self._close()
        return answers(received)[0]

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def answers(received: bytes) -> list[Answer]:
    """Split received bytes into answers; each must have a Content-Length or no body."""
    found = []
    while received:
        head, end, rest = received.partition(b"\r\n\r\n")
        assert end, f"cut off: {received!r}"
        lengths = [
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ]
        length = lengths[0] if lengths else 0
        found.append(Answer(int(head.split(b" ", 2)[1]), head, rest[:length]))
        received = rest[length:]
    return found


def request(
    method: bytes, path: bytes, *headers: bytes, body: bytes = b"", close: bool = True
) -> bytes:
    """Return a request of the administrator; `headers` end with CRLF."""
    ending = b"Connection: close\r\n" if close else b""
    start = method + b" " + path + b" HTTP/1.1\r\n"
    return start + HOST + ADMIN + LATEST + ending + b"".join(headers) + b"\r\n" + body
