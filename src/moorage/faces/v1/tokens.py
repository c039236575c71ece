"""Tokens: make, list, revoke."""

from datetime import UTC, datetime
from typing import Any

from moorage.core.clock import Instant
from moorage.faces.v1.routing import Request, Route
from moorage.service import access
from moorage.service.access import Role
from moorage.wire.administration import Token, TokenMade, Tokens, TokenWanted

MICROSECONDS = 1_000_000


async def create(request: Request[TokenWanted, None]) -> TokenMade:
    """Make a token; its secret is told this once."""
    wanted = request.body
    secret, token = await request.service.access.create(wanted.name, wanted.role, wanted.project_id)
    return made(token, secret)


async def index(request: Request[None, None]) -> Tokens:
    """Return all tokens, without secrets."""
    return Tokens(tokens=[shown(token) for token in await request.service.access.list()])


async def revoke(request: Request[None, None]) -> None:
    """Make a token worthless."""
    await request.service.access.revoke(request.variables["id"])


ROUTES = (
    Route(
        method="POST",
        path="/v1/tokens",
        role=Role.ADMIN,
        summary="Make a token; the answer alone tells its secret.",
        handler=create,
        body=TokenWanted,
        answer=TokenMade,
        status=201,
    ),
    Route(
        method="GET",
        path="/v1/tokens",
        role=Role.ADMIN,
        summary="List tokens without their secrets, revoked ones too, oldest first.",
        handler=index,
        answer=Tokens,
    ),
    Route(
        method="DELETE",
        path="/v1/tokens/{id}",
        role=Role.ADMIN,
        summary="Make a token worthless, at once.",
        handler=revoke,
    ),
)


def shown(token: access.Token) -> Token:
    """Return a token as it is shown."""
    return Token(**_members(token))


def made(token: access.Token, secret: str) -> TokenMade:
    """Return a new token as it is shown once."""
    return TokenMade(**_members(token), token=secret)


def _members(token: access.Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "project_id": token.project_id,
        "created_at": _time(token.created_at),
        "revoked_at": None if token.revoked_at is None else _time(token.revoked_at),
    }


def _time(instant: Instant) -> datetime:
    return datetime.fromtimestamp(instant / MICROSECONDS, UTC)
