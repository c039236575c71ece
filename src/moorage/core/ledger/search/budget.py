"""How much work one search may do, counted in steps rather than in time: the core has no clock.

A step is one provider looked at: as an option for a part of the query, as a choice in a
combination, or in a test whether a combination can still be completed.
"""

from sys import maxsize

from moorage.core.limits import ANCHOR_STEPS_MAX, CANDIDATE_STEPS_MAX

PIECE_STEPS = 400
"""Steps after which a search may be interrupted: well below a millisecond."""


class Budget:
    """The steps that a search has taken, the two bounds on them, and when it rests.

    Args:
        whole: Steps of the search in all. Beyond it the search ends.
        anchor: Steps at one anchor between two candidates, beyond those of a way to one without
            any dead end. After them the anchor is given up.
    """

    __slots__ = ("anchor", "cut", "pause_at", "steps", "whole")

    def __init__(self, whole: int = CANDIDATE_STEPS_MAX, anchor: int = ANCHOR_STEPS_MAX) -> None:
        self.whole = whole
        self.anchor = anchor
        self.steps = 0
        self.pause_at = maxsize
        """Steps from which a rest is due; none ever is before the first call of `rested`."""
        self.cut = False
        """An anchor was given up: the answer may lack candidates that exist."""

    @property
    def is_rest_due(self) -> bool:
        """Is it time to let others work?"""
        return self.steps >= self.pause_at

    def rested(self) -> None:
        """Begin a piece of the search."""
        self.pause_at = self.steps + PIECE_STEPS

    def tire(self, steps: int) -> None:
        """Let the next rest come earlier, after work that takes time but is none of the steps."""
        self.pause_at -= steps

    @property
    def complete(self) -> bool:
        """Has everything been looked at, as far as it was asked for?"""
        return not (self.cut or self.over)

    @property
    def over(self) -> bool:
        """Has the search taken all of its steps?"""
        return self.steps > self.whole
