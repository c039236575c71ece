"""The test-only face: wipe the service and switch its profile between two tests.

It exists only where `serve` mounts it: with `--testing`, the `noauth2` scheme and a loopback
address. Everywhere else its path is an unknown one. It decides nothing: both acts are handed in.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

RESET_PATH = "/_testing/reset"


class Profile(msgspec.Struct, forbid_unknown_fields=True):
    """How the service shall judge and answer from now on; every field has the usual default."""

    policy: Literal["default", "new", "open"] = "default"
    cors_origin: str | None = None


def testing_face(
    reset: Callable[[], Awaitable[None]],
    profile: Callable[[str, str | None], None],
) -> Starlette:
    """Build the face: one route, `POST /_testing/reset` with a `Profile` as its JSON body.

    Args:
        reset: empties every table and the index; done when it returns.
        profile: called with (policy, CORS origin or None) after the wipe; in force at once.

    The answer is 204 once both are done, 400 with the reason for a body that is no profile (then
    nothing was wiped).
    """

    async def answer(request: Request) -> Response:
        try:
            wanted = msgspec.json.decode(await request.body() or b"{}", type=Profile)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            return JSONResponse({"error": str(problem)}, status_code=400)
        await reset()
        profile(wanted.policy, wanted.cors_origin)
        return Response(status_code=204)

    return Starlette(routes=[Route(RESET_PATH, answer, methods=["POST"])])
