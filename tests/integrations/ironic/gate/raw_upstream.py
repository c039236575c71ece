"""An upstream that records what it gets, byte for byte, and answers with given bytes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from types import TracebackType
from typing import IO, Self

VERSIONS = (
    b"X-OpenStack-Ironic-API-Minimum-Version: 1.1\r\n"
    b"X-OpenStack-Ironic-API-Maximum-Version: 1.95\r\n"
)
USUAL = b"HTTP/1.1 200 OK\r\n" + VERSIONS + b"Content-Length: 2\r\n\r\n{}"


class RawUpstream:
    """A server on a free port; it answers each request with `answer`.

    `requests` has each request: its head and its body, as they came. A context manager.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, bytes]] = []
        self.answer = USUAL
        self.closes = False
        """Close after the next answer."""
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def of(self, method: str) -> list[tuple[bytes, bytes]]:
        """Return the requests with a method, without the gate's own."""
        own = (b"GET /v1 ", b"GET /v1/nodes?fields=")
        return [
            one
            for one in self.requests
            if one[0].startswith(method.encode() + b" ") and not one[0].startswith(own)
        ]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with closing(connection), connection.makefile("rb") as lines:
            while head := b"".join(_head(lines)):
                if b"expect: 100-continue" in head.lower():
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                self.requests.append((head, b"".join(_body(head, lines))))
                connection.sendall(self.answer)
                if self.closes or b"Content-Length" not in self.answer:
                    return


def _head(lines: IO[bytes]) -> Iterator[bytes]:
    while line := lines.readline():
        yield line
        if line == b"\r\n":
            return


def _body(head: bytes, lines: IO[bytes]) -> Iterator[bytes]:
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if b"content-length" in fields:
        yield lines.read(int(fields[b"content-length"]))
    elif b"chunked" in fields.get(b"transfer-encoding", b""):
        while size := int(lines.readline(), 16):
            yield lines.read(size)
            lines.readline()
        lines.readline()
