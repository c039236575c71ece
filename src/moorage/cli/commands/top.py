"""`moorage top`: shows the first ticket of each line and why it waits; live on a terminal."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import msgspec

from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import SecondsRange, example, json_option
from moorage.cli.support.output import drawn, printable, show_json, show_table
from moorage.cli.support.views.lease_text import eta_text
from moorage.cli.support.views.pool_text import state_of
from moorage.client.admission import Admission
from moorage.client.transport import UnreachableError
from moorage.wire.admission import Lease, Pool
from moorage.wire.labels import holder_of

if TYPE_CHECKING:
    from rich.console import Group

COLUMNS = ("pool", "in use", "waiting", "state", "first", "eta", "why")

END_KEYS = (b"q", b"Q", b"")
"""Keys that quit; no byte: the terminal is closed."""


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
@json_option
def top(once: bool, every: float, as_json: bool) -> None:
    """Show all pools, the first ticket of each line and why it waits; press q to quit."""
    with at_server() as admission:
        if as_json:
            show_json(msgspec.to_builtins([*admission.pools()]))
        elif once or not (sys.stdout.isatty() and sys.stdin.isatty()):
            show_table(COLUMNS, rows(admission.pools()))
        else:
            _live(admission, every)


def rows(pools: Iterable[Pool]) -> list[list[str]]:
    """Return pools as lines of a table."""
    return [
        [
            pool.name,
            f"{pool.occupied}/{pool.units}",
            str(pool.waiting),
            state_of(pool),
            *_first(pool.first),
        ]
        for pool in pools
    ]


def _first(ticket: Lease | None) -> list[str]:
    """Return a ticket's owner and key, when it may be granted, and why it waits."""
    if ticket is None or ticket.waiting is None:
        return ["-", "-", "-"]
    waiting = ticket.waiting
    return [
        f"{holder_of(ticket.owner, ticket.labels)} {ticket.labels.get('verb') or ticket.key}",
        eta_text(waiting) or "-",
        waiting.reason,
    ]


def _live(admission: Admission, every: float) -> None:
    from rich.live import Live  # deferred: it takes longer to load than most commands run

    lines, remark = rows(admission.pools()), None
    with _keys(), Live(auto_refresh=False, screen=True) as live:
        try:
            while True:
                live.update(_screen(lines, remark, live.console.width), refresh=True)
                if select.select([sys.stdin], [], [], every)[0] and _read() in END_KEYS:
                    return
                try:
                    lines, remark = rows(admission.pools()), None
                except UnreachableError as error:  # it may come back: keep showing the last state
                    remark = str(error)
        except KeyboardInterrupt:
            return


def _screen(lines: list[list[str]], remark: str | None, width: int) -> "Group":
    from rich.console import Group
    from rich.text import Text

    return Group(drawn(COLUMNS, lines, width), Text(printable(remark or ""), style="italic"))


@contextmanager
def _keys() -> Iterator[None]:
    """Make single keys readable without Enter."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _read() -> bytes:
    return os.read(sys.stdin.fileno(), 1)
