"""Looks after the lease while the command runs: tells what becomes of it, acts if it is lost."""

from __future__ import annotations

import signal
from enum import IntEnum

from moorage.client.run.clock import elapsed
from moorage.client.run.durations import spoken
from moorage.client.run.lease.renewer import LOOK_SECONDS, Keeper
from moorage.client.run.process.child import Child
from moorage.client.run.process.signals import FORWARDED, Signals
from moorage.client.run.progress import Notices

TELL_SECONDS = 20.0
"""How long renewals may fail until people are told: a restart of the server takes less."""

SETTLE_SECONDS = 10.0
"""How long a command that was stopped waits for word of a lease that was not renewed meanwhile."""

REST_SECONDS = 0.05
"""How often to look whether anything is left of a command that was told to end."""

KILLED_SECONDS = 2.0
"""How long what was killed may take to go."""

SIGNALS_IF_LOST = {"term": signal.SIGTERM, "kill": signal.SIGKILL}


class _Doubt(IntEnum):
    """How sure we are that the lease is ours."""

    NONE = 0
    FAILING = 1
    """Renewals fail, and it lasts yet."""
    UNKNOWN = 2
    """It was not renewed in time: only the server knows."""


class Watch:
    """One command and its lease, if it has one. `ended_it`: we have ended the command."""

    def __init__(
        self,
        child: Child,
        keeper: Keeper | None,
        on_lost: str,
        kill_after: float,
        notices: Notices,
    ) -> None:
        self._child = child
        self._keeper = keeper
        self._on_lost = on_lost
        self._kill_after = kill_after
        self._notices = notices
        self._kill_at: float | None = None
        self._doubt = _Doubt.NONE
        self.ended_it = False

    def seconds(self) -> float:
        """Return how long there is nothing to look at."""
        left = LOOK_SECONDS
        if self._keeper is not None:
            left = min(left, self._keeper.seconds_left)
        if self._kill_at is not None:
            left = min(left, self._kill_at - elapsed())
        return left

    def settle(self) -> None:
        """Act on what has become of the lease while all of us were stopped."""
        if self._keeper is not None:
            self._keeper.settle(SETTLE_SECONDS)
        self.look()

    def look(self) -> None:
        """Act on what has become of the lease."""
        if self._kill_at is not None and elapsed() >= self._kill_at:
            self._kill_at = None
            self._child.end(signal.SIGKILL)
        keeper = self._keeper
        if keeper is None or self._child.look() is not None:
            return
        lost = keeper.lost
        if lost is None and not keeper.over:
            self._tell(keeper)
            return
        keeper.close()
        self._keeper = None
        if lost is not None:
            self._act(lost, keeper.kill_by)
        else:
            self._notices.say("the hold is over: the lease has ended, the command goes on")

    def finish(self, signals: Signals) -> None:
        """See that nothing is left of a command that we have ended: kill what does not end."""
        kill_at = elapsed() if self._kill_at is None else self._kill_at
        killed = False
        while self._child.lives:
            if elapsed() >= kill_at:
                if killed:
                    return  # what the kernel keeps is not ours to wait for
                kill_at, killed = elapsed() + KILLED_SECONDS, True
            if killed:
                self._child.end(signal.SIGKILL)  # also what was just being started
            for number in signals.wait(REST_SECONDS):
                if number in FORWARDED:
                    self._child.signal(number)

    def _tell(self, keeper: Keeper) -> None:
        """Say once how sure we are, whenever that changes."""
        doubt = _Doubt.NONE
        if keeper.doubtful:
            doubt = _Doubt.UNKNOWN
        elif keeper.failing_seconds >= TELL_SECONDS:
            doubt = _Doubt.FAILING
        elif keeper.failing_seconds and self._doubt is not _Doubt.NONE:
            return  # not over yet
        if doubt == self._doubt:
            return
        self._doubt = doubt
        if doubt is _Doubt.NONE:
            self._notices.say("the server answers again: the lease is renewed")
        elif doubt is _Doubt.FAILING:
            left = spoken(keeper.seconds_left)
            self._notices.say(
                f"the lease is not renewed ({keeper.trouble}): it lasts for {left} more,"
                " trying again"
            )
        else:
            self._notices.say(
                f"the lease was not renewed in time ({keeper.trouble}): it may have ended, and"
                " somebody else may get its units; the command goes on, trying again"
            )

    def _act(self, lost: str, kill_by: float) -> None:
        number = SIGNALS_IF_LOST.get(self._on_lost)
        if number is None:
            self._notices.say(f"the lease is lost: {lost}; the command goes on without it")
            return
        self.ended_it = True
        permitted = self._child.end(number)
        self._child.signal(signal.SIGCONT)
        if number == signal.SIGTERM:
            self._kill_at = min(elapsed() + self._kill_after, kill_by)
        gets = f"gets {number.name}" if permitted else "is another user's and cannot be ended"
        self._notices.say(f"the lease is lost: {lost}; the command {gets}")
