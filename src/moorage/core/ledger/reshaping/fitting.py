"""Which consumer fits where: an exact search, each consumer whole at one place.

The search is depth first, the largest amounts first, equal ones by consumer; places in the order of
the plan. So the same question has the same answer. Largest first, because an early small amount
that blocks a large one would be found out last.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, Literal

from msgspec import Struct

from moorage.core.ids import ConsumerId
from moorage.core.ledger.reshaping.wanted import Key

FIT_STEPS_MAX = 300_000
"""Steps of one search, about a second. Without a wrong turn, each consumer takes a few."""


class NoFit(Enum):
    """Why there is no distribution."""

    INFEASIBLE = "infeasible"
    GAVE_UP = "gave_up"


INFEASIBLE: Final = NoFit.INFEASIBLE
GAVE_UP: Final = NoFit.GAVE_UP


class Item(Struct, frozen=True):
    """Units of one consumer that leave a source, and the places that take them in one piece."""

    consumer: ConsumerId
    source: Key
    amount: int
    options: tuple[Key, ...]


def fit(
    items: Sequence[Item], rooms: Mapping[Key, int], steps: int = FIT_STEPS_MAX
) -> list[tuple[Item, Key]] | Literal[NoFit.INFEASIBLE, NoFit.GAVE_UP]:
    """Return a place for every item, INFEASIBLE if there is none, or GAVE_UP after `steps` steps.

    Args:
        items: in any order.
        rooms: how many more units fit at each place.
        steps: the bound; a step looks at the room of one place.
    """
    ordered = sorted(items, key=lambda item: (-item.amount, item.options, item.consumer))
    left = {key: max(room, 0) for key, room in rooms.items()}
    if sum(item.amount for item in ordered) > sum(left.values()):
        return INFEASIBLE
    dead: set[tuple[int, int, tuple[int, ...]]] = set()
    turns: list[int] = []
    turn = 0
    failed = False
    while len(turns) < len(ordered) and steps >= 0:
        item = ordered[len(turns)]
        state = (len(turns), turn, tuple(left.values())) if failed else None
        steps -= len(left) if failed else 0
        first = turn
        turn = len(item.options) if state in dead else turn
        while turn < len(item.options) and left[item.options[turn]] < item.amount:
            turn += 1
        steps -= turn - first + 1
        if turn < len(item.options):
            left[item.options[turn]] -= item.amount
            turns.append(turn)
            turn = _first_turn(ordered, turns)
            continue
        if not turns:
            return INFEASIBLE
        failed = True
        if state is not None:
            dead.add(state)
        turn = turns.pop()
        undone = ordered[len(turns)]
        left[undone.options[turn]] += undone.amount
        turn += 1
    if steps < 0:
        return GAVE_UP
    return [(item, item.options[at]) for item, at in zip(ordered, turns, strict=True)]


def _first_turn(ordered: Sequence[Item], turns: list[int]) -> int:
    """Return the first place to try for the next item.

    Of equal items the later one never has an earlier place: exchanging them changes nothing.
    """
    at = len(turns)
    if at == len(ordered):
        return 0
    item, before = ordered[at], ordered[at - 1]
    return turns[-1] if (item.amount, item.options) == (before.amount, before.options) else 0
