"""`moorage audit`: prints the audit trail of administrative actions."""

import click

from moorage.cli.support.command import administering, administration, server_now
from moorage.cli.support.options import example, json_option, wide_option
from moorage.cli.support.output import show_json
from moorage.cli.support.tables import Column, show_rows
from moorage.cli.support.views.cells import age_cell, as_it_came

COLUMNS = (
    Column("at", "age", right=True),
    Column("who", least=12),
    Column("role", dropped=1),
    Column("action"),
    Column("target", least=16),
)


@click.command(epilog=example("moorage audit --limit 20"))
@administering
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, help="Number of entries; 50 by default."
)
@wide_option
@json_option
def audit(limit: int, wide: bool, as_json: bool) -> None:
    """Print the audit log, newest first: who did what to Moorage itself."""
    entries = administration().audit(limit)
    if as_json:
        show_json(entries)
        return
    now = server_now()
    rows = [
        [
            as_it_came(age_cell, entry["at"], now),
            entry["who"],
            entry["role"],
            entry["action"],
            entry["target"],
        ]
        for entry in entries
    ]
    show_rows(COLUMNS, rows, wide=wide)
