"""Labels with a meaning."""

from collections.abc import Mapping

HOLDER = "holder"
"""The label of a lease that tells people for whom or for what it is held."""


def holder_of(owner: str, labels: Mapping[str, str | None]) -> str:
    """Return the name of a lease's holder for people: its label `holder`, otherwise its owner."""
    return labels.get(HOLDER) or owner
