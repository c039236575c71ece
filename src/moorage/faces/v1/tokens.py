"""Tokens: make, list, revoke."""

from typing import Any

from moorage.faces.v1.encoding import time_of
from moorage.faces.v1.routing import Request, Route
from moorage.service import access
from moorage.service.access import Role
from moorage.wire.administration import Token, TokenMade, Tokens, TokenWanted
from moorage.wire.pages import PageAsked


async def create(request: Request[TokenWanted, None]) -> TokenMade:
    """Make a token; its secret is told this once."""
    wanted = request.body
    secret, token = await request.service.access.create(
        wanted.name, wanted.role, wanted.project_id, by=request.actor
    )
    return made(token, secret)


async def index(request: Request[None, PageAsked]) -> Tokens:
    """Return tokens, without secrets."""
    asked = request.parameters
    tokens, following = await request.service.access.page(asked.cursor, asked.limit)
    return Tokens(tokens=[shown(token) for token in tokens], next=following)


async def revoke(request: Request[None, None]) -> None:
    """Make a token worthless."""
    await request.service.access.revoke(request.variables["id"], by=request.actor)


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
        parameters=PageAsked,
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
        "created_at": time_of(token.created_at),
        "revoked_at": None if token.revoked_at is None else time_of(token.revoked_at),
    }
