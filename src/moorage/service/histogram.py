"""Counts of durations by buckets, in plain lists: cheap enough for every commit and request."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple


class Buckets(NamedTuple):
    """The durations of one label."""

    label: str
    counts: list[int]
    """By bucket: those above the bound before and not above its own; the last has no bound."""
    seconds: float
    """Their sum."""


class Histogram:
    """Durations in seconds, by one label."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        """The upper bounds of the buckets, ascending."""
        self._counts: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def add(self, label: str, seconds: float) -> None:
        """Count one duration."""
        counts = self._counts.get(label)
        if counts is None:
            counts = self._counts[label] = [0] * (len(self.bounds) + 1)
            self._seconds[label] = 0.0
        counts[bisect_left(self.bounds, seconds)] += 1
        self._seconds[label] += seconds

    def drop(self, label: str) -> None:
        """Forget a label."""
        self._counts.pop(label, None)
        self._seconds.pop(label, None)

    def __iter__(self) -> Iterator[Buckets]:
        for label, counts in self._counts.items():
            yield Buckets(label, counts, self._seconds[label])
