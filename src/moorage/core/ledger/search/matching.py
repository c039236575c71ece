"""Can every part of a query still be given a provider of its own, or its share of one?

A bipartite matching in which a provider may be matched several times, by augmenting paths. It
takes polynomial time where trying one combination after another takes exponential time.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)


class Matching(Generic[S]):
    """Parts matched with seats. `probes` counts the seats that were looked at.

    Args:
        options: For each part the seats that may serve it.
        room: How many parts a seat can serve.
    """

    def __init__(self, options: Sequence[Sequence[S]], room: Callable[[S], int]) -> None:
        self._options = options
        self._room = room
        self._served: dict[S, list[int]] = {}
        self.probes = 0

    def complete(self) -> bool:
        """Can all parts be served at the same time?"""
        return all(self._serve(part, set()) for part in range(len(self._options)))

    def _serve(self, part: int, seen: set[S]) -> bool:
        """Match one part more; those that are matched already may be moved, never dropped."""
        for seat in self._options[part]:
            if seat in seen:
                continue
            seen.add(seat)
            self.probes += 1
            served = self._served.setdefault(seat, [])
            if len(served) < self._room(seat):
                served.append(part)
                return True
            for place, other in enumerate(served):
                if self._serve(other, seen):
                    served[place] = part
                    return True
        return False
