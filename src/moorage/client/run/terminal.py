"""The controlling terminal of the session, and the process group that may use it.

One group has the foreground: it gets Ctrl-C and Ctrl-Z. If another group reads from the terminal
(SIGTTIN) or changes its settings (SIGTTOU), the kernel stops all processes of that group.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STDIN, STDOUT, STDERR = 0, 1, 2


class Terminal:
    """The controlling terminal, independent of standard input; there may be none."""

    def __init__(self) -> None:
        self._descriptor = -1
        with suppress(OSError):  # a daemon and a CI job have none
            self._descriptor = os.open(os.ctermid(), os.O_RDWR | os.O_NOCTTY)

    def close(self) -> None:
        """Close the terminal."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def foreground(self) -> int | None:
        """The process group in the foreground; None if there is no terminal, or it is closed."""
        try:
            return os.tcgetpgrp(self._descriptor)
        except OSError:
            return None

    @property
    def wholly_ours(self) -> bool:
        """Whether this group has the foreground, and no other process of a pipeline can need it.

        That is the case if the terminal is both standard input and standard output. It is also True
        if SIGTTIN is ignored, as in a command substitution: the command cannot request it later.
        """
        if self.foreground != os.getpgrp():
            return False
        both = os.isatty(STDIN) and os.isatty(STDOUT)
        return both or signal.getsignal(signal.SIGTTIN) is signal.SIG_IGN

    def give(self, group: int) -> bool:
        """Give the foreground to a process group of this session; return False if impossible."""
        try:
            with unstopped():
                os.tcsetpgrp(self._descriptor, group)
        except OSError:
            return False
        return True


@contextmanager
def unstopped() -> Iterator[None]:
    """Allow this thread to write to the terminal from the background without being stopped."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
