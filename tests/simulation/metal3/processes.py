"""The governor, of the real classes; only the connections are replaced."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from moorage.integrations.kubernetes.api import Connection, KubernetesApi, KubernetesError
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.mirror import HostMirror
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.passes import CHANGES_SECONDS
from tests.simulation.metal3.cluster import GOVERNOR
from tests.simulation.provisioning.net import CutError, SimulatedLeaseApi
from tests.simulation.virtual.loop import passed
from tests.simulation.virtual.world import Program
from tests.support.bmo_double.operator import BEGAN
from tests.support.kubernetes_client import Object
from tests.support.kubernetes_double.requests import Received
from tests.support.kubernetes_double.status import Refused

CLUSTER = "cluster-1"
"""Its name: without one, a host that is deleted while nobody looks keeps its unit."""

SECONDS_MAX = 60.0
"""How long an answer of Kubernetes is waited for."""


class SimulatedKubernetesApi(KubernetesApi):
    """The API server, over the net."""

    def __init__(self, world: Any) -> None:
        super().__init__(Connection("http://kubernetes"))
        self._world = world

    async def _send(
        self, method: str, path: str, body: Any, kind: str, most: int
    ) -> tuple[int, bytes, float]:
        sent = b"" if body is None else json.dumps(body).encode()
        try:
            status, found = await self._world.to_kubernetes(method, path, kind, sent, SECONDS_MAX)
        except CutError as error:
            raise KubernetesError(f"no answer: {error}") from error
        return status, json.dumps(found).encode(), 1.0

    @asynccontextmanager
    async def watch(
        self, path: str, version: str, seconds: float, silent: float
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """Open a watch, which may be cut, late, or silent for ever."""
        words = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version}
        asked = urlencode({**words, "timeoutSeconds": str(max(1, int(seconds)))})
        request = Received("GET", f"{path}?{asked}", {}, b"", GOVERNOR)
        await passed(self._world.random.uniform(0.0005, 0.05))
        try:
            self._fail_if_away()
            self._world.cluster.reads.check_watch(request)
        except Refused as refused:
            raise KubernetesError("refused", refused.code) from refused
        yield self._shown(request, silent)

    async def _shown(self, request: Received, silent: float) -> AsyncIterator[Object]:
        world = self._world
        cuts, mute = world.cluster.cuts, world.chance(world.storm)
        late = world.random.choice([0.01, 1.0, 10.0])
        async for event in world.cluster.reads.watch(request):
            if mute:
                await passed(silent)
                raise KubernetesError("no answer: it takes too long")
            await passed(world.random.uniform(0.0, late) if world.chance(0.3) else 0.0005)
            if cuts != world.cluster.cuts:
                return
            self._fail_if_away()
            yield event

    def _fail_if_away(self) -> None:
        if self._world.cluster.away:
            raise KubernetesError("no answer: there is no connection")


class Governing(Program):
    """`moorage metal3 govern`: with a copy of the hosts, or with a list for each pass.

    `skew` is by how many seconds its clock differs from the operator's.
    """

    def __init__(self, world: Any, name: str, *, mirrored: bool = False, skew: float = 0.0) -> None:
        super().__init__(world, name)
        self._mirrored, self._skew = mirrored, timedelta(seconds=skew)

    def _start(self) -> None:
        world = self.world
        api = SimulatedKubernetesApi(world)
        self._mirror = HostMirror(api) if self._mirrored else None
        host_leases = HostLeases(SimulatedLeaseApi(world), CLUSTER)
        requests = HostRequests(api, mirror=self._mirror)
        self.governor = Governor(host_leases, requests, world.rules, now=self._now)
        self._stopped = False
        self._running = self.process.start(self._run())

    def _now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.world.now()) + self._skew

    async def _run(self) -> None:
        async with self._mirror or nullcontext():
            while not self._stopped:
                if self._mirror is not None:
                    self._mirror.changed.clear()
                await self.governor.tick()
                await self._pause()
            await self.governor.close()

    async def _pause(self) -> None:
        """Return after the interval, or soon after a change that the copy shows."""
        if self._mirror is None:
            return await passed(self.world.interval)
        await passed(CHANGES_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.world.interval - CHANGES_SECONDS):
                await self._mirror.changed.wait()

    async def end(self) -> None:
        """End it as SIGTERM does."""
        self._stopped = True
        await asyncio.wait([self._running])
        self.kill()
