"""What the commands print: data to standard output, errors to standard error, for people or JSON.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 not granted, 4 conflict, 5 server
unreachable.
"""

import json
import sys
from collections.abc import Collection, Sequence
from typing import IO, TYPE_CHECKING, Any

import click

from moorage.client.run.failures import CONFLICT, FAILED, UNREACHABLE, USAGE, failure_json
from moorage.client.run.printing import printable, printable_json

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "CONFLICT",
    "FAILED",
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
"""What stands between the columns of a drawn table."""

FOLDED = 10
"""Cells of the least width to which a column is folded."""


class Failure(click.ClickException):
    """Ends the command: one line on standard error, and an exit code.

    `code` is that of the server's refusal, if there is one; for programs, and stable.
    """

    def __init__(self, exit_code: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code  # type: ignore[misc] # click asks the instance as well

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(f"moorage: {printable(self.format_message())}", file=file or sys.stderr)


def error_json(error: click.ClickException) -> str:
    """Return the end of a command as one line of JSON; see `client.run.failures`."""
    code = error.code if isinstance(error, Failure) else None
    return failure_json(error.exit_code, error.format_message(), code)


def say(*cells: str, err: bool = False) -> None:
    """Print one line, to standard error if asked for; several cells have tabs between them."""
    click.echo("\t".join(map(printable, cells)), err=err)


def show_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(printable_json(json.dumps(value, indent=2, ensure_ascii=False)))


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], whole: Collection[str] = ()
) -> None:
    """Print a table: drawn for a terminal, see `drawn`, tab-separated for everything else."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            say(*row)
        return
    from rich.console import Console  # only now: it takes longer to load than most commands run

    console = Console()
    console.print(drawn(columns, rows, console.width, whole))


def drawn(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    whole: Collection[str] = (),
) -> "Table":
    """Return a table for a terminal of this width; nothing in it is ever cut off.

    The first column names the row: its words and those of the columns `whole` are not broken, so
    that they can be copied. All others are folded. If that needs more room than there is, each row
    is a block with a line per column.
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
            table.add_row(*map(Text, row))  # as text: square brackets are no markup
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
    """Return how wide a column must be."""
    from rich.cells import cell_len

    if unbroken:
        return max(cell_len(word) for cell in cells for word in cell.split() or [""])
    return min(FOLDED, max(map(cell_len, cells)))
