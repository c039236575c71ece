"""A small, strict keep-alive client for the tests: exact bytes out, one complete answer in."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

ANSWER_SECONDS = 60.0
LATEST = ("OpenStack-API-Version", "placement latest")


class NoAnswer(Exception):
    """The server closed or reset the connection without a complete answer."""


@dataclass(slots=True)
class Answer:
    """One complete answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


def head(method: str, target: str, headers: list[tuple[str, str]], body: bytes | None) -> bytes:
    """Return a request's bytes; characters of headers are sent as single bytes (latin-1)."""
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


class Peer:
    """One connection to a server, opened again when the server has closed it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> "Peer":
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def call(
        self, method: str, path: str, body: Any = None, *, roles: str = "admin"
    ) -> Answer:
        """Send JSON under Placement's test scheme `noauth2`, with these roles."""
        headers = [("X-Auth-Token", "admin"), ("X-Roles", roles), LATEST]
        content = None
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            content = json.dumps(body).encode()
        return await self.send(head(method, path, headers, content))

    async def send(self, request: bytes) -> Answer:
        """Send a request and return its answer.

        Raises NoAnswer, or TimeoutError when nothing comes for ANSWER_SECONDS.
        """
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                self._host, self._port, limit=2**24
            )
        try:
            self._writer.write(request)
            # Not drained: the server may answer before it has read everything, and close.
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await self._read(with_body=not request.startswith(b"HEAD "))
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            await self.close()
            raise NoAnswer(f"{error!r} after {request[:500]!r}") from error
        if answer.headers.get("connection", "").lower() == "close":
            await self.close()
        return answer

    async def _read(self, with_body: bool) -> Answer:
        assert self._reader is not None
        text = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text.rstrip("\r\n").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", "0")) if with_body else 0
        body = await self._reader.readexactly(length)
        return Answer(int(first.split(" ")[1]), headers, body)

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


async def differences(peer: Peer) -> list[str]:
    """Return the differences that a server's own check finds."""
    answer = await peer.call("POST", "/v1/database/check", {})
    assert answer.status == 200, answer
    found: list[str] = answer.json()["differences"]
    return found
