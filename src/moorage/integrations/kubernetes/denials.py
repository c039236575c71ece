"""Tells a right that is missing from roles that an API server has not read yet.

For some seconds after its start, an API server refuses requests that its roles permit: it has not
read all of them. The refusal is that of a missing right; sometimes it ends with `RBAC:
clusterrole... not found`, as it does for a binding whose role was deleted. So only time tells.
"""

import re

from moorage.integrations.clock import monotonic

SETTLE_SECONDS = 20.0
"""A right that is denied for this long is missing."""

FORGET_SECONDS = 120.0
"""After this time without a denial, the next one is the first again."""

DENIAL = re.compile(
    r'User ".*?" (cannot [a-z]+ (?:resource|path) ".*?"'
    r'(?: in API group ".*?")?(?: in the namespace ".*?")?)'
)
"""The words of Kubernetes' authorization. Admission refuses with 403, too, but in its own words."""


class Denials:
    """The rights that one API server has denied to one user lately."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}
        """When each right was denied first, and last."""

    def may_pass(self, said: str) -> bool:
        """Note a refusal; return whether it denies a right only since a short time ago."""
        found = DENIAL.search(said)
        if found is None:
            return False
        now, right = monotonic(), found[1]
        self._seen = {
            name: times for name, times in self._seen.items() if now - times[1] < FORGET_SECONDS
        }
        first, _ = self._seen.get(right, (now, now))
        self._seen[right] = first, now
        return now - first < SETTLE_SECONDS
