"""The test-only face: wipes the service and switches its profile between tests.

`serve` mounts it only with `--testing`, the `noauth2` scheme and a loopback address; otherwise its
path is unknown. It has no logic of its own: both actions are passed in.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Literal

import msgspec

from moorage.faces.web import (
    Limits,
    Receive,
    RefusalError,
    Scope,
    Send,
    body_read,
    headers_of,
)

RESET_PATH = "/_testing/reset"


class Profile(msgspec.Struct, forbid_unknown_fields=True):
    """The policy and CORS settings from now on; the defaults are those of a normal server."""

    policy: Literal["default", "new", "open"] = "default"
    cors_origin: str | None = None


def testing_face(
    reset: Callable[[], Awaitable[None]],
    profile: Callable[[str, str | None], None],
    limits: Limits,
) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Build the face: one route, `POST /_testing/reset` with a `Profile` as its JSON body.

    Args:
        reset: empties every table and the index before it returns.
        profile: called with (policy, CORS origin or None) after the wipe; takes effect at once.
        limits: limits on the size of requests.

    The answer is 204 after both. It is 400 with the reason, and nothing is wiped, if the body is
    not a valid profile.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        status, body = int(HTTPStatus.NO_CONTENT), b""
        try:
            wanted = await _wanted(scope, receive, limits)
        except RefusalError as refused:
            status, body = refused.status, f"{refused.message}\n".encode()
        else:
            await reset()
            profile(wanted.policy, wanted.cors_origin)
        headers = [(b"content-type", b"text/plain; charset=utf-8")] if body else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


async def _wanted(scope: Scope, receive: Receive, limits: Limits) -> Profile:
    """Return the profile in a request. Raises RefusalError."""
    if (scope["method"], scope["path"]) != ("POST", RESET_PATH):
        raise RefusalError(HTTPStatus.NOT_FOUND, f"There is only POST {RESET_PATH}.")
    body = await body_read(headers_of(scope), receive, limits.body_bytes_max, "body_bytes_max")
    try:
        return msgspec.json.decode(body or b"{}", type=Profile)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise RefusalError(HTTPStatus.BAD_REQUEST, str(problem)) from None
