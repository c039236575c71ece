"""What a deliberate difference is."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.compare.exchange import Exchange
from tests.compare.judge.differences import Difference

DETAIL = "body /errors/0/detail"
CODE = "body /errors/0/code"
REFUSED = ("status", DETAIL, CODE, "text")
"""Where a refusal that only Moorage makes shows: the original may refuse for another reason."""
"""The aspect of a refusal's text."""


@dataclass(frozen=True, slots=True)
class Deliberate:
    """A difference that is meant: its heading in the reference, and the predicate.

    `forks`: after a change the two may be in different states, so the sequence ends there.
    """

    name: str
    applies: Callable[[Exchange, Difference], bool]
    forks: bool = False
