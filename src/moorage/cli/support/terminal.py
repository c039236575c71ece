"""What a terminal is: how wide it is, whether it has colours, how wide a text is on it."""

import os
import sys
from collections.abc import Mapping

BETWEEN = "  "
"""Separator between the columns of a table."""

UNKNOWN = 80
"""The width of a terminal that does not know its own."""


def columns_of_terminal() -> int:
    """Return the width of the terminal of standard output, or what COLUMNS sets."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    return os.get_terminal_size(sys.stdout.fileno()).columns or UNKNOWN


def has_colours(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal may be sent colours; see https://no-color.org."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def width_of(text: str) -> int:
    """Return how many cells of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # deferred: few texts need it

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """Return a text with spaces up to this width."""
    return text + " " * (width - width_of(text))
