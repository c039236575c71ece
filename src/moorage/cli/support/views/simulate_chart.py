"""Charts of simulations: waiting jobs, running units and starts over the same time."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

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
    limits: Steps = field(default_factory=list)
    """The limit over time, if it changes."""


def draw(title: str, series: Sequence[Series]) -> str:
    """Return an SVG of three panels, four if a limit changes; each series has one colour."""
    top = TOP + LABEL * len(series)
    panels = [
        ("waiting jobs", [waiting(one.stays) for one in series]),
        ("running units", [running(one.stays) for one in series]),
        ("units started per minute", [starts_per_minute(one.stays) for one in series]),
    ]
    if any(one.limits for one in series):
        panels.append(("limit", [one.limits for one in series]))
    end = max((at for _, lines in panels for line in lines for at, _ in line), default=0)
    end = max(end, MINUTE)
    parts = [text(LEFT, 28, title, size=16, weight="bold")]
    for number, one in enumerate(series):
        y = TOP - 10 + number * LABEL
        parts += [dot(LEFT + 6, y - 4, number, one.label), text(LEFT + 18, y, one.label)]
    for number, (name, lines) in enumerate(panels):
        parts += _panel(top + number * (PANEL + GAP), name, lines, end)
    height = top + len(panels) * (PANEL + GAP) + 20
    parts.append(text(LEFT, height - 14, "minutes"))
    return drawing(WIDTH, height, title, parts)


def _panel(top: float, name: str, lines: Sequence[Steps], end: int) -> list[str]:
    most = max((count for line in lines for _, count in line), default=0) or 1
    bottom = top + PANEL

    def place(at: float, count: float) -> tuple[float, float]:
        return (
            LEFT + at / end * (WIDTH - LEFT - RIGHT),
            bottom - count / most * PANEL,
        )

    parts = [text(LEFT, top - 8, name, weight="bold")]
    for count in sorted({0, most // 2, most}):
        _, y = place(0, count)
        parts.append(rule(LEFT, y, WIDTH - RIGHT, y))
        parts.append(text(LEFT - 8, y + 4, str(count), anchor="end"))
    step = _round_step(end / MINUTE / TICKS)
    for tick in range(int(end / MINUTE / step) + 1):
        x, _ = place(tick * step * MINUTE, 0)
        parts.append(text(x, bottom + 16, f"{tick * step:g}", anchor="middle"))
    for number, line in enumerate(lines):
        parts.append(path([place(*point) for point in _steps(line)], number))
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


COLOURS = ("#9a3412", "#f59e0b", "#1d4ed8", "#0d9488", "#7c3aed", "#be185d", "#4d7c0f", "#334155")
FONT = 'font-family="sans-serif"'
INK = "#0f172a"
RULE = "#cbd5e1"


def colour_of(number: int) -> str:
    """Return the colour of the n-th series; the eight colours repeat."""
    return COLOURS[number % len(COLOURS)]


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    anchor: str = "start",
    weight: str = "normal",
    colour: str = INK,
) -> str:
    """Return a text element."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" {FONT} font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'
    )


def dot(x: float, y: float, series: int, tip: str) -> str:
    """Return a dot with a tooltip."""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour_of(series)}" '
        f'fill-opacity="0.85"><title>{escape(tip)}</title></circle>'
    )


def rule(x: float, y: float, to_x: float, to_y: float, colour: str = RULE) -> str:
    """Return a thin line."""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" '
        f'stroke="{colour}" stroke-width="1"/>'
    )


def path(points: Sequence[tuple[float, float]], series: int) -> str:
    """Return a line through points."""
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{drawn}" fill="none" stroke="{colour_of(series)}" stroke-width="2"/>'


def drawing(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """Return a complete SVG document."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )
