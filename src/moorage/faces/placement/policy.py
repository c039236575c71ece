"""Who may do what, in three profiles. Every rule is about a project.

So system scope gets nothing, nor do Moorage's own roles with a scope.

Source: the default rules of OpenStack Placement. `default` is what it does with
`enforce_new_defaults = false`, `new` with `true`; `open` admits anyone who has a token.
"""

from typing import Literal

from moorage.faces.web import Caller

Profile = Literal["default", "new", "open"]

RESHAPE = "reshaper:reshape"
USAGES = "usages"

_ADMIN_OR_SERVICE = frozenset({"admin", "service"})
_SERVICE = frozenset({"service"})


def allows(profile: Profile, rule: str, caller: Caller, target_project: str | None) -> bool:
    """Say whether a caller may do what a rule guards.

    Args:
        profile: the table in force.
        rule: its name without the prefix `placement:`.
        caller: as the authenticator told.
        target_project: the project asked about; only `usages` looks at it.
    """
    if caller.system_scope or caller.scope is not None:
        return False
    if profile == "open":
        return True
    if profile == "new" and rule == RESHAPE:
        return not _SERVICE.isdisjoint(caller.roles)
    if not _ADMIN_OR_SERVICE.isdisjoint(caller.roles):
        return True
    return (
        rule == USAGES
        and "reader" in caller.roles
        and target_project is not None
        and caller.project_id == target_project
    )
