"""The parts of a response."""

from http import HTTPStatus
from typing import Any

import msgspec

from moorage.faces.v1.routing import Route, StatusAnswer
from moorage.faces.web import REQUEST_ID, Headers

SAFE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Headers of every response: many contain secrets, and none is a web page."""


def head_of(request_id: str) -> Headers:
    """Return the headers of every response."""
    return [(REQUEST_ID, request_id.encode()), *SAFE]


def answered(route: Route, answer: Any) -> tuple[int, Headers, bytes]:
    """Return status, further headers and body for what a handler of the route has returned."""
    if answer is None:
        return HTTPStatus.NO_CONTENT, [], b""
    status = route.operation.content.status
    if isinstance(answer, StatusAnswer):
        status, answer = answer.status, answer.body
    body = msgspec.json.encode(answer)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    return status, headers, body
