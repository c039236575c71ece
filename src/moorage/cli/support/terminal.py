"""What a terminal is: its width, its colours, whether a person is there; how wide texts are."""

import os
import re
import sys
from collections.abc import Mapping
from textwrap import wrap
from typing import IO

BETWEEN = "  "
"""Separator between the columns of a table."""

UNKNOWN = os.terminal_size((80, 24))
"""The size of a terminal that does not know its own."""


_INSIDE, _KEPT = re.compile(r"(?<![;,]) "), "\xa0"
"""Spaces where a line should not be broken, and what stands for them."""


def size_of_terminal(stream: IO[str] | None = None) -> os.terminal_size:
    """Return the size of the terminal of a stream; COLUMNS and LINES replace it.

    By default it is that of standard output.
    """
    size = os.get_terminal_size((stream or sys.stdout).fileno())
    columns, lines = size.columns or UNKNOWN[0], size.lines or UNKNOWN[1]
    return os.terminal_size((_set("COLUMNS") or columns, _set("LINES") or lines))


def _set(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0


def can_ask(*, as_json: bool) -> bool:
    """Return whether a person can be asked: output as JSON is for a program."""
    return not as_json and sys.stdin.isatty() and sys.stdout.isatty()


def has_colours(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal may be sent colours; see https://no-color.org."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def width_of(text: str) -> int:
    """Return how many cells of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # deferred: few texts need it

    return cell_len(text)


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text that is broken after commas and semicolons, if that is enough."""
    parts = _INSIDE.sub(_KEPT, text)
    if all(width_of(part) <= width for part in parts.split(" ")):
        return [line.replace(_KEPT, " ") for line in wrap(parts, width, break_on_hyphens=False)]
    return wrap(text, width, break_on_hyphens=False)


def padded(text: str, width: int) -> str:
    """Return a text with spaces up to this width."""
    return text + " " * (width - width_of(text))
