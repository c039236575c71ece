"""The test-only face: wipes the service and switches its profile between tests.

`serve` mounts it only with `--testing`, the `noauth2` scheme and a loopback address; otherwise its
path is unknown. It has no logic of its own: both actions are passed in.
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
    """The policy and CORS settings from now on; the defaults are those of a normal server."""

    policy: Literal["default", "new", "open"] = "default"
    cors_origin: str | None = None


def testing_face(
    reset: Callable[[], Awaitable[None]],
    profile: Callable[[str, str | None], None],
) -> Starlette:
    """Build the face: one route, `POST /_testing/reset` with a `Profile` as its JSON body.

    Args:
        reset: empties every table and the index before it returns.
        profile: called with (policy, CORS origin or None) after the wipe; takes effect at once.

    The answer is 204 after both. It is 400 with the reason, and nothing is wiped, if the body is
    not a valid profile.
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
