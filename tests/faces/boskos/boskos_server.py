"""A server with the face of Boskos: real processes and sockets, responses as on the wire."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from tests.e2e.support.server import Server, serve

SECONDS_MAX = 20.0
TYPES = 150
"""How many types with slots there are; each test uses its own."""

TEXT = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """A response; header names in lower case, without the date."""

    status: int
    headers: dict[str, str]
    body: str


class Resources(NamedTuple):
    """A type of one test, with three slots."""

    kind: str
    names: list[str]


class BoskosServer:
    """A server with the face of Boskos, and a client."""

    def __init__(self, server: Server, *, strict: bool) -> None:
        self.server = server
        self.strict = strict
        self.url = server.boskos_url
        self._types = count()

    def new_type(self) -> Resources:
        """Return a type that no other test uses."""
        n = next(self._types)
        assert n < TYPES
        return Resources(f"t{n}", [f"t{n}-a", f"t{n}-b", f"t{n}-c"])

    def connect(self) -> socket.socket:
        """Open a connection to the port of Boskos."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        return socket.create_connection((parts.hostname, parts.port or 80), SECONDS_MAX)

    def call(self, method: str, target: str, body: bytes | None = b"", *headers: str) -> Answer:
        """Send one request as Go's client does, and return the response."""
        with self.connect() as connection:
            connection.sendall(http_request(method, target, body, "Connection: close", *headers))
            return parse_answer(read_all(connection))

    def post(self, path: str, **arguments: str) -> Answer:
        """Send a POST request with these query parameters."""
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
        """Acquire a resource; return its name, or None if none is available."""
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
        assert self.post("/release", name=name, owner=owner, dest=dest) == empty_answer()

    def native(self, method: str, path: str, body: Any = None) -> Any:
        """Call the native API as administrator."""
        parts = urlsplit(self.server.url)
        assert parts.hostname is not None
        raw = None if body is None else json.dumps(body).encode()
        with socket.create_connection((parts.hostname, parts.port or 80), SECONDS_MAX) as one:
            lines = ("Connection: close", "X-Auth-Token: admin", "Content-Type: application/json")
            one.sendall(http_request(method, path, raw, *lines))
            answer = parse_answer(read_all(one))
        assert answer.status < 300, answer
        return json.loads(answer.body) if answer.body else None

    def metrics(self) -> str:
        """Return all metrics."""
        parts = urlsplit(self.server.url)
        assert parts.hostname is not None
        with socket.create_connection((parts.hostname, parts.port or 80), SECONDS_MAX) as one:
            one.sendall(http_request("GET", "/metrics", None, "Connection: close"))
            return parse_answer(read_all(one)).body


def http_request(method: str, target: str, body: bytes | None, *headers: str) -> bytes:
    """Return a request as bytes; without a body (None) it has no Content-Length."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "User-Agent: Go-http-client/1.1"]
    if body is not None and not any(line.startswith("Transfer-Encoding") for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join([*lines, *headers]) + "\r\n\r\n"
    return head.encode("latin-1") + (body or b"")


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    found = bytearray()
    while piece := connection.recv(65536):
        found += piece
    return bytes(found)


def parse_answer(raw: bytes) -> Answer:
    """Parse a response."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    assert headers.pop("date", None) is not None, raw
    headers.pop("connection", None)
    return Answer(int(first.split(" ")[1]), headers, body.decode("utf-8", "surrogateescape"))


def empty_answer() -> Answer:
    """Return Go's response for a handler that writes nothing."""
    return Answer(200, {"content-length": "0"}, "")


def success_answer(text: str, kind: str = TEXT) -> Answer:
    """Return a successful response with a body."""
    return Answer(200, {"content-type": kind, "content-length": str(len(text.encode()))}, text)


def error_answer(status: int, text: str) -> Answer:
    """Return the response of Go's `http.Error`."""
    headers = {
        "content-type": TEXT,
        "x-content-type-options": "nosniff",
        "content-length": str(len(text.encode("utf-8", "surrogateescape")) + 1),
    }
    return Answer(status, headers, text + "\n")


def configuration(more: str = "") -> str:
    """Return a configuration with types for many tests, and additional lines."""
    lines = ["resources:"]
    for n in range(TYPES):
        names = ", ".join(f"t{n}-{letter}" for letter in "abc")
        lines += [f"- type: t{n}", "  state: free", f"  names: [{names}]"]
    return "\n".join(lines) + "\n" + more


@contextmanager
def serve_boskos(
    folder: Path,
    compat: str = "safe",
    config: str | None = None,
    *options: str,
    database: str | None = None,
) -> Iterator[BoskosServer]:
    """Run a server with a configuration in this folder; an existing database there is kept."""
    file = folder / "boskos.yaml"
    if config is not None or not file.exists():
        file.write_text(configuration() if config is None else config)
    words = ["--boskos-listen", "127.0.0.1:0", "--boskos-config", str(file)]
    words += ["--boskos-compat", compat, "--auth", "noauth2", "--no-access-log", *options]
    with serve(database or folder / "moorage.sqlite", *words) as server:
        yield BoskosServer(server, strict=compat == "strict")
