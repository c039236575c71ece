"""Draws SVG charts: dots on one logarithmic scale, and lines on two."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moorage.cli.support.views.simulate_chart import colour_of, dot, drawing, path, rule, text

ROW = 18
LEFT, RIGHT, TOP = 400, 40, 70
WIDTH = 1_080
LABEL_STEP = 15
LINES_HEIGHT, LINES_RIGHT, LINES_LEFT = 760, 430, 80


@dataclass(frozen=True)
class Dots:
    """One row of a dot chart. `values` are by series; a heading has none."""

    label: str
    values: dict[str, float]


@dataclass(frozen=True)
class Line:
    """One series of a line chart: points (x, y), both greater than zero."""

    label: str
    points: list[tuple[float, float]]


def dots(title: str, unit: str, series: Sequence[str], rows: Sequence[Dots]) -> str:
    """Draw a row for each line, with a dot for each series, on a logarithmic scale."""
    values = [value for row in rows for value in row.values.values() if value > 0] or [1.0]
    low, high = _decades(values)
    height = TOP + ROW * len(rows) + 40

    def across(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    parts = [text(20, 24, title, size=16, weight="bold")]
    for number, name in enumerate(series):
        where = 20 + number * (WIDTH - 40) / len(series)
        parts += [dot(where, 44, number, name), text(where + 10, 48, name)]
    for decade in range(low, high + 1):
        x = across(10.0**decade)
        parts.append(rule(x, TOP, x, height - 30))
        parts.append(text(x, height - 14, _figure(10.0**decade), anchor="middle"))
    parts.append(text(LEFT - 40, height - 14, unit, anchor="end"))
    for number, row in enumerate(rows):
        y = TOP + ROW * (number + 0.5)
        if not row.values:
            parts.append(text(20, y + 4, row.label, weight="bold"))
            continue
        parts.append(text(LEFT - 12, y + 4, row.label, anchor="end"))
        parts.append(rule(LEFT, y, WIDTH - RIGHT, y, colour="#f1f5f9"))
        for index, name in enumerate(series):
            value = row.values.get(name, 0)
            if value > 0:
                tip = f"{row.label}, {name}: {_figure(value)} {unit}"
                parts.append(dot(across(value), y, index, tip))
    return drawing(WIDTH, height, title, parts)


def lines(title: str, across: str, up: str, series: Sequence[Line]) -> str:
    """Draw lines on two logarithmic scales, with a label at the end of each."""
    points = [point for one in series for point in one.points] or [(1.0, 1.0)]
    left, right = _decades([x for x, _ in points])
    low, high = _decades([y for _, y in points])
    bottom = LINES_HEIGHT - 50

    def place(x: float, y: float) -> tuple[float, float]:
        width = WIDTH - LINES_LEFT - LINES_RIGHT
        return (
            LINES_LEFT + (math.log10(x) - left) / (right - left) * width,
            bottom - (math.log10(y) - low) / (high - low) * (bottom - TOP),
        )

    parts = [text(20, 24, title, size=16, weight="bold"), text(20, 50, up)]
    for decade in range(low, high + 1):
        x, y = place(10.0**left, 10.0**decade)
        parts.append(rule(x, y, WIDTH - LINES_RIGHT, y))
        parts.append(text(x - 8, y + 4, _figure(10.0**decade), anchor="end"))
    for value in sorted({x for x, _ in points}):
        x, _ = place(value, 10.0**low)
        parts.append(rule(x, TOP, x, bottom))
        parts.append(text(x, bottom + 18, f"{value:,.0f}".replace(",", " "), anchor="middle"))
    parts.append(text(LINES_LEFT, bottom + 38, across))
    ordered = sorted((one for one in series if one.points), key=lambda one: -one.points[-1][1])
    y = 0.0
    for number, one in enumerate(ordered):
        colour = colour_of(number)
        placed = [place(*point) for point in one.points]
        parts.append(path(placed, number))
        parts += [dot(px, py, number, one.label) for px, py in placed]
        y = max(placed[-1][1], y + LABEL_STEP)
        label_x = WIDTH - LINES_RIGHT + 16
        parts.append(rule(placed[-1][0], placed[-1][1], label_x - 3, y, colour=colour))
        parts.append(text(label_x, y + 4, one.label, colour=colour))
    height = max(LINES_HEIGHT, int(y) + 20)
    return drawing(WIDTH, height, title, parts)


def _decades(values: Iterable[float]) -> tuple[int, int]:
    known = [math.log10(value) for value in values]
    low, high = math.floor(min(known)), math.ceil(max(known))
    return low, max(high, low + 1)


def _figure(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:.3g}"
