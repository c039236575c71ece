"""Answers that are sent before a request reaches any face."""

from http import HTTPStatus


def refusal_bytes(status: int, reason: str) -> bytes:
    """Return a complete answer, after which the connection is closed."""
    text = reason.encode("ascii", "replace")
    head = (
        f"HTTP/1.1 {int(status)} {HTTPStatus(status).phrase}\r\n"
        "content-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff\r\n"
        f"content-length: {len(text)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("ascii") + text
