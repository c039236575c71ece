"""Output of commands: data to standard output, errors to standard error, as text or JSON.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 not granted, 4 conflict, 5 server
unreachable, 6 not permitted, 7 not found.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import IO, Any

import click

from moorage.cli.support.terminal import (
    BETWEEN,
    has_colours,
    padded,
    size_of_terminal,
    width_of,
)
from moorage.client.run.exit_codes import (
    CONFLICT,
    FAILED,
    NOT_FOUND,
    NOT_PERMITTED,
    UNREACHABLE,
    USAGE,
    failure_json,
)
from moorage.client.run.printing import printable, printable_json

__all__ = [
    "CONFLICT",
    "FAILED",
    "NOT_FOUND",
    "NOT_PERMITTED",
    "UNREACHABLE",
    "USAGE",
    "Failure",
    "error_json",
    "printable",
    "printable_json",
    "say",
    "show_json",
    "show_line",
    "show_over",
    "show_table",
]

LAST_LEAST = 16
"""The width at which the last column of a small table is not made narrower."""


class Failure(click.ClickException):
    """Ends the command with one line on standard error and an exit code.

    `code` is the stable code of the server's refusal, if there is one.
    """

    def __init__(self, exit_code: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code  # type: ignore[misc] # click asks the instance as well

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(f"moorage: {printable(self.format_message())}", file=file or sys.stderr)


def error_json(error: click.ClickException) -> str:
    """Return a failure as one line of JSON; see `client.run.failures`."""
    code = error.code if isinstance(error, Failure) else None
    return failure_json(error.exit_code, error.format_message(), code)


def say(*cells: str, err: bool = False) -> None:
    """Print one line of tab-separated cells; `err`: to standard error."""
    click.echo("\t".join(map(printable, cells)), err=err)


def forget_unwritten(stream: IO[str]) -> None:
    """Drop what a stream cannot write: the interpreter would try again, and exit with 120."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show_line(line: str) -> None:
    """Print one line of a terminal, with its colours; its texts are printable."""
    click.echo(line, color=True)


def show_file(text: str) -> None:
    """Print a file as it is, with its own ends of lines."""
    click.echo(text.encode("utf-8", "replace"), nl=False)


def show_over(text: str, before: int) -> None:
    """Print a text over the present line of standard error, which has `before` characters."""
    rest = " " * (before - len(text))
    click.echo(f"\r{text}{rest}" if text else f"\r{rest}\r", nl=False, err=True)


def show_json(value: Any) -> None:
    """Print one JSON document: a value of `wire`, or plain ones."""
    from msgspec import to_builtins

    click.echo(printable_json(json.dumps(to_builtins(value), indent=2, ensure_ascii=False)))


def say_or_json(as_json: bool, value: Any, *words: str) -> None:
    """Print a value as JSON, or the words as one line."""
    if as_json:
        show_json(value)
    else:
        say(*words)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a small table whose texts must be complete; otherwise see `tables`.

    On a terminal the last column continues below itself; words are not broken, so that they can be
    copied. Elsewhere it is tab-separated.
    """
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            say(*row)
        return
    for number, line in enumerate(_complete([columns, *rows], size_of_terminal().columns)):
        bold = not number and has_colours(os.environ)
        show_line(click.style(line, bold=True) if bold else line)


def _complete(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table."""
    cells = [[printable(cell) for cell in row] for row in rows]
    sizes = [max(map(width_of, texts)) for texts in zip(*cells, strict=True)][:-1]
    indent = sum(sizes) + len(BETWEEN) * len(sizes)
    for *first, last in cells:
        texts = [padded(text, size) for text, size in zip(first, sizes, strict=True)]
        lines = wrap(
            last, max(LAST_LEAST, width - indent), break_long_words=False, break_on_hyphens=False
        )
        yield BETWEEN.join([*texts, *lines[:1]]).rstrip()
        for line in lines[1:]:
            yield " " * indent + line
