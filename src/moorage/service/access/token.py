"""One token, its secret, its row, its successor and its description in audit rows."""

import hashlib
import secrets
from typing import Any

from msgspec import Struct

from moorage.core.clock import SECOND, Instant
from moorage.service.access.roles import Role, Scope, ScopedRole, role_parse, scope_parse
from moorage.service.values import time_of, time_or_none
from moorage.store.access.tokens import AccessToken
from moorage.wire import admin as wire

SECRET_PREFIX = "moorage_"
"""The prefix of every token, so that scanners can find leaked ones."""

SECRET_BYTES = 32


class Token(Struct, frozen=True):
    """One token, without its secret.

    `project_id` is None if it is bound to no project; `scope` is that of a scoped role. It is valid
    until before `expires_at`. `rotated_at` is when another token replaced it.
    """

    id: str
    name: str
    role: Role | ScopedRole
    project_id: str | None
    created_at: Instant
    revoked_at: Instant | None = None
    scope: Scope | None = None
    expires_at: Instant | None = None
    rotated_at: Instant | None = None
    used_at: Instant | None = None
    """When it was last used, with a precision of about an hour."""


def secret_new() -> str:
    """Return a new random secret."""
    return SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def digest_of(secret: str) -> str:
    """Return the SHA-256 of a secret, in hexadecimal."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def stored(token: Token, secret: str) -> AccessToken:
    """Return the row of a token with this secret."""
    scope = token.scope
    return AccessToken(
        id=token.id,
        sha256=digest_of(secret),
        name=token.name,
        user_id=token.name,
        project_id=token.project_id or "",
        roles=frozenset({token.role.value}),
        created_at=token.created_at,
        scope=None if scope is None else {scope.field: [*scope.names]},
        expires_at=token.expires_at,
    )


def token_of(stored: AccessToken) -> Token:
    """Return the token of a row."""
    role = role_parse(*stored.roles)
    return Token(
        id=stored.id,
        name=stored.name,
        role=role,
        project_id=stored.project_id or None,
        created_at=stored.created_at,
        revoked_at=stored.revoked_at,
        scope=scope_parse(role, stored.scope or {}),
        expires_at=stored.expires_at,
        rotated_at=stored.rotated_at,
        used_at=stored.used_at,
    )


def successor(old: Token, new_id: str, now: Instant, expires_at: Instant | None) -> Token:
    """Return the token that replaces `old`; `expires_at` None: with the same lifetime as `old`."""
    if expires_at is None and old.expires_at is not None:
        expires_at = Instant(now + old.expires_at - old.created_at)
    return Token(
        id=new_id,
        name=old.name,
        role=old.role,
        project_id=old.project_id if old.role in (Role.USER, Role.READER) else None,
        created_at=now,
        scope=old.scope,
        expires_at=expires_at,
    )


def description(token: Token) -> dict[str, object]:
    """Return the description of a token in audit rows; durations are in seconds."""
    shown: dict[str, object] = {"name": token.name, "role": token.role.value}
    shown["project_id"] = token.project_id
    if token.scope is not None:
        shown["scope"] = {token.scope.field: token.scope.names}
    if token.expires_at is not None:
        shown["lasts"] = (token.expires_at - token.created_at) / SECOND
    return shown


def token_shown(token: Token) -> wire.Token:
    """Convert a token to its wire form."""
    return wire.Token(**members_shown(token))


def members_shown(token: Token) -> dict[str, Any]:
    """Return the members of a token's wire form, which the answer with its secret has, too."""
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
