"""In which order the walk takes the terms of a query, and the seats of each.

The order decides only how soon a combination is found. No order is good for all queries, so each
turn of a search tries another one.
"""

from collections.abc import Sequence
from typing import TypeVar

from moorage.core.ledger.search.groups import GroupPart

T = TypeVar("T")

_SPREADING = 0x9E37_79B1
"""Multiples of this odd number, modulo 2 to the 32nd, are in an order that looks random."""


def in_turn(things: list[T], turn: int) -> list[T]:
    """Return the things in the order of a turn; turn 0 leaves them as they are."""
    if not turn:
        return things
    step = (2 * turn + 1) * _SPREADING
    places = sorted(range(len(things)), key=lambda place: ((place + 1) * step) & 0xFFFF_FFFF)
    return [things[place] for place in places]


def sequence(
    terms: Sequence[GroupPart], sizes: Sequence[int], lines: Sequence[tuple[int, ...]], turn: int
) -> list[int]:
    """Return the numbers of the terms in the order of the walk.

    Those with the fewest seats are first. In odd turns, those with the largest amounts are: so
    large parts do not find only remainders of room. Terms that a same_subtree condition relates
    follow one another: after the first of them, few seats are left for the others. Those without
    resources come last, because the others decide where they can be.

    Args:
        terms: Of the query.
        sizes: The number of seats of each term.
        lines: The same_subtree conditions of each term.
        turn: Of the search.
    """

    def rank(number: int) -> tuple[bool, int, int]:
        resources = terms[number].resources
        amount = -sum(resources.values()) if turn % 2 else 0
        return (not resources, amount, sizes[number])

    waiting = sorted(range(len(terms)), key=rank)
    if not any(lines):
        return waiting
    order: list[int] = []
    related: set[int] = set()
    """The same_subtree conditions of the terms so far."""
    while waiting:
        near = (number for number in waiting if not related.isdisjoint(lines[number]))
        number = next(near, waiting[0])
        waiting.remove(number)
        order.append(number)
        related.update(lines[number])
    return order
