"""The terminal that controls our session: which process group may use it.

One group has the foreground: it gets Ctrl-C and Ctrl-Z. The kernel stops any other group that reads
from the terminal (SIGTTIN) or changes its settings (SIGTTOU), all of its processes at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STDIN, STDOUT = 0, 1


class Terminal:
    """The controlling terminal, whatever standard input is; there may be none."""

    def __init__(self) -> None:
        self._descriptor = -1
        with suppress(OSError):  # a daemon and a CI job have none
            self._descriptor = os.open(os.ctermid(), os.O_RDWR | os.O_NOCTTY)

    def close(self) -> None:
        """Use it no more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def foreground(self) -> int | None:
        """The process group that has the foreground; None: there is no terminal, or it is gone."""
        try:
            return os.tcgetpgrp(self._descriptor)
        except OSError:
            return None

    @property
    def wholly_ours(self) -> bool:
        """Do we have the foreground, and is the terminal both our input and our output?

        Then nobody else in a pipeline will want it. Where SIGTTIN is ignored, as in a command
        substitution, a command could not ask for the terminal later.
        """
        if self.foreground != os.getpgrp():
            return False
        both = os.isatty(STDIN) and os.isatty(STDOUT)
        return both or signal.getsignal(signal.SIGTTIN) is signal.SIG_IGN

    def give(self, group: int) -> bool:
        """Give a process group of our session the foreground; False: that is not possible."""
        try:
            with unstopped():
                os.tcsetpgrp(self._descriptor, group)
        except OSError:
            return False
        return True


@contextmanager
def unstopped() -> Iterator[None]:
    """Let this thread write to the terminal from the background without being stopped for it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
