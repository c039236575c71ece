"""Loops in the background: call a step again and again; after a fault, log it and try again."""

import asyncio
from collections.abc import Awaitable, Callable
from logging import Logger

Step = Callable[[], Awaitable[float | None]]
"""One round; returns the seconds to pause before the next one, or None to end the loop."""


class Loop:
    """Runs a step in a task until it is stopped, or the step ends the loop."""

    def __init__(self, log: Logger, fault: str, retry_seconds: float) -> None:
        """Create a loop that does not run yet.

        Args:
            log: for exceptions of the step.
            fault: the message for them.
            retry_seconds: pause after an exception.
        """
        self._log = log
        self._fault = fault
        self._retry_seconds = retry_seconds
        self._task: asyncio.Task[None] | None = None

    def start(
        self, step: Step, pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Start; needs a running event loop.

        The task alone holds `step` and `pause`: as methods of the owner of this loop they would
        otherwise be a reference cycle that lasts longer than the task.

        Args:
            step: one round.
            pause: waits for some seconds, or less if there is something to do.
        """
        running = self._run(step, pause)
        self._task = asyncio.get_running_loop().create_task(running, name=self._log.name)

    async def stop(self) -> None:
        """Cancel the step that is in progress, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None  # a cancelled task refers to the frame of the step

    async def _run(self, step: Step, pause: Callable[[float], Awaitable[object]]) -> None:
        while True:
            try:
                seconds = await step()
            except Exception:  # the loop outlives every fault of a step
                self._log.exception(self._fault)
                seconds = self._retry_seconds
            if seconds is None:
                return
            await pause(seconds)
