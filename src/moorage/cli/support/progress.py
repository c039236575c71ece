"""How far a long command is: a bar on a terminal, elsewhere a line every ten seconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from moorage.cli.support.output import say, show_over
from moorage.cli.support.terminal import size_of_terminal
from moorage.client.run.clock import elapsed

LINE_SECONDS = 10.0
FRAME_SECONDS = 0.1
BAR_MAX = 40


class Progress:
    """Shows what is done on standard error; called with what, how much is done, and how much of.

    If how much there is, is not known, it is 0, and there is no bar.
    """

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._shown = elapsed()
        self._drawn = 0
        self._gone = False
        """Whether standard error cannot be written, for instance because its terminal is gone."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show it, if it is time."""
        now = elapsed()
        if self._gone or now - self._shown < (FRAME_SECONDS if self._live else LINE_SECONDS):
            return
        self._shown = now
        share = min(1.0, done / total) if total else None
        text = f"{what} {done:,}"
        if share is not None:
            text += f" of {total:,} ({share:.0%})"
        with self._quiet_if_gone():
            if self._live:
                self._draw(text, share)
            else:
                say(f"moorage: {text}", err=True)

    @contextmanager
    def _quiet_if_gone(self) -> Iterator[None]:
        try:
            yield
        except OSError:  # nobody can see it any more: the work goes on
            self._gone = True

    def _draw(self, text: str, share: float | None) -> None:
        columns = size_of_terminal(sys.stderr).columns
        room = columns - len(text) - 4
        width = 0 if share is None else max(0, min(BAR_MAX, room))
        filled = round(width * (share or 0.0))
        line = f"{text} [{'#' * filled}{'.' * (width - filled)}]" if width > 4 else text
        line = line[: columns - 1]  # a line that is broken could not be taken away
        show_over(line, self._drawn)
        self._drawn = len(line)

    def clear(self) -> None:
        """Take the bar away, before something else is printed."""
        if self._drawn and not self._gone:
            with self._quiet_if_gone():
                show_over("", self._drawn)
        self._drawn = 0


@contextmanager
def progress() -> Iterator[Progress]:
    """Yield what shows the progress of a command; afterwards the bar is gone."""
    shown = Progress(live=sys.stderr.isatty())
    try:
        yield shown
    finally:
        shown.clear()
