"""How much work one search may do, counted in steps rather than in time: the core has no clock.

A step is one provider looked at: as an option for a part of the query, as a choice in a
combination, or in a test whether a combination can still be completed.
"""

from moorage.core.limits import ANCHOR_STEPS_MAX, CANDIDATE_STEPS_MAX


class Budget:
    """The steps that a search has taken, and the two bounds on them.

    Args:
        whole: Steps of the search in all. Beyond it the search ends.
        anchor: Steps at one anchor between two candidates, beyond those of a way to one without
            any dead end. After them the anchor is given up.
    """

    __slots__ = ("anchor", "cut", "steps", "whole")

    def __init__(self, whole: int = CANDIDATE_STEPS_MAX, anchor: int = ANCHOR_STEPS_MAX) -> None:
        self.whole = whole
        self.anchor = anchor
        self.steps = 0
        self.cut = False
        """An anchor was given up: the answer may lack candidates that exist."""

    @property
    def complete(self) -> bool:
        """Has everything been looked at, as far as it was asked for?"""
        return not (self.cut or self.over)

    @property
    def over(self) -> bool:
        """Has the search taken all of its steps?"""
        return self.steps > self.whole
