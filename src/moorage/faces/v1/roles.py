"""What a caller is to the native API, and whether it may call a route: the one place that says so.

A caller has one role of the ladder, and perhaps the one project it is bound to; or a role outside
of it, with a scope. Source: docs/decisions/0005-tokens-and-roles.md, 0023-scoped-roles.md.
"""

from collections.abc import Collection
from http import HTTPStatus

from moorage.faces.v1.problems import FORBIDDEN, ProblemError
from moorage.faces.web import Caller
from moorage.service.access.roles import Role, Scope, ScopedRole, permits

_SIGNS = (
    (Role.ADMIN, frozenset({"admin"})),
    (Role.OPERATOR, frozenset({"service", "member"})),
    (Role.SERVICE, frozenset({"service"})),
    (Role.USER, frozenset({"member"})),
    (Role.READER, frozenset({"reader"})),
)
"""By which of the roles that policies see a role is known, the most trusted first."""


def role_of(caller: Caller) -> Role | None:
    """Return the most trusted role of the ladder that a caller has; None: none.

    A user acts in its own project; whoever has none may only read.
    """
    if caller.scope is not None:
        return None
    held = caller.roles - caller.foreign
    for role, signs in _SIGNS:
        if signs <= held:
            return Role.READER if role is Role.USER and caller.project_id is None else role
    return None


def project_of(caller: Caller, role: Role | None) -> str | None:
    """Return the one project that a caller is bound to; None: it may act in any."""
    return caller.project_id if role in (Role.READER, Role.USER) else None


def check_caller(
    caller: Caller, least: Role, scopes: Collection[ScopedRole], projects: bool
) -> Role | None:
    """Return the role of the ladder with which a caller may call a route; None: by its scope.

    Args:
        caller: who calls.
        least: the least role that may.
        scopes: the roles outside of the ladder that may.
        projects: whether callers that are bound to a project may.

    Raises:
        ProblemError: 403.
    """
    scope = caller.scope
    if scope is not None:
        if scope.role not in scopes:
            raise _forbidden(f"A token of role {scope.role} may not do this.")
        return None
    role = role_of(caller)
    if role is None or not permits(least, role):
        raise _forbidden(f"This needs the role {least} or above.")
    if not projects and project_of(caller, role) is not None:
        raise _forbidden("This tells of every project, and this token is bound to one.")
    return role


def check_role(role: Role | None, least: Role, what: str) -> None:
    """Raise ProblemError, 403, unless a role may do something beyond calling the route."""
    if not permits(least, role):
        raise _forbidden(f"{what} needs the role {least} or above.")


def check_scope(scope: Scope | None, names: Collection[str], *, every: bool = True) -> None:
    """Raise ProblemError, 403, unless these names are within the scope; None: there is none.

    With `every` all of them must be, otherwise one.
    """
    if scope is None:
        return
    outside = sorted(name for name in names if not scope.covers(name))
    if outside and (every or len(outside) == len(names)):
        raise _forbidden(
            f"{scope.field} {outside[0]} is not in the scope of this token: "
            f"{', '.join(scope.names)}."
        )


def _forbidden(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.FORBIDDEN, FORBIDDEN, detail)
