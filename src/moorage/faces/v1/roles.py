"""What a caller is to the native API: one role, and perhaps the one project it is bound to.

Source: docs/decisions/0005-tokens-and-roles.md.
"""

from moorage.faces.web import Caller
from moorage.service.access import Role

_SIGNS = (
    (Role.ADMIN, frozenset({"admin"})),
    (Role.OPERATOR, frozenset({"service", "member"})),
    (Role.SERVICE, frozenset({"service"})),
    (Role.USER, frozenset({"member"})),
    (Role.READER, frozenset({"reader"})),
)
"""By which of the roles that policies see a role is known, the most trusted first."""

_RANKS = {role: rank for rank, role in enumerate(Role)}


def role_of(caller: Caller) -> Role | None:
    """Return the most trusted role that a caller has; None: none that means anything here.

    A user acts in its own project; whoever has none may only read.
    """
    for role, signs in _SIGNS:
        if signs <= caller.roles:
            return Role.READER if role is Role.USER and caller.project_id is None else role
    return None


def project_of(caller: Caller, role: Role) -> str | None:
    """Return the one project that a caller is bound to; None: it may act in any."""
    return caller.project_id if role in (Role.READER, Role.USER) else None


def permits(least: Role, role: Role) -> bool:
    """May a role do what needs at least another?"""
    return _RANKS[role] >= _RANKS[least]
