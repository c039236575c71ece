"""The test-only face: what it applies, and what it refuses."""

import asyncio
import json

from moorage.faces import testing
from moorage.faces.web import Limits, Message


class Journal:
    """Records the calls of the face, in order."""

    def __init__(self) -> None:
        self.lines: list[object] = []

    async def reset(self) -> None:
        self.lines.append("reset")

    def profile(self, policy: str, cors_origin: str | None) -> None:
        self.lines.append((policy, cors_origin))


def ask(journal: Journal, body: bytes, method: str = "POST", path: str = testing.RESET_PATH) -> int:
    """Send one request through the ASGI interface and return the status."""
    status = 0

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [],
    }
    face = testing.testing_face(journal.reset, journal.profile, Limits(body_bytes_max=100))
    asyncio.run(face(scope, receive, send))
    return status


def test_wipes_then_switches() -> None:
    """The wipe comes first, then the requested profile."""
    journal = Journal()
    body = {"policy": "open", "cors_origin": "http://valid.example.com"}
    assert ask(journal, json.dumps(body).encode()) == 204
    assert journal.lines == ["reset", ("open", "http://valid.example.com")]


def test_an_empty_body_restores_the_defaults() -> None:
    """An empty body restores the default policy without CORS."""
    journal = Journal()
    assert ask(journal, b"") == 204
    assert journal.lines == ["reset", ("default", None)]


def test_refuses_invalid_profiles() -> None:
    """A wrong policy, an unknown field or invalid text is 400 and wipes nothing."""
    for body in (b'{"policy": "shut"}', b'{"wipe": true}', b"{", b'"\xff"', b"[]"):
        journal = Journal()
        assert ask(journal, body) == 400, body
        assert journal.lines == []


def test_refuses_other_requests() -> None:
    """Another path or method is 404, a body above the limit 413; neither wipes anything."""
    journal = Journal()
    assert ask(journal, b"{}", path="/_testing/wipe") == 404
    assert ask(journal, b"", method="GET") == 404
    assert ask(journal, b" " * 101) == 413
    assert journal.lines == []
