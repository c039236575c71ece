"""Job control between the shell, the command and us: who has the terminal, who is stopped.

The command has a process group of its own, so that signals reach all that it has started. To the
shell it is one job with us and with the rest of our pipeline. Therefore the terminal goes to
whoever wants it, and the command and we are stopped together: while we are stopped nobody renews
its lease.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from moorage.client.run.process.child import Child
from moorage.client.run.process.signals import Signals
from moorage.client.run.progress import Notices
from moorage.client.run.terminal import Terminal

WANTS_TERMINAL = (signal.SIGTTIN, signal.SIGTTOU)


class JobControl:
    """Looks after the terminal and stops while a command runs."""

    def __init__(
        self,
        child: Child,
        terminal: Terminal,
        signals: Signals,
        notices: Notices,
        before_resume: Callable[[], None],
    ) -> None:
        """Take over what `signals` does when we are to stop.

        Args:
            child: the command.
            terminal: of our session.
            signals: that are sent to us.
            notices: where to say things.
            before_resume: called when we go on, before the command does.
        """
        self._child = child
        self._terminal = terminal
        self._signals = signals
        self._notices = notices
        self._before_resume = before_resume
        self._shared = False
        signals.on_stop = self._told

    def close(self) -> None:
        """The command has ended: leave everything as it was found."""
        self._signals.on_stop = self._signals.stop
        self._terminal.close()

    def look(self) -> None:
        """Act if the command was stopped since the last look."""
        number = self._child.stopped()
        if number is None:
            return
        wants, foreground = number in WANTS_TERMINAL, self._terminal.foreground
        if foreground is None:
            return  # there is no terminal: whoever has stopped it may let it go on
        if wants and foreground in (os.getpgrp(), self._child.group):
            if self._terminal.give(self._child.group):
                self._child.signal(signal.SIGCONT)
                return
        elif not wants and foreground != self._child.group:
            return  # nor was it done at the terminal
        self._child.signal(signal.SIGSTOP)  # the rest of it
        self._stop(number if wants else signal.SIGTSTP, group=True)

    def resume(self) -> None:
        """Let the command go on, with the terminal if it had that from the beginning."""
        self._before_resume()
        if not self._shared and self._terminal.wholly_ours:
            self._terminal.give(self._child.group)
        self._child.signal(signal.SIGCONT)

    def _told(self, number: int) -> None:
        """Act on a signal that is to stop us."""
        if number in WANTS_TERMINAL and self._terminal.foreground in (
            os.getpgrp(),
            self._child.group,
        ):
            # Somebody else in our pipeline wants the terminal, a pager for example.
            self._shared = True
            self._terminal.give(os.getpgrp())
            os.killpg(0, signal.SIGCONT)
            return
        self._child.suspend()
        self._stop(number)

    def _stop(self, number: int, group: bool = False) -> None:
        """Stop, as the command has, until we are told to go on."""
        if self._terminal.foreground == self._child.group:
            self._terminal.give(os.getpgrp())
        stopped = self._signals.stop(number, group)
        if not stopped and number in WANTS_TERMINAL:
            self._notices.say(
                "the command is stopped: it wants the terminal, which another job has"
            )
            return
        self.resume()
