"""The programs of the simulation: reporters, of the real classes."""

import asyncio
from contextlib import suppress
from typing import Any

from moorage.integrations.ironic.report.membership import FencedError, GroupMember
from moorage.integrations.ironic.report.reporter import Reporter
from tests.simulation.reporters.moorage import GROUP
from tests.simulation.reporters.net import PagedNodeReader, SimulatedReportApi
from tests.simulation.virtual.world import Program


class Reporting(Program):
    """`moorage ironic report`; several may run as the same member, by mistake."""

    def __init__(self, world: Any, name: str, member: str) -> None:
        super().__init__(world, name)
        self.member = member

    def _start(self) -> None:
        world = self.world
        place = GroupMember(GROUP, self.member, world.ttl)
        self.reporter = Reporter(SimulatedReportApi(world), PagedNodeReader(world), place)
        self._stopped = asyncio.Event()
        self._running = self.process.start(self._run())

    async def _run(self) -> None:
        signs = asyncio.create_task(self.reporter.stay())
        signs.add_done_callback(lambda _: self._stopped.set())
        fenced = False
        try:
            while not self._stopped.is_set():
                await self.reporter.tick_unless(self._stopped)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), self.world.interval)
            if signs.done():
                await signs
        except FencedError:
            fenced = True
        finally:
            signs.cancel()
            await asyncio.gather(signs, return_exceptions=True)
        await self.reporter.close()
        if fenced:
            self.world.tell(self.name, "is fenced and ends")
            self.world.fenced(self)

    async def end(self) -> None:
        """End it as SIGTERM does."""
        self._stopped.set()
        await asyncio.wait([self._running])
        self.kill()
