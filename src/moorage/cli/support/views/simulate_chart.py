"""Charts of simulations: waiting jobs, running units and starts over the same time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from moorage.cli.support.views import svg
from moorage.core.admission.forecast.simulate import JobTimes, running, starts_per_minute, waiting
from moorage.core.admission.forecast.statistics import Steps
from moorage.core.clock import MINUTE

WIDTH = 1_000
LEFT, RIGHT, TOP = 70, 30, 60
PANEL, GAP = 170, 50
LABEL = 18
TICKS = 10


@dataclass(frozen=True)
class Series:
    """One simulation and its name."""

    label: str
    stays: Sequence[JobTimes]


def draw(title: str, series: Sequence[Series]) -> str:
    """Return an SVG of three panels; each series has one colour in all of them."""
    top = TOP + LABEL * len(series)
    panels = [
        ("waiting jobs", [waiting(one.stays) for one in series]),
        ("running units", [running(one.stays) for one in series]),
        ("units started per minute", [starts_per_minute(one.stays) for one in series]),
    ]
    end = max((at for _, lines in panels for line in lines for at, _ in line), default=0)
    end = max(end, MINUTE)
    parts = [svg.text(LEFT, 28, title, size=16, weight="bold")]
    for number, one in enumerate(series):
        y = TOP - 10 + number * LABEL
        parts += [svg.dot(LEFT + 6, y - 4, number, one.label), svg.text(LEFT + 18, y, one.label)]
    for number, (name, lines) in enumerate(panels):
        parts += _panel(top + number * (PANEL + GAP), name, lines, end)
    height = top + len(panels) * (PANEL + GAP) + 20
    parts.append(svg.text(LEFT, height - 14, "minutes"))
    return svg.drawing(WIDTH, height, title, parts)


def _panel(top: float, name: str, lines: Sequence[Steps], end: int) -> list[str]:
    most = max((count for line in lines for _, count in line), default=0) or 1
    bottom = top + PANEL

    def place(at: float, count: float) -> tuple[float, float]:
        return (
            LEFT + at / end * (WIDTH - LEFT - RIGHT),
            bottom - count / most * PANEL,
        )

    parts = [svg.text(LEFT, top - 8, name, weight="bold")]
    for count in sorted({0, most // 2, most}):
        _, y = place(0, count)
        parts.append(svg.rule(LEFT, y, WIDTH - RIGHT, y))
        parts.append(svg.text(LEFT - 8, y + 4, str(count), anchor="end"))
    step = _round_step(end / MINUTE / TICKS)
    for tick in range(int(end / MINUTE / step) + 1):
        x, _ = place(tick * step * MINUTE, 0)
        parts.append(svg.text(x, bottom + 16, f"{tick * step:g}", anchor="middle"))
    for number, line in enumerate(lines):
        parts.append(svg.path([place(*point) for point in _steps(line)], number))
    return parts


def _steps(line: Steps) -> list[tuple[int, int]]:
    """Return the corners of a step line."""
    corners = line[:1]
    for (_, before), (at, count) in pairwise([(0, 0), *line]):
        corners += [(at, before), (at, count)]
    return corners


def _round_step(least: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is at least `least`."""
    power: float = 10.0 ** math.floor(math.log10(max(least, 0.1)))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)
