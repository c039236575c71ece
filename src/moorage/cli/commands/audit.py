"""`moorage audit`: who did what to Moorage itself."""

import click

from moorage.cli.support.command import administering, administration
from moorage.cli.support.options import json_option
from moorage.cli.support.output import show_json, show_table


@click.command()
@administering
@click.option("--limit", type=click.IntRange(1, 1000), default=50, help="How many; 50 by default.")
@json_option
def audit(limit: int, as_json: bool) -> None:
    """Print who did what to Moorage itself, newest first."""
    entries = administration().audit(limit)
    if as_json:
        show_json(entries)
        return
    rows = [
        [entry["at"], entry["who"], entry["role"], entry["action"], entry["target"]]
        for entry in entries
    ]
    show_table(["at", "who", "role", "action", "target"], rows)
