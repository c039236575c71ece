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
from moorage.cli.support.options import SecondsRange, example, json_option, wide_option
from moorage.cli.support.output import printable, show_json
from moorage.cli.support.tables import Column, Drawn, Row, draw, show_rows
from moorage.cli.support.terminal import has_colours
from moorage.cli.support.views.cells import state_cell
from moorage.cli.support.views.lease_text import eta_text
from moorage.cli.support.views.pool_text import state_of
from moorage.client.admission import Admission
from moorage.client.transport import UnreachableError
from moorage.wire.admission import Lease, Pool
from moorage.wire.labels import holder_of

if TYPE_CHECKING:
    from rich.text import Text

COLUMNS = (
    Column("pool"),
    Column("in use", right=True),
    Column("waiting", right=True),
    Column("state", least=8),
    Column("first", dropped=10, least=12),
    Column("eta", dropped=1),
    Column("why", "reason", least=16, last=True),
)

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
@wide_option
@json_option
def top(once: bool, every: float, wide: bool, as_json: bool) -> None:
    """Show all pools, the first ticket of each line and why it waits; press q to quit.

    On a terminal the pools in which somebody waits come first.
    """
    with at_server() as admission:
        if as_json:
            show_json(msgspec.to_builtins([*admission.pools()]))
        elif once or not (sys.stdout.isatty() and sys.stdin.isatty()):
            pools = busy_first(admission.pools()) if sys.stdout.isatty() else admission.pools()
            show_rows(COLUMNS, rows(pools), wide=wide)
        else:
            _live(admission, every, wide)


def busy_first(pools: Iterable[Pool]) -> list[Pool]:
    """Return pools in the order in which an operator looks at them; equal ones stay by name."""
    return sorted(pools, key=lambda pool: (-pool.waiting, -pool.unheard, pool.free > 0))


def rows(pools: Iterable[Pool]) -> list[Row]:
    """Return pools as lines of a table."""
    return [
        [
            pool.name,
            f"{pool.occupied}/{pool.units}",
            str(pool.waiting),
            state_cell(state_of(pool)),
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


def _live(admission: Admission, every: float, wide: bool) -> None:
    from rich.live import Live  # deferred: it takes longer to load than most commands run

    lines, remark = rows(busy_first(admission.pools())), None
    with _keys(), Live(auto_refresh=False, screen=True) as live:
        try:
            while True:
                size = live.console.size
                drawn = draw(
                    COLUMNS, lines, None if wide else size.width, colours=has_colours(os.environ)
                )
                live.update(_screen(drawn, remark, size.height), refresh=True)
                if select.select([sys.stdin], [], [], every)[0] and _read() in END_KEYS:
                    return
                try:
                    lines, remark = rows(busy_first(admission.pools())), None
                except UnreachableError as error:  # it may come back: keep showing the last state
                    remark = str(error)
        except KeyboardInterrupt:
            return


def _screen(drawn: Drawn, remark: str | None, height: int) -> "Text":
    """Return what fits on the screen; a line counts the pools that do not."""
    from rich.text import Text

    below = [line for line in (*drawn.rest, printable(remark or "")) if line]
    room = height - 1 - len(below)
    shown = drawn.rows
    if len(shown) > room:
        room = max(0, room - 1)
        below.insert(0, f"and {len(shown) - room} more")
        shown = shown[:room]
    screen = Text.from_ansi("\n".join([drawn.title, *shown, *below]), overflow="crop")
    screen.no_wrap = True
    return screen


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
