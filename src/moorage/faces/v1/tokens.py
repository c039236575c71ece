"""Tokens: make, list, revoke."""

from datetime import UTC, datetime

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from moorage.core.clock import Instant
from moorage.faces.v1.handling import Door, answer
from moorage.service.access import Access, Token

MICROSECONDS = 1_000_000


class TokenWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """The body that asks for a new token."""

    name: str
    role: str
    project_id: str | None = None


class TokenShown(Struct, frozen=True, omit_defaults=True):
    """A token as it is shown; `token` is its secret, only in the answer that makes it."""

    id: str
    name: str
    role: str
    project_id: str | None
    created_at: datetime
    revoked_at: datetime | None = None
    token: str | None = None


class Tokens:
    """The handlers of `/v1/tokens`."""

    def __init__(self, access: Access, door: Door) -> None:
        self._access = access
        self._door = door

    async def create(self, request: Request) -> Response:
        """POST: make a token; 201 with its secret."""
        wanted = await self._door.body(request, TokenWanted)
        secret, token = await self._access.create(wanted.name, wanted.role, wanted.project_id)
        return answer(shown(token, secret), 201)

    async def index(self, request: Request) -> Response:
        """GET: all tokens, without secrets."""
        return answer({"tokens": [shown(token) for token in await self._access.list()]})

    async def revoke(self, request: Request) -> Response:
        """DELETE: make a token worthless; 204."""
        await self._access.revoke(request.path_params["id"])
        return Response(status_code=204)


def shown(token: Token, secret: str | None = None) -> TokenShown:
    """Return how a token is shown."""
    return TokenShown(
        id=token.id,
        name=token.name,
        role=token.role,
        project_id=token.project_id,
        created_at=_time(token.created_at),
        revoked_at=None if token.revoked_at is None else _time(token.revoked_at),
        token=secret,
    )


def _time(instant: Instant) -> datetime:
    return datetime.fromtimestamp(instant / MICROSECONDS, UTC)
