"""What callers may do: the ladder of roles, and the scoped roles that stand outside of it.

On the ladder, each role may do all that those below it may. A scoped role may do a few things, and
those only to what its token names. It is not on the ladder: whatever is permitted from some role
on is not permitted to it. Source: docs/decisions/0023-scoped-roles.md.
"""

from enum import StrEnum

from msgspec import Struct

from moorage.core.errors import Code, Error
from moorage.core.limits import POOL_NAME_LENGTH_MAX, SCOPE_NAMES_MAX
from moorage.core.wildcards import BELOW, covers, is_entry


class Role(StrEnum):
    """The ladder, in rising order of trust."""

    READER = "reader"
    USER = "user"
    SERVICE = "service"
    OPERATOR = "operator"
    ADMIN = "admin"


class ScopedRole(StrEnum):
    """Roles outside of the ladder."""

    JANITOR = "janitor"
    """Reads, renews, releases and revokes the leases of some pools, whoever's they are."""


FIELDS: dict[ScopedRole, str] = {ScopedRole.JANITOR: "pool"}
"""What the scope of each scoped role names."""

ROLES = (*Role, *ScopedRole)

_RANKS = {role: rank for rank, role in enumerate(Role)}
_STANDINGS = {
    role.value: frozenset(other.value for other in Role if _RANKS[other] <= _RANKS[role])
    for role in Role
}


class Scope(Struct, frozen=True):
    """What a scoped role is bound to: full names, or `PREFIX/*` for all that are below."""

    role: ScopedRole
    names: tuple[str, ...]

    @property
    def field(self) -> str:
        """What its names are of."""
        return FIELDS[self.role]

    def covers(self, name: str) -> bool:
        """Is something of this name within the scope?"""
        return any(covers(one, name) for one in self.names)


def permits(least: Role, role: Role | None) -> bool:
    """May a role of the ladder do what needs at least another? None: it is not on the ladder."""
    return role is not None and _RANKS[role] >= _RANKS[least]


def standing(role: str) -> frozenset[str]:
    """Return the roles of the ladder whose rights a role has; none, if it is not on the ladder."""
    return _STANDINGS.get(role, frozenset())


def role_parse(role: str) -> Role | ScopedRole:
    """Return the role of this name. Raises `Error`: INVALID."""
    for ladder in Role:
        if ladder.value == role:
            return ladder
    for scoped in ScopedRole:
        if scoped.value == role:
            return scoped
    raise Error(Code.INVALID, f"There is no role {role!r}; the roles are {', '.join(ROLES)}.")


def scope_parse(role: Role | ScopedRole, wanted: dict[str, list[str]]) -> Scope | None:
    """Return the scope of a token of a role; None: the role has none.

    Args:
        role: of the token.
        wanted: names by the field that the role is bound to.

    Raises:
        Error: INVALID: the role needs another scope, or none.
    """
    if isinstance(role, Role):
        if wanted:
            raise Error(Code.INVALID, f"A token of role {role} has no scope: leave it out.")
        return None
    field = FIELDS[role]
    if wanted.keys() != {field} or not wanted[field]:
        raise Error(
            Code.INVALID,
            f"A token of role {role} needs a scope that names each {field} it is for, and nothing"
            f" else: `--for {field}=NAME`, or `{field}=PREFIX{BELOW}` for all below.",
        )
    names = tuple(sorted({*wanted[field]}))
    if len(names) > SCOPE_NAMES_MAX:
        raise Error(Code.INVALID, f"A scope has at most {SCOPE_NAMES_MAX} names.")
    for name in names:
        if not (name.isprintable() and is_entry(name, POOL_NAME_LENGTH_MAX)):
            raise Error(
                Code.INVALID,
                f"{field} {name!r}: a scope has names, or PREFIX{BELOW} for all names below.",
            )
    return Scope(role, names)
