"""Shows what a reporter does: one line that changes on a terminal, otherwise one for each pass."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moorage.cli.support.output import printable, say

if TYPE_CHECKING:
    from moorage.integrations.ironic.report.reporter import Progress

Shown = Callable[[str, "Progress"], None]


@contextmanager
def view(*, live: bool) -> Iterator[Shown]:
    """Yield a function that shows what a reporter has done, on standard error."""
    if not live:
        yield lambda name, progress: say(line(name, progress), err=True)
        return

    def shown(name: str, progress: "Progress") -> None:
        # Back to the beginning of the line, and what is left of an earlier one is erased.
        sys.stderr.write(f"\r{printable(line(name, progress))}\x1b[K")
        sys.stderr.flush()

    try:
        yield shown
    finally:
        sys.stderr.write("\n")


def line(name: str, progress: "Progress") -> str:
    """Return what a reporter has done, in one line."""
    text = f"{name}: {progress.own} of {progress.known} nodes"
    text += f", {len(progress.members)} members; last pass: {progress.last}"
    if progress.unclassed:
        text += f"; {progress.unclassed} without resource class"
    for trouble in (progress.trouble, progress.full_trouble):
        text += f"; {trouble}" if trouble else ""
    return text
