"""Authorization of the native API: a caller's role, and whether it may call a route.

A caller has either one role of the ladder, and perhaps one project that it is bound to, or a scoped
role. Source: docs/decisions/0005-tokens-and-roles.md, 0023-scoped-roles.md.
"""

from collections.abc import Collection
from functools import lru_cache
from http import HTTPStatus

from moorage.faces.addresses import is_loopback
from moorage.faces.v1.problems import ENCRYPTION_REQUIRED, FORBIDDEN, ProblemError
from moorage.faces.v1.routing import Route
from moorage.faces.web import Caller
from moorage.service.access.roles import Role, Scope, ScopedRole, permits

_SIGNS = (
    (Role.ADMIN, frozenset({"admin"})),
    (Role.OPERATOR, frozenset({"service", "member"})),
    (Role.SERVICE, frozenset({"service"})),
    (Role.USER, frozenset({"member"})),
    (Role.READER, frozenset({"reader"})),
)
"""The OpenStack roles that identify each role of the ladder, the most trusted first."""

MACHINES = (ScopedRole.AGENT, ScopedRole.ENROLLER)
"""Roles of tokens that are on many machines and used all the time."""


@lru_cache(maxsize=256)
def role_of(caller: Caller) -> Role | None:
    """Return the most trusted role of the ladder that a caller has, or None.

    A user acts in its own project; without a project it may only read.
    """
    if caller.scope is not None:
        return None
    held = caller.roles - caller.foreign
    for role, signs in _SIGNS:
        if signs <= held:
            return Role.READER if role is Role.USER and caller.project_id is None else role
    return None


@lru_cache(maxsize=256)
def project_of(caller: Caller, role: Role | None) -> str | None:
    """Return the one project that a caller is bound to; None: it may act in any project."""
    return caller.project_id if role in (Role.READER, Role.USER) else None


def check_caller(caller: Caller, route: Route) -> Role | None:
    """Check that a caller may call a route and return its role; None: it has a scoped role.

    Everybody may call a route that needs no token. Raises ProblemError: 403, it may not.
    """
    if route.role is None:
        return role_of(caller)
    scope = caller.scope
    if scope is not None:
        if scope.role not in route.scopes:
            raise _forbidden(f"A token of role '{scope.role}' may not do this.")
        return None
    role = role_of(caller)
    if role not in route.roles:
        raise _forbidden(f"This needs {_at_least(route.role)}.")
    if not route.operation.access.projects and project_of(caller, role) is not None:
        raise _forbidden("This shows all projects, but this token is bound to one.")
    return role


def check_connection(caller: Caller, scheme: str, client: str) -> None:
    """Check that an agent or an enroller does not send its token in plain text over a network.

    Args:
        caller: the caller.
        scheme: of the connection: `http` or `https`; trusted proxies report that of their client.
        client: the address of the client.

    Raises:
        ProblemError: 403, the connection is neither encrypted nor from this host.
    """
    scope = caller.scope
    if scope is None or scope.role not in MACHINES or scheme == "https" or is_loopback(client):
        return
    raise ProblemError(
        HTTPStatus.FORBIDDEN,
        ENCRYPTION_REQUIRED,
        "Agents must use HTTPS, because their tokens would cross the network in plain text."
        " Serve HTTPS (tls_cert, or a trusted proxy), or permit it with --insecure-agents.",
    )


def check_role(role: Role | None, least: Role, what: str) -> None:
    """Check a permission beyond calling the route. Raises ProblemError: 403."""
    if not permits(least, role):
        raise _forbidden(f"{what} needs {_at_least(least)}.")


def check_project(bound: str | None, wanted: str) -> None:
    """Check that a caller that is bound to a project acts in it. Raises ProblemError: 403."""
    if bound not in (None, wanted):
        raise _forbidden(f"This token is bound to the project '{bound}'.")


def sees_places(caller: Caller, project: str | None) -> bool:
    """Return whether a caller may know who is placed where: no list shows that to others.

    `project` is the one that the caller is bound to.
    """
    return caller.scope is None and project is None


def check_places(caller: Caller, project: str | None, what: str) -> None:
    """Check that a caller may ask by what shows who is placed where. Raises ProblemError: 403."""
    if not sees_places(caller, project):
        raise _forbidden(f"{what} shows what consumers hold, which this token may not see.")


def check_scope(scope: Scope | None, names: Collection[str], *, every: bool = True) -> None:
    """Check that names are within a scope; None covers every name. Raises ProblemError: 403.

    With `every` all names must be within it, otherwise at least one.
    """
    if scope is None:
        return
    outside = [name for name in names if not scope.covers(name)]
    if outside and (every or len(outside) == len(names)):
        raise _forbidden(
            f"The {scope.field} '{min(outside)}' is not in the scope of this token: "
            f"{', '.join(scope.names)}."
        )


def _at_least(least: Role) -> str:
    """Return the roles that suffice, in words."""
    return f"the role '{least}'" + ("" if least is Role.ADMIN else " or a higher one")


def _forbidden(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.FORBIDDEN, FORBIDDEN, detail)
