"""What every handler of the native API shares: its door, its input, its answers."""

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from moorage.core.errors import Error
from moorage.faces.v1.problems import STATUSES, problem
from moorage.faces.web import (
    Authenticator,
    Limits,
    RefusalError,
    body_read,
    headers_of,
    json_decode,
    request_id_new,
)

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]

ADMIN = "admin"

log = logging.getLogger("moorage.v1")


class Door(Struct, frozen=True):
    """Lets administrators in, gives every answer its request id and every refusal its shape."""

    authenticator: Authenticator
    limits: Limits

    def admin(self, handler: Handler) -> Handler:
        """Wrap a handler that only the role `admin` may call."""

        async def guarded(request: Request) -> Response:
            request_id = request_id_new()
            response = await self._answer(handler, request, request_id)
            response.headers["x-openstack-request-id"] = request_id
            return response

        return guarded

    async def _answer(self, handler: Handler, request: Request, request_id: str) -> Response:
        try:
            caller = await self.authenticator.authenticate(headers_of(request.scope))
            if caller is None:
                return problem(401, "unauthenticated", "A valid token is needed.", request_id)
            if ADMIN not in caller.roles:
                return problem(403, "forbidden", "Only the role admin may do this.", request_id)
            return await handler(request)
        except RefusalError as refusal:
            return problem(refusal.status, "refused", refusal.message, request_id)
        except Error as error:
            return problem(STATUSES[error.code], error.code, error.message, request_id)
        except Exception:
            log.exception("%s %s %s failed", request_id, request.method, request.url.path)
            return problem(500, "internal", "The server failed; its log says why.", request_id)

    async def body(self, request: Request, kind: type[T]) -> T:
        """Read a request's JSON body as `kind`. Raises RefusalError."""
        raw = await body_read(
            headers_of(request.scope),
            request.receive,
            self.limits.body_bytes_max,
            "body_bytes_max",
        )
        try:
            return msgspec.convert(json_decode(raw), kind)
        except msgspec.ValidationError as error:
            raise RefusalError(HTTPStatus.BAD_REQUEST, f"The body does not fit: {error}") from None


def answer(value: Any, status: int = 200) -> Response:
    """Return a JSON answer."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")
