"""Passes over all nodes while the gate runs: at intervals, and soon after a decided request."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.durations import Durations
from moorage.integrations.ironic.gate.metrics import GateMetrics
from moorage.integrations.ironic.reconcile import Picture, Reconciler
from moorage.integrations.provisioning.pools import PoolError
from moorage.integrations.provisioning.start import PASS_ERRORS

INTERVALS = ((200, 1.0), (1_000, 2.0))
"""Seconds between two passes, up to this many nodes; a list of 1,000 costs Ironic 0.14 s."""

INTERVAL_MAX = 5.0
NUDGED = 0.25
"""A pass that somebody asks for begins after this part of the interval at the earliest."""

log = logging.getLogger("moorage.gate")


class Watch:
    """Passes over all nodes. `ready` is set when the first one has succeeded."""

    def __init__(
        self,
        reconciler: Reconciler,
        meters: GateMetrics,
        check: Callable[[], Awaitable[object]],
        *,
        once: bool = False,
    ) -> None:
        """Prepare the passes.

        Args:
            reconciler: makes a pass.
            meters: show what each has seen.
            check: raises PoolError while nothing may be granted; done before the first pass.
            once: end after the first pass that has succeeded.
        """
        self._reconciler = reconciler
        self._meters = meters
        self._check = check
        self._once = once
        self._asked = asyncio.Event()
        self.ready = asyncio.Event()
        self.tried = asyncio.Event()
        """The first pass has ended, in any way."""
        self.picture = Picture()
        self.durations = Durations()
        self.trouble = "it has not read all nodes yet"
        """Why the last pass failed; empty: it did not."""
        meters.passes.ages = not once

    def nudge(self) -> None:
        """Make a pass soon: a host may have begun or ended its work."""
        self._asked.set()

    async def run(self) -> None:
        """Pass over the nodes until cancelled."""
        while not (self._once and self.ready.is_set()):
            await self._pass()
            interval = self._interval()
            await asyncio.sleep(interval * NUDGED)
            try:
                async with asyncio.timeout(interval * (1 - NUDGED)):
                    await self._asked.wait()
            except TimeoutError:
                pass

    async def _pass(self) -> None:
        self._asked.clear()
        try:
            if not self.ready.is_set():
                await self._check()
            picture = await self._reconciler.run_once()
        except (PoolError, *PASS_ERRORS) as error:
            if str(error) != self.trouble:
                log.error("cannot read the nodes: %s", error)
            self.trouble = str(error)
            self._meters.passes.failed()
        else:
            if self.trouble and self.ready.is_set():
                log.info("the nodes can be read again")
            self.trouble = ""
            self.picture = picture
            self.durations.look(picture, monotonic())
            self._meters.passes.passed(picture)
            self.ready.set()
        self.tried.set()

    def _interval(self) -> float:
        count = len(self.picture.nodes)
        return next((seconds for most, seconds in INTERVALS if count <= most), INTERVAL_MAX)
