"""A real server with token authentication, and callers of the native API in every role."""

import http.client
import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

ANSWER_SECONDS = 30.0


class Response(NamedTuple):
    """A decoded response."""

    status: int
    body: Any
    headers: dict[str, str]


class Native:
    """Calls one server, by default as the administrator that its first start has created."""

    def __init__(self, url: str, database: Path) -> None:
        self.url = url
        self.secret = Path(f"{database}.token").read_text().strip()

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> Response:
        """Send one request on a new connection; underscores in names become dashes."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=ANSWER_SECONDS
        )
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"X-Auth-Token": self.secret if token is None else token}
        if raw is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, raw, sent)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        named = {name.lower(): value for name, value in answer.getheaders()}
        is_json = "json" in named.get("content-type", "")
        return Response(answer.status, json.loads(text) if is_json else text, named)

    def token(self, role: str, project: str | None = None, name: str | None = None) -> str:
        """Create a token, by default named after its role; return its secret."""
        wanted = {"name": name or role, "role": role, "project_id": project}
        made = self.ask("POST", "/v1/tokens", wanted)
        assert made.status == 201, made
        secret: str = made.body["token"]
        return secret

    def provider(self, name: str) -> str:
        """Create a provider with the Placement API; return its UUID."""
        made = self.ask(
            "POST",
            "/resource_providers",
            {"name": name},
            OpenStack_API_Version="placement latest",
        )
        assert made.status == 200, made
        uuid: str = made.body["uuid"]
        return uuid
