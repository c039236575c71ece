"""A world with a Moorage in it: what programs send to it, and who looks at what it decides."""

import asyncio
from collections.abc import Mapping
from typing import Any

from moorage.core.admission.facts import Changes
from tests.simulation.provisioning.auditor import Violation
from tests.simulation.provisioning.moorage import answered
from tests.simulation.provisioning.net import SERVER_LATE, CutError, Net, short
from tests.simulation.virtual.loop import passed
from tests.simulation.virtual.world import VirtualWorld


class MoorageWorld(VirtualWorld):
    """The world of one seed. A subclass sets `net`, `moorage` and `auditor`."""

    net: Net
    auditor: Any

    async def to_moorage(
        self, method: str, path: str, query: Mapping[str, Any], body: Any, seconds: float
    ) -> tuple[int, Any]:
        """Send a request to Moorage."""
        process = self.sender()
        if self.moorage.service is None:
            await passed(0.01)
            raise CutError("there is no connection")
        if path == "/v1/leases" and method == "POST":
            asked = self.auditor.askers.setdefault(body["key"], set())
            asked.add(self.alive[process].began)

        async def carry(gone: asyncio.Event) -> tuple[int, Any]:
            if self.moorage.service is None:
                raise CutError("there is no connection")
            made = answered(self.moorage.service, method, path, query, body, gone.wait)
            status, content = await self.moorage.process.start(made)
            if method != "GET":
                self.tell(process.name, method, path, query or "", short(body), "->", status)
            return status, content

        return await self.net.exchange(self.net.weather(SERVER_LATE, False), seconds, carry)

    def _go(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._gone)

    def _gone(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.broken(error)

    def _watched(self, look: Any) -> None:
        try:
            look()
        except Violation as error:
            self.broken(error)

    def _decided(self, changes: Changes) -> None:
        for lease in changes.leases.values():
            if lease is not None:
                self.tell("   ", lease.key[-32:], lease.state, lease.cause or "")
        self.auditor.decided(changes)
