"""A small Keystone: the part of its v3 token API that validates tokens."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

USER = "placement"
PASSWORD = "secret"
LATE = "2099-01-01T00:00:00.000000Z"


class Keystone(ThreadingHTTPServer):
    """A Keystone with these tokens; `asked` counts validations, `away` makes every call fail."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tokens: dict[str, dict[str, Any]] = {}
        self.services: set[str] = set()
        self.logins = 0
        self.domains: set[tuple[str, str]] = set()
        """The domains of users and projects that logged in: `id` or `name`, and which."""
        self.asked = 0
        self.away = False
        self.slow = ""
        """Validations of tokens with this prefix wait until the gate is open."""
        self.gate = threading.Event()
        self.gate.set()

    @property
    def url(self) -> str:
        """The address of its v3 API."""
        scheme = "https" if isinstance(self.socket, ssl.SSLSocket) else "http"
        return f"{scheme}://127.0.0.1:{self.server_port}/v3"

    def admit(self, token: str, *roles: str, expires_at: str = LATE, **scope: Any) -> None:
        """Add a token."""
        self.tokens[token] = {
            "user": {"id": f"id-of-{token}", "name": token, "domain": {"id": "default"}},
            "roles": [{"id": f"r-{role}", "name": role} for role in roles],
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "expires_at": expires_at,
            "methods": ["password"],
            **scope,
        }


class _Handler(BaseHTTPRequestHandler):
    server: Keystone
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Log a service in."""
        raw = self.rfile.read(int(self.headers["content-length"]))
        auth = json.loads(raw)["auth"]
        user = auth["identity"]["password"]["user"]
        for domain in (user["domain"], auth["scope"]["project"]["domain"]):
            self.server.domains |= {*domain.items()}
        if self.server.away or (user["name"], user["password"]) != (USER, PASSWORD):
            self._answer(503 if self.server.away else 401, {"error": {}})
            return
        self.server.logins += 1
        token = f"service-{self.server.logins}"
        self.server.services.add(token)
        self.server.admit(token, "service", project={"id": "service"})
        self._answer(201, {"token": self.server.tokens[token]}, token)

    def do_GET(self) -> None:
        """Validate a token."""
        assert self.path == "/v3/auth/tokens?nocatalog"
        self.server.asked += 1
        subject = self.headers["x-subject-token"]
        if subject.startswith(self.server.slow):
            self.server.gate.wait(10)
        found = self.server.tokens.get(subject)
        if self.server.away:
            self._answer(503, {"error": {}})
        elif self.headers.get("x-auth-token") not in self.server.services:
            self._answer(401, {"error": {}})
        elif found is None:
            self._answer(404, {"error": {}})
        else:
            self._answer(200, {"token": found})

    def _answer(self, status: int, body: Any, token: str | None = None) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        if token is not None:
            self.send_header("x-subject-token", token)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def serve_keystone(certificate: tuple[Path, Path] | None = None) -> Iterator[Keystone]:
    """Run a Keystone until the block ends, with TLS if there is a certificate and its key."""
    with Keystone() as keystone:
        if certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*certificate)
            keystone.socket = tls.wrap_socket(keystone.socket, server_side=True)
        thread = threading.Thread(target=keystone.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield keystone
        finally:
            keystone.gate.set()
            keystone.shutdown()
            thread.join()
