"""The elements of charts, as SVG text."""

from collections.abc import Iterable, Sequence
from html import escape

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
