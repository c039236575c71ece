"""`moorage top`: shows the first ticket of each line and why it waits; live on a terminal.

`pools.py` has the lines of pools, `rooms.py` what can be looked at, `display.py` asks the
server, and knows what keys do; `screen.py` draws on the whole screen.
"""

import os
import sys

import click

from moorage.cli.commands.top.pools import COLUMNS, in_order, rows
from moorage.cli.support.command import administering, at_server, server
from moorage.cli.support.options import SecondsRange, example, json_option, wide_option
from moorage.cli.support.output import show_json
from moorage.cli.support.tables import show_rows
from moorage.client.admission import Admission

__all__ = ["rows", "top"]


@click.command(epilog=example("moorage top --every 5"))
@administering
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option(
    "--every",
    type=SecondsRange(0.1, 60),
    default=2.0,
    metavar="SECONDS",
    help="Seconds between two updates; 2 by default.",
)
@wide_option
@json_option
def top(once: bool, every: float, wide: bool, as_json: bool) -> None:
    """Show all pools, the first ticket of each line and why it waits; press ? for keys, q to quit.

    On a terminal, pools with waiting tickets come first; tab shows the fleet: capacity, agents,
    reporters.
    """
    with at_server(Admission) as admission:
        if as_json:
            show_json([*admission.pools()])
        elif once or not _is_screen():
            pools = [*admission.pools()]
            show_rows(COLUMNS, rows(in_order(pools) if sys.stdout.isatty() else pools), wide=wide)
        else:
            from moorage.cli.commands.top.display import live

            live(server(), every, wide=wide)


def _is_screen() -> bool:
    """Return whether standard input and output are a terminal on which one can draw."""
    return sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM") != "dumb"
