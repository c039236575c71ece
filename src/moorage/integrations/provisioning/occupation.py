"""Which units a host is to have, by what its system says of it: one rule for every system.

Work that has failed is no work: while a host has an error and nothing works on it, it needs no
unit, whatever state it is in. It keeps the one that it has only if it tries again by itself and
nothing of ours holds it back: then its next try may begin at any moment.
"""

from enum import Enum


class Occupation(Enum):
    """The effect of a host on its units."""

    NEEDS = "needs"
    """It works, or may begin at any moment: found without units, it is counted."""
    KEEPS = "keeps"
    """It does not work now, and may do so by itself: units that it has stay."""
    FREE = "free"
    """It does not work: units that it has are released."""

    @property
    def keeps(self) -> bool:
        """Whether units that it has stay."""
        return self is not Occupation.FREE


def occupation_of(*, works: bool, failed: bool = False, retries: bool = False) -> Occupation:
    """Return what a host does to its units.

    Args:
        works: its state says that it works, or that it may begin at any moment.
        failed: its work has failed, and nothing works on it now.
        retries: it tries again by itself, which nothing of ours holds back, and which must wait for
            its turn.
    """
    if not works:
        return Occupation.FREE
    if not failed:
        return Occupation.NEEDS
    return Occupation.KEEPS if retries else Occupation.FREE
