"""The policy rules, in three profiles. Every rule applies to a project.

So callers with system scope, and those with a scoped role of Moorage, are always refused.

Source: the default rules of OpenStack Placement. `default` is its behavior with
`enforce_new_defaults = false`, `new` with `true`; `open` admits every caller with a token.
"""

from typing import Literal

from moorage.faces.web import Caller

Profile = Literal["default", "new", "open"]

RESHAPE = "reshaper:reshape"
USAGES = "usages"

_ADMIN_OR_SERVICE = frozenset({"admin", "service"})
_SERVICE = frozenset({"service"})


def allows(profile: Profile, rule: str, caller: Caller, target_project: str | None) -> bool:
    """Return whether a rule permits a caller's request.

    Args:
        profile: the profile in force.
        rule: its name without the prefix `placement:`.
        caller: the authenticated caller.
        target_project: the requested project; only `usages` uses it.
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
