"""Whole HTTP/1.1 messages, read from a socket and kept as the bytes that they are.

Standard library only: other environments use it.
"""

import json
import socket
from dataclasses import dataclass
from typing import Any

CHUNK = 65536
END = b"\r\n\r\n"
WITHOUT_BODY = (204, 304)


class Opaque(Exception):
    """The end of this message cannot be known; `data` are the bytes that have been read."""

    def __init__(self, data: bytes) -> None:
        super().__init__("a message without a plain length")
        self.data = data


@dataclass(frozen=True)
class Message:
    """A request or an answer: its first line, its headers in lower case, its body, all its bytes.

    `body` of a chunked answer has the sizes of its chunks, too.
    """

    first: str
    headers: dict[str, str]
    body: bytes
    data: bytes

    @property
    def method(self) -> str:
        """The method of a request."""
        return self.first.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of a request, without its query."""
        return self.first.split(" ")[1].partition("?")[0]

    @property
    def status(self) -> int:
        """The status of an answer."""
        return int(self.first.split(" ")[1])

    @property
    def succeeded(self) -> bool:
        """Whether an answer reports success."""
        return 200 <= self.status < 300

    def without(self, header: str) -> "Message":
        """Return this message without a header."""
        head, end, body = self.data.partition(END)
        lines = head.split(b"\r\n")
        kept = [line for line in lines if not line.lower().startswith(f"{header}:".encode())]
        headers = {name: value for name, value in self.headers.items() if name != header}
        return Message(self.first, headers, self.body, b"\r\n".join(kept) + end + body)

    def json(self) -> Any:
        """Return the body as a JSON value; None if it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class Reader:
    """Reads one message after another from a socket."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._held = b""

    def request(self) -> Message | None:
        """Return the next request; None: there is none. Raises Opaque, OSError."""
        head = self._head()
        if head is None:
            return None
        first, headers = _parsed(head)
        length = headers.get("content-length", "0")
        if not length.isdigit() or {"transfer-encoding", "expect"} & headers.keys():
            raise Opaque(head + self._rest())
        if first.count(" ") != 2:
            raise Opaque(head + self._rest())
        body = self._exactly(int(length))
        return Message(first, headers, body, head + body)

    def answer(self, method: str) -> Message | None:
        """Return the answer to a request; None: there is none. Raises Opaque, OSError."""
        head = self._head()
        if head is None:
            return None
        first, headers = _parsed(head)
        answer = Message(first, headers, b"", head)
        if method == "HEAD" or answer.status in WITHOUT_BODY:
            return answer
        if headers.get("transfer-encoding") == "chunked":
            body = self._chunks()
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        else:
            raise Opaque(head + self._rest())
        return Message(first, headers, body, head + body)

    def _head(self) -> bytes | None:
        while END not in self._held:
            more = self._source.recv(CHUNK)
            if not more and self._held:
                raise Opaque(self._rest())
            if not more:
                return None
            self._held += more
        head, _, self._held = self._held.partition(END)
        return head + END

    def _rest(self) -> bytes:
        rest, self._held = self._held, b""
        return rest

    def _exactly(self, count: int) -> bytes:
        while len(self._held) < count:
            more = self._source.recv(CHUNK)
            if not more:
                raise Opaque(self._rest())
            self._held += more
        body, self._held = self._held[:count], self._held[count:]
        return body

    def _line(self) -> bytes:
        while b"\r\n" not in self._held:
            more = self._source.recv(CHUNK)
            if not more:
                raise Opaque(self._rest())
            self._held += more
        line, _, self._held = self._held.partition(b"\r\n")
        return line + b"\r\n"

    def _chunks(self) -> bytes:
        """Return all chunks with their sizes, as they were sent."""
        parts = []
        while True:
            size = self._line()
            parts += [size, self._exactly(int(size.partition(b";")[0], 16) + 2)]
            if int(size.partition(b";")[0], 16) == 0:
                return b"".join(parts)


def _parsed(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}
