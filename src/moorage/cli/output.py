"""What the commands print: data to standard output, errors to standard error, for people or JSON.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 not granted, 4 conflict, 5 server
unreachable.
"""

import json
import sys
from collections.abc import Sequence
from typing import IO, Any

import click

FAILED = 1
USAGE = 2
CONFLICT = 4
UNREACHABLE = 5


class Failure(click.ClickException):
    """Ends the command: one line on standard error, and an exit code."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc] # click asks the instance as well

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(f"moorage: {self.format_message()}", file=file or sys.stderr)


def show_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: drawn for a terminal, tab-separated for everything else."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            click.echo("\t".join(row))
        return
    from rich.console import Console  # only now: it takes longer to load than most commands run
    from rich.table import Table

    table = Table(*columns, box=None, header_style="bold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
