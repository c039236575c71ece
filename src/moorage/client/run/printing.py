r"""Makes text from outside safe to show on a terminal and in a log.

Owners, keys, labels and messages come from other users. Escape sequences in them could rewrite the
screen or fill the clipboard, line breaks could forge lines, and direction marks could hide text. So
characters that are not printable are shown as Python escapes: `\x1b`. So are letters that show
nothing, and all but the first of many combining marks, which would cover other lines.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from unicodedata import category

FILLERS = "\u115f\u1160\u17b4\u17b5\u3164\uffa0"
"""Letters that show nothing, see `core.texts`."""

MARKS_MAX = 4
"""Combining marks in a row, see `core.limits.COMBINING_MARKS_MAX`."""


def printable(text: str) -> str:
    """Return a text on one line, without control characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(one if shown else ascii(one)[1:-1] for one, shown in _judged(text))


def _judged(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character, and whether it is shown as it is."""
    marks = 0
    for one in text:
        marks = marks + 1 if category(one) in ("Mn", "Me") else 0
        yield one, one.isprintable() and marks <= MARKS_MAX and one not in FILLERS


def printable_json(text: str) -> str:
    """Return an equivalent, printable JSON text; its line breaks stay: they are between values."""
    if text.isascii() and text.isprintable():
        return text
    judged = _judged(text)
    return "".join(one if shown or one == "\n" else _escaped(one) for one, shown in judged)


def _escaped(character: str) -> str:
    """Return the JSON escape of a character, in ASCII."""
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def print_result(text: str, shown: dict[str, Any], words: Mapping[str, Any]) -> None:
    """Print the result of a command; nothing else goes to standard output."""
    if words["json"]:
        write(json.dumps(shown, indent=2))
    elif text:
        write(printable(text))


def write(text: str) -> None:
    """Print a line, or several, at once. Raises OSError, ValueError: standard output is closed."""
    if sys.stdout is None:  # the shell has closed it
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def misfit_text(error: Exception) -> str:
    """Return why an answer could not be decoded, without the names of Python's errors."""
    if isinstance(error, KeyError):
        return f"the member {printable(str(error))} is missing"
    if isinstance(error, AttributeError):
        return "a value has the wrong type"
    return printable(str(error))


def drop_output() -> None:
    """Forget what could not be printed: Python would try it again, and fail, when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
