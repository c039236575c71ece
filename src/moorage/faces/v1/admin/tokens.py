"""Tokens: create, list, rotate, revoke."""

from moorage.faces.v1.routing import Handlers, Request
from moorage.service.access.token import token_shown
from moorage.service.access.tokens import create_token, rotate_token
from moorage.wire.admin import RotationWanted, TokenMade, TokenRevoked, Tokens, TokenWanted
from moorage.wire.operations import admin as operations
from moorage.wire.pages import PageAsked


async def create(request: Request[TokenWanted, None]) -> TokenMade:
    """Create a token; its secret is returned only here."""
    return await create_token(request.service.access, request.body, request.actor)


async def rotate(request: Request[RotationWanted, None]) -> TokenMade:
    """Replace a token by a new one."""
    token_id = request.variables["id"]
    return await rotate_token(request.service.access, token_id, request.body, request.actor)


async def index(request: Request[None, PageAsked]) -> Tokens:
    """Return tokens, without secrets."""
    asked = request.parameters
    tokens, following = await request.service.access.page(asked.cursor, asked.limit)
    return Tokens(tokens=[token_shown(token) for token in tokens], next=following)


async def revoke(request: Request[None, TokenRevoked]) -> None:
    """Revoke a token and end its tickets, and its leases if asked to."""
    token, leases = request.variables["id"], request.parameters.revoke_leases
    await request.service.token_ends.revoke(token, request.actor, leases=leases)


HANDLERS: Handlers = {
    operations.CREATE_TOKEN: create,
    operations.LIST_TOKENS: index,
    operations.ROTATE_TOKEN: rotate,
    operations.REVOKE_TOKEN: revoke,
}
