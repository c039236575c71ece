"""Labels with a meaning."""

from __future__ import annotations

from collections.abc import Mapping

HOLDER = "holder"
"""The label of a lease that tells people for whom or for what it is held."""

GOVERNOR = "governor:"
"""The prefix of the owners of leases of governors: nobody else can have such a name."""


def holder_of(owner: str, labels: Mapping[str, str | None]) -> str:
    """Return the name of a lease's holder for people: its label `holder`, otherwise its owner.

    Anybody can give a lease any label. Only that of a governor replaces the owner; that of others
    is shown with it, so that nobody passes as a host or as somebody else.
    """
    label = labels.get(HOLDER)
    if not label or label == owner:
        return owner
    return label if owner.startswith(GOVERNOR) else f"{label} ({owner})"
