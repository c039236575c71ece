"""Tokens in the native API."""

from typing import Any

from moorage.service.access.audit import Actor
from moorage.service.access.token import Token as ServiceToken
from moorage.service.access.tokens import AccessTokens
from moorage.service.native.bounds import microseconds, microseconds_or_none
from moorage.service.native.encoding import time_of, time_or_none
from moorage.wire.admin import RotationWanted, Token, TokenMade, TokenWanted


async def create_token(tokens: AccessTokens, wanted: TokenWanted, by: Actor) -> TokenMade:
    """Create a token. Raises `Error`."""
    secret, token = await tokens.create(
        wanted.name,
        wanted.role,
        wanted.project_id,
        scope=wanted.scope,
        lasts=microseconds_or_none("expires_in", wanted.expires_in),
        by=by,
    )
    return TokenMade(**_members(token), token=secret)


async def replace(
    tokens: AccessTokens, token_id: str, wanted: RotationWanted, by: Actor
) -> TokenMade:
    """Replace a token by a new one. Raises `Error`."""
    secret, token = await tokens.rotate(
        token_id,
        grace=microseconds("grace", wanted.grace),
        lasts=microseconds_or_none("expires_in", wanted.expires_in),
        by=by,
    )
    return TokenMade(**_members(token), token=secret)


def shown(token: ServiceToken) -> Token:
    """Convert a token to its wire form."""
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
