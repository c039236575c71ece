"""How much work one search may do, counted in steps instead of time: the core has no clock.

A step is one examined provider: as an option for a part of the query, as a choice in a combination,
or in a test whether a combination can still be completed.
"""

from sys import maxsize
from typing import Final

from moorage.core.limits import ANCHOR_STEPS_MAX, CANDIDATE_STEPS_MAX

HARDER: Final = 8
"""How many times as many steps an anchor may take in the next pass."""

PIECE_STEPS = 400
"""Steps after which a search may be interrupted: well below a millisecond."""


class Budget:
    """The steps of a search, the two bounds on them, and when a pause is due.

    Args:
        whole: Steps of the whole search. Beyond this the search ends.
        anchor: Steps at one anchor between two candidates, beyond those of a direct path without
            dead ends. Beyond this the anchor is given up, in this pass.
        turn: Which order of the providers at each anchor is tried first.
    """

    __slots__ = ("anchor", "cut", "pause_at", "steps", "turn", "whole")

    def __init__(
        self,
        whole: int = CANDIDATE_STEPS_MAX,
        anchor: int = ANCHOR_STEPS_MAX,
        turn: int = 0,
    ) -> None:
        self.whole = whole
        self.anchor = anchor
        self.turn = turn
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

    @property
    def must_try_harder(self) -> bool:
        """Were anchors given up, and are there steps left for them?"""
        return self.cut and not self.over

    def try_harder(self, seed: int = 0) -> None:
        """Begin another pass over all anchors: with more steps for each, and in another order."""
        self.cut = False
        self.anchor *= HARDER
        # Odd and even turns alternate: they order the parts of a query differently.
        self.turn += 1 + 2 * seed

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
