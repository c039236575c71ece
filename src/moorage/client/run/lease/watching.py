"""Watches the lease while the command runs: reports its state, and acts if it is lost."""

from __future__ import annotations

import signal
from enum import IntEnum

from moorage.client.run.clock import elapsed
from moorage.client.run.durations import spoken
from moorage.client.run.exit_codes import RUN_PREEMPTED, RUN_SUPERSEDED
from moorage.client.run.lease.renewer import LOOK_SECONDS, Renewer
from moorage.client.run.process.child import Child
from moorage.client.run.process.signals import FORWARDED, SignalCollector
from moorage.client.run.progress import Progress

TELL_SECONDS = 20.0
"""How long renewals may fail before this is reported: a restart of the server takes less."""

SETTLE_SECONDS = 10.0
"""How long a stopped command waits, before it continues, for the state of a lease in doubt."""

REST_SECONDS = 0.05
"""How often to check whether any process of an ended command is left."""

KILLED_SECONDS = 2.0
"""How long killed processes may take to disappear."""

NOT_OURS = "belongs to another user and cannot be ended"

SIGNALS_IF_LOST = {"term": signal.SIGTERM, "kill": signal.SIGKILL}


class _Doubt(IntEnum):
    """How doubtful it is whether the lease is still valid."""

    NONE = 0
    FAILING = 1
    """Renewals fail, but it is still valid."""
    UNKNOWN = 2
    """It was not renewed in time: only the server knows its state."""


class CommandWatch:
    """One command and its lease, if it has one.

    `ended_it`: the watch has ended the command; `stopped_as`: the exit code for that, because its
    holder was asked to stop.
    """

    def __init__(
        self,
        child: Child,
        keeper: Renewer | None,
        on_lost: str,
        kill_after: float,
        notices: Progress,
    ) -> None:
        self._child = child
        self._keeper = keeper
        self._on_lost = on_lost
        self._kill_after = kill_after
        self._notices = notices
        self._kill_at: float | None = None
        self._doubt = _Doubt.NONE
        self.ended_it = False
        self.stopped_as: int | None = None
        self._stop_told = False

    def seconds(self) -> float:
        """Return how long to wait before the next `look`."""
        left = LOOK_SECONDS
        if self._keeper is not None:
            left = min(left, self._keeper.seconds_left)
        if self._kill_at is not None:
            left = min(left, self._kill_at - elapsed())
        return left

    def settle(self) -> None:
        """Check the lease after this process and the command were stopped, and act."""
        if self._keeper is not None:
            self._keeper.settle(SETTLE_SECONDS)
        self.look()

    def look(self) -> None:
        """Check the lease and act: report, or end the command."""
        if self._kill_at is not None and elapsed() >= self._kill_at:
            self._kill_at = None
            self._child.end(signal.SIGKILL)
        keeper = self._keeper
        if keeper is None or self._child.look() is not None:
            return
        lost = keeper.lost
        if lost is None and not keeper.over:
            if keeper.asked_to_stop is not None and not self._stop_told:
                self._stop_told = True
                self._stop(keeper.asked_to_stop, keeper.preempted)
            self._tell(keeper)
            return
        keeper.close()
        self._keeper = None
        if lost is not None:
            self._act(lost, keeper.kill_by)
        else:
            self._notices.say("the hold is over: the lease has ended, the command continues")

    def finish(self, signals: SignalCollector) -> None:
        """Wait until all processes of an ended command are gone; kill those that remain."""
        kill_at = elapsed() if self._kill_at is None else self._kill_at
        killed = False
        while self._child.lives:
            if elapsed() >= kill_at:
                if killed:
                    return  # do not wait for processes that the kernel cannot end
                kill_at, killed = elapsed() + KILLED_SECONDS, True
            if killed:
                self._child.end(signal.SIGKILL)  # repeated for processes that were just started
            for number in signals.wait(REST_SECONDS):
                if number in FORWARDED:
                    self._child.signal(number)

    def _tell(self, keeper: Renewer) -> None:
        """Report the doubt once, whenever it changes."""
        doubt = _Doubt.NONE
        if keeper.doubtful:
            doubt = _Doubt.UNKNOWN
        elif keeper.failing_seconds >= TELL_SECONDS:
            doubt = _Doubt.FAILING
        elif keeper.failing_seconds and self._doubt is not _Doubt.NONE:
            return  # the failure is not over yet
        if doubt == self._doubt:
            return
        self._doubt = doubt
        if doubt is _Doubt.NONE:
            self._notices.say("the server answers again: the lease is renewed")
        elif doubt is _Doubt.FAILING:
            left = spoken(keeper.seconds_left)
            self._notices.say(
                f"cannot renew the lease, which lasts for another {left}; trying again:"
                f" {keeper.trouble}"
            )
        else:
            self._notices.say(
                "the lease was not renewed in time, so it may have ended and others may get its"
                f" units; the command continues, trying again: {keeper.trouble}"
            )

    def _stop(self, asked: str, preempted: bool) -> None:
        """End the command because the server asks for it; its lease is valid until then."""
        number = SIGNALS_IF_LOST.get(self._on_lost)
        if number is None:
            self._notices.say(f"the command continues until its lease ends: {asked}")
            return
        self.stopped_as = RUN_PREEMPTED if preempted else RUN_SUPERSEDED
        gets = self._end(number)
        if number == signal.SIGTERM:
            self._kill_at = elapsed() + self._kill_after
        self._notices.say(f"the command {gets}: {asked}")

    def _end(self, number: signal.Signals) -> str:
        """Send the signal that ends the command; return what it gets, for people."""
        self.ended_it = True
        permitted = self._child.end(number)
        self._child.signal(signal.SIGCONT)
        return f"gets {number.name}" if permitted else NOT_OURS

    def _act(self, lost: str, kill_by: float) -> None:
        number = SIGNALS_IF_LOST.get(self._on_lost)
        if number is None:
            self._notices.say(f"the lease is lost, the command continues without it: {lost}")
            return
        gets = self._end(number)
        if number == signal.SIGTERM:
            self._kill_at = min(elapsed() + self._kill_after, kill_by)
        self._notices.say(f"the lease is lost, the command {gets}: {lost}")
