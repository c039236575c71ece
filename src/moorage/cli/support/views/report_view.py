"""Shows what a reporter does: in one line that changes, or in a log a line for each change."""

import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moorage.cli.support.output import printable, say
from moorage.client.run.progress import CLEAR_LINE
from moorage.core.counting import counted

if TYPE_CHECKING:
    from moorage.integrations.ironic.report.reporter import Progress


class Shown:
    """Shows what a reporter has done, on standard error."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._last = ""

    def __call__(self, name: str, progress: "Progress") -> None:
        """Show how far it is; in a log, only what has changed."""
        text = line(name, progress)
        if self._live:
            # A longer line would be wrapped, and then only its last part replaced.
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"{CLEAR_LINE}{printable(text)[:width]}")
            sys.stderr.flush()
        elif text != self._last:
            say(text, err=True)
        self._last = text

    def say(self, text: str) -> None:
        """Print a line that stays, on standard output."""
        self.clear()
        say(text)

    def clear(self) -> None:
        """Erase the line that changes, so that another one can be printed in its place."""
        if self._live:
            sys.stderr.write(CLEAR_LINE)
            sys.stderr.flush()

    def above(self, _record: logging.LogRecord) -> bool:
        """Make room for a line of the log: a filter of its handlers."""
        self.clear()
        return True


@contextmanager
def view(*, live: bool) -> Iterator[Shown]:
    """Yield what shows a reporter; `live`: standard error is a terminal."""
    shown = Shown(live=live)
    handlers = [*logging.getLogger().handlers]
    for handler in handlers:
        handler.addFilter(shown.above)
    try:
        yield shown
    finally:
        for handler in handlers:
            handler.removeFilter(shown.above)
        if live:
            sys.stderr.write("\n")


def line(name: str, progress: "Progress") -> str:
    """Return what a reporter has done, in one line."""
    text = f"{name}: {progress.own} of {counted(progress.known, 'node')}"
    text += f", {counted(len(progress.members), 'member')}; last pass: {progress.last}"
    if progress.unclassed:
        text += f"; {progress.unclassed} without resource class"
    for trouble in (progress.trouble, progress.full_trouble):
        text += f"; {trouble}" if trouble else ""
    return text
