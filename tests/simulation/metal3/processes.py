"""The governor, of the real classes; only the connections are replaced."""

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

from moorage.integrations.kubernetes.api import Connection, KubernetesApi, KubernetesError
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.provisioning.host_leases import HostLeases
from tests.simulation.provisioning.net import CutError, SimulatedLeaseApi
from tests.simulation.virtual.loop import passed
from tests.simulation.virtual.world import Program
from tests.support.bmo_double.operator import BEGAN

CLUSTER = "cluster-1"
"""Its name: without one, a host that is deleted while nobody looks keeps its unit."""

SECONDS_MAX = 60.0
"""How long an answer of Kubernetes is waited for."""


class SimulatedKubernetesApi(KubernetesApi):
    """The API server, over the net."""

    def __init__(self, world: Any) -> None:
        super().__init__(Connection("http://kubernetes"))
        self._world = world

    async def _send(self, method: str, path: str, body: Any, kind: str) -> tuple[int, bytes, float]:
        sent = b"" if body is None else json.dumps(body).encode()
        try:
            status, found = await self._world.to_kubernetes(method, path, kind, sent, SECONDS_MAX)
        except CutError as error:
            raise KubernetesError(f"no answer: {error}") from error
        return status, json.dumps(found).encode(), 1.0


class Governing(Program):
    """`moorage metal3 govern`."""

    def _start(self) -> None:
        world = self.world
        host_leases = HostLeases(SimulatedLeaseApi(world), CLUSTER)
        requests = HostRequests(SimulatedKubernetesApi(world))
        self.governor = Governor(host_leases, requests, world.rules, now=self._now)
        self._stopped = False
        self._running = self.process.start(self._run())

    def _now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.world.now())

    async def _run(self) -> None:
        while not self._stopped:
            await self.governor.tick()
            await passed(self.world.interval)
        await self.governor.close()

    async def end(self) -> None:
        """End it as SIGTERM does."""
        self._stopped = True
        await asyncio.wait([self._running])
        self.kill()
