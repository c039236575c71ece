"""A served Boskos: real processes, real sockets, answers as they stood on the wire."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from tests.e2e.support.server import Server, serve

SECOND_DOOR = re.compile(r"moorage: (http://\S+) is for clients of Boskos")
SECONDS_MAX = 20.0
TYPES = 60
"""Types with slots, so that each test may have its own."""

TEXT = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """One answer; header names in lower case, without the date."""

    status: int
    headers: dict[str, str]
    body: str


class Resources(NamedTuple):
    """A type of a test's own, with three slots."""

    kind: str
    names: list[str]


class Ground:
    """A server, and what talks to it."""

    def __init__(self, server: Server, *, strict: bool) -> None:
        self.server = server
        self.strict = strict
        found = [hit for line in server.said if (hit := SECOND_DOOR.match(line))]
        self.url = found[0][1]
        self._types = count()

    def own(self) -> Resources:
        """Hand out a type that no other test has."""
        n = next(self._types)
        assert n < TYPES
        return Resources(f"t{n}", [f"t{n}-a", f"t{n}-b", f"t{n}-c"])

    def connect(self) -> socket.socket:
        """Open a connection to the second door."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        return socket.create_connection((parts.hostname, parts.port or 80), SECONDS_MAX)

    def call(self, method: str, target: str, body: bytes | None = b"", *headers: str) -> Answer:
        """Send one request as Go's client does, and return its answer."""
        with self.connect() as connection:
            connection.sendall(spelled(method, target, body, "Connection: close", *headers))
            return answer_of(received(connection))

    def post(self, path: str, **arguments: str) -> Answer:
        """Post arguments."""
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in arguments.items())
        return self.call("POST", f"{path}?{query}")

    def acquire(
        self,
        kind: str,
        owner: str = "me",
        request_id: str = "",
        state: str = "free",
        dest: str = "busy",
    ) -> str | None:
        """Acquire a resource; its name, or None when there is none to be had."""
        more = {"request_id": request_id} if request_id else {}
        answer = self.post("/acquire", type=kind, state=state, dest=dest, owner=owner, **more)
        if answer.status == 404:
            assert "no available resource" in answer.body
            return None
        assert answer.status == 200, answer
        name: str = json.loads(answer.body)["name"]
        return name

    def release(self, name: str, owner: str = "me", dest: str = "free") -> None:
        """Release a resource."""
        assert self.post("/release", name=name, owner=owner, dest=dest) == empty()

    def native(self, method: str, path: str, body: Any = None) -> Any:
        """Call the native API as its administrator."""
        parts = urlsplit(self.server.url)
        assert parts.hostname is not None
        raw = None if body is None else json.dumps(body).encode()
        with socket.create_connection((parts.hostname, parts.port or 80), SECONDS_MAX) as one:
            lines = ("Connection: close", "X-Auth-Token: admin", "Content-Type: application/json")
            one.sendall(spelled(method, path, raw, *lines))
            answer = answer_of(received(one))
        assert answer.status < 300, answer
        return json.loads(answer.body) if answer.body else None

    def metrics(self) -> str:
        """Return all metrics."""
        parts = urlsplit(self.server.url)
        assert parts.hostname is not None
        with socket.create_connection((parts.hostname, parts.port or 80), SECONDS_MAX) as one:
            one.sendall(spelled("GET", "/metrics", None, "Connection: close"))
            return answer_of(received(one)).body


def spelled(method: str, target: str, body: bytes | None, *headers: str) -> bytes:
    """Spell a request; without a body (None) it says nothing of a length."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "User-Agent: Go-http-client/1.1"]
    if body is not None and not any(line.startswith("Transfer-Encoding") for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join([*lines, *headers]) + "\r\n\r\n"
    return head.encode("latin-1") + (body or b"")


def received(connection: socket.socket) -> bytes:
    """Read until the server closes."""
    found = bytearray()
    while piece := connection.recv(65536):
        found += piece
    return bytes(found)


def answer_of(raw: bytes) -> Answer:
    """Take one answer apart."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    assert headers.pop("date", None) is not None, raw
    headers.pop("connection", None)
    return Answer(int(first.split(" ")[1]), headers, body.decode("utf-8", "surrogateescape"))


def empty() -> Answer:
    """What Go answers when a handler says nothing."""
    return Answer(200, {"content-length": "0"}, "")


def said(text: str, kind: str = TEXT) -> Answer:
    """A success with a body."""
    return Answer(200, {"content-type": kind, "content-length": str(len(text.encode()))}, text)


def refused(status: int, text: str) -> Answer:
    """What `http.Error` of Go answers."""
    headers = {
        "content-type": TEXT,
        "x-content-type-options": "nosniff",
        "content-length": str(len(text.encode("utf-8", "surrogateescape")) + 1),
    }
    return Answer(status, headers, text + "\n")


def configuration(more: str = "") -> str:
    """A configuration with types for many tests, and what a test adds."""
    lines = ["resources:"]
    for n in range(TYPES):
        names = ", ".join(f"t{n}-{letter}" for letter in "abc")
        lines += [f"- type: t{n}", "  state: free", f"  names: [{names}]"]
    return "\n".join(lines) + "\n" + more


@contextmanager
def ground(
    folder: Path,
    compat: str = "safe",
    config: str | None = None,
    *options: str,
    database: str | None = None,
) -> Iterator[Ground]:
    """Serve with a configuration in this folder; the database there is gone on with."""
    file = folder / "boskos.yaml"
    if config is not None or not file.exists():
        file.write_text(configuration() if config is None else config)
    words = ["--boskos-listen", "127.0.0.1:0", "--boskos-config", str(file)]
    words += ["--boskos-compat", compat, "--auth", "noauth2", "--no-access-log", *options]
    with serve(database or folder / "moorage.sqlite", *words) as server:
        yield Ground(server, strict=compat == "strict")
