"""Writes responses with exactly the headers that Go's `net/http` sends."""

from msgspec import Struct

from moorage.faces.golang.texts import raw_bytes
from moorage.faces.web import Send

TEXT = b"text/plain; charset=utf-8"
JSON = b"application/json"


class Response(Struct, frozen=True):
    """A status, a body, and the headers that differ between answers."""

    status: int
    body: bytes = b""
    kind: bytes | None = None
    """The content type; None: no such header."""
    more: tuple[tuple[bytes, bytes], ...] = ()


def text_answer(text: str) -> Response:
    """Return the answer of a Go handler that sets no content type."""
    return Response(200, raw_bytes(text), TEXT)


def refusal(status: int, text: str) -> Response:
    """Return the answer that Go's `http.Error` writes."""
    return Response(
        status, raw_bytes(text + "\n"), TEXT, ((b"x-content-type-options", b"nosniff"),)
    )


async def answer_send(answer: Response, method: str, send: Send) -> None:
    """Send an answer. The `date` header, which Go always sends, is left to the server."""
    headers: list[tuple[bytes, bytes]] = []
    if answer.kind is not None:
        headers.append((b"content-type", answer.kind))
    headers.extend(answer.more)
    if answer.status != 204 and (answer.body or method != "HEAD"):
        headers.append((b"content-length", str(len(answer.body)).encode("ascii")))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
