"""Moorage's own tokens, and the mapping of their roles to those of OpenStack's policies."""

from collections.abc import Mapping
from functools import partial

from moorage.faces.auth.headers import token_of
from moorage.faces.web import Caller, Recognized
from moorage.service.access.roles import Role
from moorage.service.access.token import Token, digest_of
from moorage.service.access.tokens import AccessTokens

ROLES: dict[Role, frozenset[str]] = {
    Role.READER: frozenset({"reader"}),
    Role.USER: frozenset({"member", "reader"}),
    Role.SERVICE: frozenset({"service"}),
    Role.OPERATOR: frozenset({"service", "member", "reader"}),
    Role.ADMIN: frozenset({"admin", "member", "reader"}),
}
"""OpenStack roles by the token's role. Only `admin` may administer Moorage itself."""

NO_ROLES: frozenset[str] = frozenset()
"""The OpenStack roles of a scoped role."""


class TokenAuthenticator:
    """Validates the tokens that `moorage token create` makes."""

    def __init__(self, access: AccessTokens) -> None:
        self._access = access

    async def authenticate(self, headers: Mapping[str, str], client: str = "") -> Caller | None:
        """Return the token's holder; None without a valid token."""
        secret = token_of(headers)
        if secret is None:
            return None
        token = await self._access.find(secret)
        return None if token is None else caller_of(token)

    def recognize(self, headers: Mapping[str, str]) -> Recognized | None:
        """Return the token's holder, if memory is enough for it; None: ask `authenticate`."""
        secret = token_of(headers)
        if secret is None:
            return None
        digest = digest_of(secret)
        token = self._access.find_prompt(digest)
        if token is None:
            return None
        return Recognized(caller_of(token), partial(self._access.find_prompt, digest))


def caller_of(token: Token) -> Caller:
    """Return the holder of a token as a caller."""
    return Caller(
        user_id=token.name,
        project_id=token.project_id,
        roles=ROLES[token.role] if isinstance(token.role, Role) else NO_ROLES,
        token_id=token.id,
        scope=token.scope,
        expires_at=token.expires_at,
    )
