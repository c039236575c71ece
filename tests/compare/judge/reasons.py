"""The definition of a deliberate difference."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.compare.exchange import Exchange
from tests.compare.judge.differences import Difference

DETAIL = "body /errors/0/detail"
CODE = "body /errors/0/code"
REFUSED = ("status", DETAIL, CODE, "text")
"""The aspects that a refusal by Moorage alone can change: the original may have another reason."""


@dataclass(frozen=True, slots=True)
class Deliberate:
    """A deliberate difference: its heading in the reference, and its predicate.

    With `forks` the states may differ after a change, so the sequence ends there.
    """

    name: str
    applies: Callable[[Exchange, Difference], bool]
    forks: bool = False
