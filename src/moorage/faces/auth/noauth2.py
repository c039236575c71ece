"""Placement's test scheme: the caller's claimed identity is trusted. Never for real use.

Source: OpenStack Placement, `[api] auth_strategy = noauth2`.
"""

from collections.abc import Mapping
from functools import lru_cache

from moorage.faces.web import Caller

_ADMIN_USER = "admin"
_NOBODY: frozenset[str] = frozenset()
_ADMIN_ROLES = frozenset({"admin"})


class NoAuth2:
    """Reads `X-Auth-Token: USER[:PROJECT]`, `X-Roles`, `X-Project-Id`, `OpenStack-System-Scope`."""

    async def authenticate(self, headers: Mapping[str, str], client: str = "") -> Caller | None:
        """Return the caller that the request claims; None without a token."""
        token = headers.get("x-auth-token")
        if not token:
            return None
        return _caller(
            token,
            headers.get("x-roles"),
            headers.get("x-project-id"),
            headers.get("openstack-system-scope"),
        )


@lru_cache(maxsize=64)
def _caller(token: str, roles: str | None, project_id: str | None, scope: str | None) -> Caller:
    user, _, project = token.partition(":")
    held = _ADMIN_ROLES if user == _ADMIN_USER else _NOBODY
    if roles is not None:
        held = frozenset(role.strip().lower() for role in roles.split(","))
    system_scope = scope == "all"
    return Caller(
        user_id=user,
        project_id=None if system_scope else project_id or project or user,
        roles=held,
        system_scope=system_scope,
    )
