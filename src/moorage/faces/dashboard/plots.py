"""Plots as SVG paths: a test can compare them with the ledger, and they need no script."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from moorage.wire.pools.past import HistoryPoint

WIDTH, HEIGHT = 960, 180
LEVELS_MAX = 6
TIMES_MAX = 7
ROOM = 0.985
"""Up to this part of the width, there is room for the text of a time."""

BETWEEN = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
"""Seconds between two times of an axis; the history of a pool covers at most a day."""

LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 22


class Plot(NamedTuple):
    """A pool's past: occupied units, the tickets that waited, and the axes."""

    width: int
    height: int
    occupied: str
    """The area below the most units in use."""
    waiting: str
    limit: float
    """The height of the limit."""
    levels: list[tuple[float, int]]
    """Heights, with what they stand for."""
    times: list[tuple[float, datetime]]
    """Places, with the round times that they stand for."""


def _round_step(most: int) -> int:
    """Return the distance of levels: 1, 2 or 5 with zeros, so that there are at most 6."""
    size = 1
    while True:
        for step in (size, 2 * size, 5 * size):
            if most // step < LEVELS_MAX:
                return step
        size *= 10


def _round_times(start: datetime, step: float, count: int) -> Iterator[tuple[float, datetime]]:
    """Yield the times that a clock has marks for, at most `TIMES_MAX`, as numbers of points."""
    covered = step * count
    if not covered:  # nothing has happened yet
        return
    between = next((each for each in BETWEEN if covered / each < TIMES_MAX), BETWEEN[-1])
    begin = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = math.ceil((start - begin) / timedelta(seconds=between))
    last = math.floor(((start - begin).total_seconds() + covered) / between)
    for number in range(first, last + 1):
        at = begin + timedelta(seconds=number * between)
        place = (at - start).total_seconds() / step
        if place <= count * ROOM:
            yield place, at


def plot_of(points: Sequence[HistoryPoint], step_seconds: float, units: int) -> Plot:
    """Return the plot of a pool's past; points must not be empty."""
    most = max([units, 1, *(max(one.occupied_high, one.waiting) for one in points)])
    step = (WIDTH - LEFT - RIGHT) / len(points)

    def x(number: float) -> float:
        return round(LEFT + number * step, 1)

    def y(count: int) -> float:
        return round(HEIGHT - BOTTOM - count / most * (HEIGHT - TOP - BOTTOM), 1)

    numbers = range(len(points))
    shape = [f"{x(n)},{y(points[n].occupied_high)}H{x(n + 1)}" for n in numbers]
    waiting = [f"{x(n)},{y(points[n].waiting)}H{x(n + 1)}" for n in numbers]
    return Plot(
        width=WIDTH,
        height=HEIGHT,
        occupied="M" + "L".join(shape) + f"V{y(0)}H{x(0)}Z",
        waiting="M" + "L".join(waiting),
        limit=y(units),
        levels=[(y(count), count) for count in range(0, most + 1, _round_step(most))],
        times=[
            (x(place), at) for place, at in _round_times(points[0].at, step_seconds, len(points))
        ],
    )
