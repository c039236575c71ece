"""Output of commands: data to standard output, errors to standard error, as text or JSON.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 not granted, 4 conflict, 5 server
unreachable, 6 not permitted, 7 not found.
"""

import json
import sys
from collections.abc import Collection, Sequence
from typing import IO, TYPE_CHECKING, Any

import click

from moorage.client.run.failures import (
    CONFLICT,
    FAILED,
    NOT_FOUND,
    NOT_PERMITTED,
    UNREACHABLE,
    USAGE,
    failure_json,
)
from moorage.client.run.printing import printable, printable_json

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "CONFLICT",
    "FAILED",
    "NOT_FOUND",
    "NOT_PERMITTED",
    "UNREACHABLE",
    "USAGE",
    "Failure",
    "drawn",
    "error_json",
    "printable",
    "printable_json",
    "say",
    "show_json",
    "show_table",
]

BETWEEN = "  "
"""Separator between the columns of a drawn table."""

FOLDED = 10
"""The minimum width of a folded column, in character cells."""


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


def show_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(printable_json(json.dumps(value, indent=2, ensure_ascii=False)))


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], whole: Collection[str] = ()
) -> None:
    """Print a table: drawn on a terminal, see `drawn`; otherwise tab-separated."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            say(*row)
        return
    from rich.console import Console  # deferred: it takes longer to load than most commands run

    console = Console()
    console.print(drawn(columns, rows, console.width, whole))


def drawn(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    whole: Collection[str] = (),
) -> "Table":
    """Return a table for a terminal of this width; no text is cut off.

    Words of the first column, and of the columns `whole`, are not broken, so that they can be
    copied. All other columns are folded. If the terminal is too narrow, each row becomes a block
    with one line per column.
    """
    from rich.table import Table
    from rich.text import Text

    unbroken = [not number or name in whole for number, name in enumerate(columns)]
    rows = [[printable(cell) for cell in row] for row in rows]
    cells = list(zip(columns, *rows, strict=True))
    least = [_least(*one) for one in zip(cells, unbroken, strict=True)]
    wide = sum(least) + len(BETWEEN) * len(columns) <= width
    table = Table(box=None, header_style="bold", show_header=wide)
    if wide:
        for name, one, size in zip(columns, unbroken, least, strict=True):
            table.add_column(name, overflow="fold", width=size if one else None)
        for row in rows:
            table.add_row(*map(Text, row))  # as Text: square brackets must not be read as markup
        return table
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for number, row in enumerate(rows):
        if number:
            table.add_row()
        for name, cell in zip(columns, row, strict=True):
            table.add_row(name, Text(cell))
    return table


def _least(cells: Sequence[str], unbroken: bool) -> int:
    """Return the minimum width of a column."""
    from rich.cells import cell_len

    if unbroken:
        return max(cell_len(word) for cell in cells for word in cell.split() or [""])
    return min(FOLDED, max(map(cell_len, cells)))
