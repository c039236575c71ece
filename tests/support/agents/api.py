"""The requests that the agents of the suites send. Standard library only."""

import http.client
import json
from typing import Any
from urllib.parse import quote, urlsplit

HEADERS = {
    "X-Auth-Token": "admin",
    "Content-Type": "application/json",
    "OpenStack-API-Version": "placement 1.39",
}
SECONDS = 60


class RefusedError(Exception):
    """The server refused what an agent sent."""


class Api:
    """A server with the scheme `noauth2`, asked as its administrator, on one connection."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; return the status and the JSON of the answer, None if it is empty."""
        content = None if body is None else json.dumps(body).encode()
        self._connection.request(method, quote(path, safe="/?=&:"), content, HEADERS)
        with self._connection.getresponse() as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed; return the JSON of the answer. Raises RefusedError."""
        status, answer = self.send(method, path, body)
        if not 200 <= status < 300:
            raise RefusedError(f"{method} {path} {body}: {status} {answer}")
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
