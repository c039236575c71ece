"""How much work one search may do, counted in steps instead of time: the core has no clock.

A step is one examined provider: as an option for a part of the query, as a choice in a combination,
or in a test whether a combination can still be completed.
"""

from sys import maxsize

from moorage.core.limits import ANCHOR_STEPS_MAX, CANDIDATE_STEPS_MAX

PIECE_STEPS = 400
"""Steps after which a search may be interrupted: well below a millisecond."""


class Budget:
    """The steps of a search, the two bounds on them, and when a pause is due.

    Args:
        whole: Steps of the whole search. Beyond this the search ends.
        anchor: Steps at one anchor between two candidates, beyond those of a direct path without
            dead ends. Beyond this the anchor is given up.
    """

    __slots__ = ("anchor", "cut", "pause_at", "steps", "whole")

    def __init__(self, whole: int = CANDIDATE_STEPS_MAX, anchor: int = ANCHOR_STEPS_MAX) -> None:
        self.whole = whole
        self.anchor = anchor
        self.steps = 0
        self.pause_at = maxsize
        """Steps from which a pause is due; none is before the first call of `rested`."""
        self.cut = False
        """An anchor was given up: the answer may lack candidates that exist."""

    @property
    def is_rest_due(self) -> bool:
        """Is a pause for other work due?"""
        return self.steps >= self.pause_at

    def rested(self) -> None:
        """Start the next piece of the search."""
        self.pause_at = self.steps + PIECE_STEPS

    def tire(self, steps: int) -> None:
        """Bring the next pause forward, after work that takes time but is not counted as steps."""
        self.pause_at -= steps

    @property
    def complete(self) -> bool:
        """Has the search examined everything that was requested?"""
        return not (self.cut or self.over)

    @property
    def over(self) -> bool:
        """Has the search used all of its steps?"""
        return self.steps > self.whole
