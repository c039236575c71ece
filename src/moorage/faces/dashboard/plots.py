"""Plots as SVG paths: a test can compare them with the ledger, and they need no script."""

from collections.abc import Sequence
from typing import NamedTuple

from moorage.wire.pools.past import HistoryPoint

WIDTH, HEIGHT = 960, 180
LEVELS_MAX = 6
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
    times: list[tuple[float, int]]
    """Places, with the number of the point that begins there."""


def _round_step(most: int) -> int:
    """Return the distance of levels: 1, 2 or 5 with zeros, so that there are at most 6."""
    size = 1
    while True:
        for step in (size, 2 * size, 5 * size):
            if most // step < LEVELS_MAX:
                return step
        size *= 10


def plot_of(points: Sequence[HistoryPoint], units: int) -> Plot:
    """Return the plot of a pool's past; points must not be empty."""
    most = max([units, 1, *(max(one.occupied_high, one.waiting) for one in points)])
    step = (WIDTH - LEFT - RIGHT) / len(points)

    def x(number: int) -> float:
        return round(LEFT + number * step, 1)

    def y(count: int) -> float:
        return round(HEIGHT - BOTTOM - count / most * (HEIGHT - TOP - BOTTOM), 1)

    numbers = range(len(points))
    shape = [f"{x(n)},{y(points[n].occupied_high)}H{x(n + 1)}" for n in numbers]
    waiting = [f"{x(n)},{y(points[n].waiting)}H{x(n + 1)}" for n in numbers]
    quarter = max(1, len(points) // 4)
    return Plot(
        width=WIDTH,
        height=HEIGHT,
        occupied="M" + "L".join(shape) + f"V{y(0)}H{x(0)}Z",
        waiting="M" + "L".join(waiting),
        limit=y(units),
        levels=[(y(count), count) for count in range(0, most + 1, _round_step(most))],
        times=[(x(n), n) for n in range(0, len(points), quarter)],
    )
