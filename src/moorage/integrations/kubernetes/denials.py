"""Tells a right that is missing from roles that an API server has not read yet.

For some seconds after its start, an API server refuses requests that its roles permit: it has not
read all of them. The refusal is that of a missing right; sometimes it ends with `RBAC:
clusterrole... not found`, as it does for a binding whose role was deleted. So only time tells. A
right that was found to be missing stays missing until a request is permitted that needs it.
"""

import re
from dataclasses import dataclass

from moorage.integrations.clock import monotonic

SETTLE_SECONDS = 20.0
"""A right that is denied for this long is missing."""

FORGET_SECONDS = 120.0
"""After this time without a denial the next one is the first again, but not of a missing right."""

DENIAL = re.compile(
    r'User ".*?" (cannot [a-z]+ (?:resource|path) ".*?"'
    r'(?: in API group ".*?")?(?: in the namespace ".*?")?)'
)
"""The words of Kubernetes' authorization. Admission refuses with 403, too, but in its own words."""

ASKED = re.compile(
    r"(?P<group>/api|/apis/[^/?]+)/[^/?]+"
    r"(?P<resource>(?:/namespaces/[^/?]+)?(?:/[^/?]+)?)(?P<name>/[^/?]+)?(?P<part>[^?]*)"
)
"""The path of a request: roles say nothing of its version."""


def asked_of(verb: str, path: str) -> str:
    """Return what a role must permit for a request, in words of our own: not the single object."""
    if (found := ASKED.match(path)) is None:
        return f"{verb} {path}"
    one = "/*" if found["name"] else ""
    return f"{verb} {found['group']}{found['resource']}{one}{found['part']}"


@dataclass(frozen=True)
class _Denied:
    """A right that was denied: when first and last, and to which request, see `asked_of`."""

    first: float
    last: float
    asked: str

    @property
    def is_missing(self) -> bool:
        return self.last - self.first >= SETTLE_SECONDS


class Denials:
    """The rights that one API server has denied to one user lately."""

    def __init__(self) -> None:
        self._seen: dict[str, _Denied] = {}

    def may_pass(self, said: str, asked: str) -> bool:
        """Note a refusal of a request; return whether the right may only not be known yet."""
        found = DENIAL.search(said)
        if found is None:
            return False
        now, right = monotonic(), found[1]
        self._seen = {
            name: one
            for name, one in self._seen.items()
            if one.is_missing or now - one.last < FORGET_SECONDS
        }
        before = self._seen.get(right)
        denied = _Denied(now if before is None else before.first, now, asked)
        self._seen[right] = denied
        return not denied.is_missing

    def permitted(self, asked: str) -> None:
        """Note that a request was permitted: the rights that it needs are there."""
        if self._seen:
            self._seen = {name: one for name, one in self._seen.items() if one.asked != asked}
