"""Tokens: make, list, rotate, revoke."""

from typing import Any

from moorage.faces.v1.bounds import microseconds, microseconds_or_none
from moorage.faces.v1.encoding import time_of, time_or_none
from moorage.faces.v1.routing import Request, Route
from moorage.service.access import Access
from moorage.service.access import Token as ServiceToken
from moorage.service.audit import Actor
from moorage.service.roles import Role
from moorage.wire.administration import RotationWanted, Token, TokenMade, Tokens, TokenWanted
from moorage.wire.pages import PageAsked


async def create(request: Request[TokenWanted, None]) -> TokenMade:
    """Make a token; its secret is told this once."""
    return await make(request.service.access, request.body, request.actor)


async def rotate(request: Request[RotationWanted, None]) -> TokenMade:
    """Make a token in the place of another one."""
    token_id = request.variables["id"]
    return await replace(request.service.access, token_id, request.body, request.actor)


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
        summary="List all tokens without their secrets, oldest first, including invalid ones.",
        handler=index,
        parameters=PageAsked,
        answer=Tokens,
    ),
    Route(
        method="POST",
        path="/v1/tokens/{id}/rotate",
        role=Role.ADMIN,
        summary="Replace a token by a new one; the old one stays valid for a while.",
        handler=rotate,
        body=RotationWanted,
        answer=TokenMade,
        status=201,
    ),
    Route(
        method="DELETE",
        path="/v1/tokens/{id}",
        role=Role.ADMIN,
        summary="Make a token worthless, at once.",
        handler=revoke,
    ),
)


async def make(tokens: Access, wanted: TokenWanted, by: Actor) -> TokenMade:
    """Make a token as it is wanted. Raises `Error`."""
    secret, token = await tokens.create(
        wanted.name,
        wanted.role,
        wanted.project_id,
        scope=wanted.scope,
        lasts=microseconds_or_none("expires_in", wanted.expires_in),
        by=by,
    )
    return TokenMade(**_members(token), token=secret)


async def replace(tokens: Access, token_id: str, wanted: RotationWanted, by: Actor) -> TokenMade:
    """Make a token in the place of another one. Raises `Error`."""
    secret, token = await tokens.rotate(
        token_id,
        grace=microseconds("grace", wanted.grace),
        lasts=microseconds_or_none("expires_in", wanted.expires_in),
        by=by,
    )
    return TokenMade(**_members(token), token=secret)


def shown(token: ServiceToken) -> Token:
    """Return a token as it is shown."""
    return Token(**_members(token))


def _members(token: ServiceToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "project_id": token.project_id,
        "scope": {} if token.scope is None else {token.scope.field: [*token.scope.names]},
        "created_at": time_of(token.created_at),
        "expires_at": time_or_none(token.expires_at),
        "rotated_at": time_or_none(token.rotated_at),
        "revoked_at": time_or_none(token.revoked_at),
        "used_at": time_or_none(token.used_at),
    }
