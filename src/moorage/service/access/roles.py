"""The roles of callers: the ladder of ordered roles, and the scoped roles outside of it.

On the ladder, each role has all rights of the lower ones. A scoped role has a few rights, and only
to the objects that its token names. Rules of the form "from this role on" never include scoped
roles. Source: docs/decisions/0023-scoped-roles.md.
"""

from enum import StrEnum

from msgspec import Struct

from moorage.core.errors import Code, Error
from moorage.core.limits import POOL_NAME_LENGTH_MAX, SCOPE_NAMES_MAX
from moorage.core.wildcards import BELOW, covers, is_entry


class Role(StrEnum):
    """The ladder, in ascending order of rights."""

    READER = "reader"
    USER = "user"
    SERVICE = "service"
    OPERATOR = "operator"
    ADMIN = "admin"


class ScopedRole(StrEnum):
    """Roles outside of the ladder, restricted to a scope."""

    JANITOR = "janitor"
    """Reads, renews, releases and revokes the leases of some pools, for any owner."""
    AGENT = "agent"
    """Speaks for one machine: registers, reports, is alive, and reads its own agent."""
    ENROLLER = "enroller"
    """Creates agents of some groups that no operator has accepted yet."""
    GOVERNOR = "governor"
    """Asks for units of some pools on behalf of hosts, and holds the leases of all governors."""
    REPORTER = "reporter"
    """Joins some groups of reporters and sends their reports."""


FIELDS: dict[ScopedRole, str] = {
    ScopedRole.JANITOR: "pool",
    ScopedRole.AGENT: "agent",
    ScopedRole.ENROLLER: "group",
    ScopedRole.GOVERNOR: "pool",
    ScopedRole.REPORTER: "group",
}
"""The kind of object that the scope of each scoped role names."""

ROLES = (*Role, *ScopedRole)

_RANKS = {role: rank for rank, role in enumerate(Role)}
_STANDINGS = {
    role.value: frozenset(other.value for other in Role if _RANKS[other] <= _RANKS[role])
    for role in Role
}


class Scope(Struct, frozen=True):
    """The objects that a scoped role may act on: full names, or `PREFIX/*` for all names below."""

    role: ScopedRole
    names: tuple[str, ...]

    @property
    def field(self) -> str:
        """The kind of object that its names stand for."""
        return FIELDS[self.role]

    def covers(self, name: str) -> bool:
        """Return whether a name is within the scope."""
        return name in self.names or any(covers(one, name) for one in self.names)


def permits(least: Role, role: Role | None) -> bool:
    """Return whether a role is at least `least`; None, a scoped role, never is."""
    return role is not None and _RANKS[role] >= _RANKS[least]


def from_role(least: Role) -> frozenset[Role]:
    """Return the roles that are at least `least`."""
    return frozenset(role for role in Role if permits(least, role))


def standing(role: str) -> frozenset[str]:
    """Return the roles of the ladder whose rights a role includes; empty for a scoped role."""
    return _STANDINGS.get(role, frozenset())


def role_parse(role: str) -> Role | ScopedRole:
    """Parse the name of a role. Raises `Error`: INVALID."""
    for ladder in Role:
        if ladder.value == role:
            return ladder
    for scoped in ScopedRole:
        if scoped.value == role:
            return scoped
    raise Error(Code.INVALID, f"There is no role {role!r}; the roles are {', '.join(ROLES)}.")


def scope_parse(role: Role | ScopedRole, wanted: dict[str, list[str]]) -> Scope | None:
    """Return the scope of a token; None if its role has none.

    Args:
        role: the token's role.
        wanted: names by the kind of object.

    Raises:
        Error: INVALID, the role needs another scope, or none.
    """
    if isinstance(role, Role):
        if wanted:
            raise Error(Code.INVALID, f"A token of role '{role}' has no scope: omit it.")
        return None
    field = FIELDS[role]
    if wanted.keys() != {field} or not wanted[field]:
        raise Error(
            Code.INVALID,
            f"A token of role '{role}' needs a scope that names each {field} it is for, and nothing"
            f" else: `--for {field}=NAME`, or `--for {field}=PREFIX{BELOW}` for all below.",
        )
    names = tuple(sorted({*wanted[field]}))
    if len(names) > SCOPE_NAMES_MAX:
        raise Error(Code.INVALID, f"A scope must have at most {SCOPE_NAMES_MAX} names.")
    for name in names:
        if not (name.isprintable() and is_entry(name, POOL_NAME_LENGTH_MAX)):
            raise Error(
                Code.INVALID,
                f"The {field} {name!r} in the scope must be a name, or PREFIX{BELOW}.",
            )
    return Scope(role, names)
