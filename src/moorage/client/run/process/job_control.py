"""Job control between the shell, the command and this process: terminal and stops.

The command has its own process group, so that signals reach all its processes. For the shell, it is
one job together with this process and the rest of the pipeline. Therefore the terminal goes to the
group that needs it, and this process is stopped and continued together with the command: while this
process is stopped, the lease is not renewed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from moorage.client.run.process.child import Child
from moorage.client.run.process.signals import SignalCollector
from moorage.client.run.progress import Progress
from moorage.client.run.terminal import Terminal

WANTS_TERMINAL = (signal.SIGTTIN, signal.SIGTTOU)


class JobControl:
    """Manages the terminal and stops while a command runs."""

    def __init__(
        self,
        child: Child,
        terminal: Terminal,
        signals: SignalCollector,
        notices: Progress,
        before_resume: Callable[[], None],
    ) -> None:
        """Take over the handling of stop signals.

        Args:
            child: the command.
            terminal: of this session.
            signals: sent to this process.
            notices: for messages.
            before_resume: called when this process continues, before the command does.
        """
        self._child = child
        self._terminal = terminal
        self._signals = signals
        self._notices = notices
        self._before_resume = before_resume
        self._shared = False
        signals.on_stop = self._forwarded

    def close(self) -> None:
        """Restore the previous state after the command has ended."""
        self._signals.on_stop = self._signals.stop
        self._terminal.close()

    def look(self) -> None:
        """React if the command was stopped since the last call."""
        number = self._child.stopped()
        if number is None:
            return
        wants, foreground = number in WANTS_TERMINAL, self._terminal.foreground
        if foreground is None:
            return  # without a terminal, the process that stopped it must continue it
        if wants and foreground in (os.getpgrp(), self._child.group):
            if self._terminal.give(self._child.group):
                self._child.signal(signal.SIGCONT)
                return
        elif not wants and foreground != self._child.group:
            return  # it was not stopped from the terminal either
        self._child.signal(signal.SIGSTOP)  # stops the rest of its group
        self._stop(number if wants else signal.SIGTSTP, group=True)

    def resume(self) -> None:
        """Continue the command, with the terminal if it had that from the beginning."""
        self._before_resume()
        if not self._shared and self._terminal.wholly_ours:
            self._terminal.give(self._child.group)
        self._child.signal(signal.SIGCONT)

    def _forwarded(self, number: int) -> None:
        """React to a signal that asks this process to stop."""
        if number in WANTS_TERMINAL and self._terminal.foreground in (
            os.getpgrp(),
            self._child.group,
        ):
            # Another process of the pipeline needs the terminal, for example a pager.
            self._shared = True
            self._terminal.give(os.getpgrp())
            os.killpg(0, signal.SIGCONT)
            return
        self._child.suspend()
        self._stop(number)

    def _stop(self, number: int, group: bool = False) -> None:
        """Stop this process, like the command, until SIGCONT."""
        if self._terminal.foreground == self._child.group:
            self._terminal.give(os.getpgrp())
        stopped = self._signals.stop(number, group)
        if not stopped and number in WANTS_TERMINAL:
            self._notices.say(
                "the command is stopped: it needs the terminal, which another job has"
            )
            return
        self.resume()
