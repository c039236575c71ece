"""The differences that are meant."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.compare.differences import Difference
from tests.compare.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Deliberate:
    """A difference that is meant: its heading in the reference, and when it applies.

    `forks`: the two are in different states from there on, so the sequence ends.
    """

    name: str
    applies: Callable[[Exchange, Difference], bool]
    forks: bool = False


DELIBERATE: list[Deliberate] = []


def deliberate_of(exchange: Exchange, difference: Difference) -> Deliberate | None:
    """Return the reason of a difference, None if there is none."""
    return next((one for one in DELIBERATE if one.applies(exchange, difference)), None)
