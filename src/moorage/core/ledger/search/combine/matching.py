"""Tests whether every part of a query can still get a separate provider, or a share of one.

A bipartite matching by augmenting paths, in which a seat may be matched several times. It takes
polynomial time, while trying all combinations takes exponential time.
"""

from collections.abc import Callable, Sequence


class Matching:
    """Parts matched with seats. A seat is an integer with one bit, a set of seats has several.

    Args:
        options: For each part the seats that may serve it.
        taken: Seats that can serve no part.
        room: How many parts a seat can serve.
    """

    def __init__(self, options: Sequence[int], taken: int, room: Callable[[int], int]) -> None:
        self._options = options
        self._full = taken
        self._shut = taken
        self._room = room
        self._served: dict[int, list[int]] = {}
        self._seen = 0
        self.steps = 0
        """The number of seats that were examined."""

    def complete(self) -> bool:
        """Can all parts be served at the same time?"""
        return all(map(self.serve, range(len(self._options))))

    def serve(self, part: int) -> bool:
        """Match one more part, besides those that are already matched."""
        self._seen = self._shut
        return self._serve(part)

    def _serve(self, part: int) -> bool:
        """As `serve`: parts that are already matched may be moved, but are never dropped."""
        options = self._options[part]
        while free := options & ~self._full:
            seat = free & -free
            self.steps += 1
            served = self._served.setdefault(seat, [])
            room = self._room(seat)
            if len(served) + 1 >= room:
                self._full |= seat
            if room:
                served.append(part)
                return True
            self._shut |= seat
        while left := options & ~self._seen:
            seat = left & -left
            self._seen |= seat
            served = self._served.get(seat, [])
            for place, other in enumerate(served):
                self.steps += 1
                if self._serve(other):
                    served[place] = part
                    return True
        return False
