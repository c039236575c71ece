"""`moorage audit`: prints the audit trail of administrative actions."""

import click

from moorage.cli.support.command import administering, administration
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import show_json, show_table


@click.command(epilog=example("moorage audit --limit 20"))
@administering
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, help="Number of entries; 50 by default."
)
@json_option
def audit(limit: int, as_json: bool) -> None:
    """Print the audit log, newest first: who did what to Moorage itself."""
    entries = administration().audit(limit)
    if as_json:
        show_json(entries)
        return
    rows = [
        [entry["at"], entry["who"], entry["role"], entry["action"], entry["target"]]
        for entry in entries
    ]
    show_table(["at", "who", "role", "action", "target"], rows)
