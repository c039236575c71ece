"""Placement's test scheme: the caller says who it is, and is believed. Never for real use.

Source: OpenStack Placement, `[api] auth_strategy = noauth2`.
"""

from collections.abc import Mapping

from moorage.faces.web import Caller

_ADMIN_USER = "admin"
_NOBODY: frozenset[str] = frozenset()
_ADMIN_ROLES = frozenset({"admin"})


class NoAuth2:
    """Reads `X-Auth-Token: USER[:PROJECT]`, `X-Roles`, `X-Project-Id`, `OpenStack-System-Scope`."""

    async def authenticate(self, headers: Mapping[str, str]) -> Caller | None:
        """Return who the request claims to come from; None without a token."""
        token = headers.get("x-auth-token")
        if not token:
            return None
        user, _, project = token.partition(":")
        roles = _ADMIN_ROLES if user == _ADMIN_USER else _NOBODY
        if "x-roles" in headers:
            roles = frozenset(role.strip().lower() for role in headers["x-roles"].split(","))
        system_scope = headers.get("openstack-system-scope") == "all"
        return Caller(
            user_id=user,
            project_id=None if system_scope else headers.get("x-project-id") or project or user,
            roles=roles,
            system_scope=system_scope,
        )
