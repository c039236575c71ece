"""Runs the protocol and the preparation: requests and steps in threads, signals in the main one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, Optional

from moorage.client.agent.background import Background
from moorage.client.agent.preparation import Goal, Step
from moorage.client.agent.protocol import Protocol, Request
from moorage.client.run.clock import elapsed
from moorage.client.run.process.signals import ENDING, SignalCollector
from moorage.client.run.progress import Progress
from moorage.client.transport import RefusedError, UnreachableError
from moorage.systemd.notifier import Notifier

STOP_SECONDS = 30.0
"""How long a step may still take after the order to stop: compacting memory can take this long."""

SLEEP_SECONDS_MAX = 5.0
"""The longest sleep: after a suspension of the machine the timers of the kernel are late."""


ALL_THERE = "has all desired pages"

StepFunction = Callable[[Optional[Goal], float], Step]
"""Looks at the machine and does a step of work, see `Preparation.step`."""


class Loop:
    """One agent, from its first look at the machine until a signal or the server ends it."""

    def __init__(
        self,
        protocol: Protocol,
        send: Callable[[Request], Any],
        step: StepFunction,
        notices: Progress,
        notifier: Notifier,
    ) -> None:
        """Prepare the loop.

        Args:
            protocol: decides what to send.
            send: sends a request, and returns the decoded answer; called in a thread.
            step: called in a thread.
            notices: where to print.
            notifier: to systemd. The agent works as long as this loop turns, and the server or a
                timeout answers; a step may take as long as the kernel needs.
        """
        self._protocol = protocol
        self._send = send
        self._step = step
        self._notices = notices
        self._notifier = notifier
        self._said = "not registered yet"
        self._looked = False
        self._asked_at = 0.0
        self._goal: Goal | None = None
        self._begun: Goal | None = None
        self._step_at = 0.0
        self._shown: str | None = None

    def run(self) -> int:
        """Work until the end; return the exit code.

        Raises OSError, ValueError: the machine cannot be read the first time.
        """
        with SignalCollector() as signals:
            requests, steps = Background(signals.wake), Background(signals.wake)
            try:
                while True:
                    self._take(requests, steps)
                    self._print()
                    self._notify(requests)
                    if self._protocol.ended is not None:
                        break
                    self._begin(requests, steps)
                    for number in signals.wait(self._sleep(requests, steps)):
                        if number in ENDING:
                            self._notifier.stopping()
                            self._notices.say(f"stops: {signal.Signals(number).name}")
                            return 0 if number == signal.SIGTERM else 128 + number
            finally:
                steps.join(STOP_SECONDS)
        self._notices.say(self._protocol.ended.message)
        return self._protocol.ended.exit_code

    def _take(self, requests: Background, steps: Background) -> None:
        """Take what has ended in the threads."""
        step = steps.take()
        if step is not None:
            if step.error is not None:
                raise step.error
            self._observe(step.value)
        answer = requests.take()
        if answer is not None:
            if answer.error is None:
                self._protocol.answered(answer.value, elapsed())
            elif isinstance(answer.error, (UnreachableError, RefusedError, OSError, ValueError)):
                self._protocol.failed(answer.error, elapsed())
            else:
                raise answer.error

    def _observe(self, step: Step) -> None:
        self._looked = True
        self._protocol.observe(step.seen)
        # Orders that came during the step are not to wait as long as it says.
        self._step_at = elapsed() + step.wait if self._begun == self._goal else 0.0
        failure = step.seen.failure
        message = ALL_THERE if failure is None else failure.message
        if message != self._shown and (failure is not None or self._finished(step)):
            self._shown = message
            self._notices.say(message)

    def _finished(self, step: Step) -> bool:
        """Return whether a step without a failure has found everything as desired."""
        return self._begun is not None and step.wait > 0

    def _begin(self, requests: Background, steps: Background) -> None:
        """Start what is due."""
        protocol = self._protocol
        if protocol.desired is not None:
            goal = Goal(protocol.desired, protocol.desired_generation)
            if goal != self._goal:
                self._goal, self._step_at = goal, 0.0
        now = elapsed()
        if not steps.busy and self._step_at <= now:
            wanted = self._begun = self._goal
            steps.start(lambda: self._step(wanted, elapsed()))
        request = protocol.next_request(now)
        if request is not None:
            due, self._asked_at = request, now
            requests.start(lambda: self._send(due))

    def _sleep(self, requests: Background, steps: Background) -> float:
        """Return how long nothing is due, in seconds."""
        now = elapsed()
        seconds = SLEEP_SECONDS_MAX
        if not steps.busy:
            seconds = min(seconds, self._step_at - now)
        due = self._protocol.due_in(now)
        if due is not None and not requests.busy:
            seconds = min(seconds, due)
        if self._notifier.watchdog_seconds is not None:
            seconds = min(seconds, self._notifier.watchdog_seconds / 2)
        return max(0.0, seconds)

    def _print(self) -> None:
        while self._protocol.notes:
            self._said = self._protocol.notes.pop(0)
            self._notices.say(self._said)

    def _notify(self, requests: Background) -> None:
        """Tell systemd: ready after the first look at the machine, whatever the server says."""
        if self._looked and not self._notifier.is_ready:
            self._notifier.ready()
        self._notifier.status(f"{self._said}; {self._shown or 'prepares the machine'}")
        longest = self._notifier.watchdog_seconds or float("inf")
        if not requests.busy or elapsed() - self._asked_at < longest:
            self._notifier.alive()


def with_consumers(
    step: StepFunction, consumers: Callable[[], tuple[str, ...] | None]
) -> StepFunction:
    """Return a step that also observes which consumers run on the machine."""

    def both(goal: Goal | None, now: float) -> Step:
        seen, wait = step(goal, now)
        return Step(seen._replace(consumers=consumers()), wait)

    return both
