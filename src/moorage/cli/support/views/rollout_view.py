"""Shows how far a rollout is: live on a terminal, otherwise one line from time to time."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from moorage.cli.support.output import printable, say
from moorage.client.run.durations import spoken

if TYPE_CHECKING:
    from rich.console import Group

    from moorage.integrations.ironic.rollout import Status

ROWS_MAX = 15
"""Nodes that are shown one by one."""

Shown = Callable[["Status"], None]


@contextmanager
def view(name: str, every: float, *, live: bool) -> Iterator[Shown]:
    """Yield a function that shows how far the rollout is, on standard error."""
    if not live:
        yield _Lines(name, every)
        return
    from rich.console import Console
    from rich.live import Live  # deferred: it takes longer to load than most commands run

    with Live(console=Console(stderr=True), auto_refresh=False) as screen, _log_above():
        yield lambda status: screen.update(_screen(name, status), refresh=True)


@contextmanager
def _log_above() -> Iterator[None]:
    """Let the lines of the log appear above what is shown live, which replaces sys.stderr."""
    handlers = [one for one in logging.getLogger().handlers if type(one) is logging.StreamHandler]
    before = [one.setStream(sys.stderr) for one in handlers]
    try:
        yield
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            if stream is not None:
                handler.setStream(stream)


def line(name: str, status: "Status") -> str:
    """Return how far a rollout is, in one line."""
    from moorage.integrations.ironic.rollout import Phase

    words = {
        Phase.WAITING: "waiting",
        Phase.WORKING: "working",
        Phase.DONE: "done",
        Phase.FAILED: "failed",
        Phase.NEW: "not started",
    }
    parts = [f"{status.counts[phase]} {word}" for phase, word in words.items()]
    text = f"{name}: {', '.join(parts)} of {len(status.members)}"
    if status.eta_seconds is not None:
        text += f"; about {spoken(status.eta_seconds)} left"
    if status.stopped:
        text += f"; starts no more nodes: {status.stopped}"
    return text + (f"; {status.trouble}" if status.trouble else "")


class _Lines:
    """Prints a line when the time has come, and at each new trouble."""

    def __init__(self, name: str, every: float) -> None:
        self._name = name
        self._every = every
        self._last = float("-inf")
        self._remarks = ("", "")

    def __call__(self, status: "Status") -> None:
        remarks = (status.stopped, status.trouble)
        if remarks == self._remarks and monotonic() - self._last < self._every:
            return
        self._last, self._remarks = monotonic(), remarks
        say(line(self._name, status), err=True)


def _screen(name: str, status: "Status") -> "Group":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from moorage.integrations.ironic.rollout import Phase

    order = (Phase.FAILED, Phase.WORKING, Phase.WAITING)
    members = [one for phase in order for one in status.members if one.phase is phase]
    table = Table(box=None, show_header=False)
    for member in members[:ROWS_MAX]:
        place = "" if member.place is None else f"{member.place}."
        cells = (member.name, str(member.phase), place, member.detail)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    more = len(members) - ROWS_MAX
    rest = [Text(f"and {more} more")] if more > 0 else []
    return Group(Text(printable(line(name, status)), style="bold"), table, *rest)
