"""When a governor makes its next pass, and what happens if one fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from moorage.integrations.clock import first_of
from moorage.integrations.provisioning.line import Line
from moorage.integrations.provisioning.start import PASS_ERRORS

CHANGES_SECONDS = 0.2
"""The least time between two passes, however often something changes."""


class Passes:
    """The passes of one governor.

    If its hosts' system or Moorage does not answer, no request waits for a unit until a pass has
    succeeded again.
    """

    def __init__(
        self,
        once: Callable[[], Awaitable[None]],
        line: Line,
        log: logging.Logger,
        failed: Callable[[str], None],
    ) -> None:
        """Prepare passes.

        Args:
            once: makes one pass.
            line: waits for units.
            log: says when passes begin and end to fail.
            failed: is called for each pass that has failed, with the reason.
        """
        self._once = once
        self._line = line
        self._log = log
        self._failed = failed
        self._fails = False

    async def tick(self) -> bool:
        """Make one pass; return whether it succeeded. It says when it begins and ends to fail."""
        try:
            await self._once()
        except PASS_ERRORS as error:
            self._line.pause()
            self._failed(str(error))
            if not self._fails:
                self._log.warning("nothing is started or released: %s", error)
            self._fails = True
            return False
        if self._fails:
            self._log.warning("passes succeed again")
        self._fails = False
        return True


class Governs(Protocol):
    """A governor of hosts."""

    async def tick(self) -> bool:
        """Make one pass; return whether it succeeded."""
        ...

    async def close(self) -> None:
        """Wait for nothing more; return when requests that are being sent are answered."""
        ...


async def passes(
    governor: Governs,
    ready: Callable[[], None],
    stop: asyncio.Event,
    interval: float,
    changed: asyncio.Event | None = None,
) -> None:
    """Make passes until `stop`: after each interval, and soon after each change.

    `ready` is called after the first pass that succeeds.
    """
    is_ready = False
    changed = changed or asyncio.Event()
    while not stop.is_set():
        changed.clear()
        if await governor.tick() and not is_ready:
            is_ready = True
            ready()
        soon = min(interval, CHANGES_SECONDS)
        await first_of(stop, seconds=soon)
        await first_of(stop, changed, seconds=interval - soon)
    await governor.close()
