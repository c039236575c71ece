"""The programs of the simulation: gates, governors and rollouts, of the real classes."""

import asyncio
import json
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from multidict import CIMultiDict

from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.clients import ClientPolicy
from moorage.integrations.ironic.gate.answers import HttpAnswer
from moorage.integrations.ironic.gate.deciding import Asked, Deciding, hold_until
from moorage.integrations.ironic.gate.metrics import GateMetrics
from moorage.integrations.ironic.gate.units import Units
from moorage.integrations.ironic.gate.watch import Watch
from moorage.integrations.ironic.governor import Governor
from moorage.integrations.ironic.nodes import VERSION_HEADER
from moorage.integrations.ironic.reconcile import Reconciler
from moorage.integrations.ironic.rollout import Limits, Rollout, UnknownNodesError
from moorage.integrations.provisioning.host_leases import HostLeases
from tests.simulation.provisioning.net import (
    SimulatedLeaseApi,
    SimulatedNodeReader,
    SimulatedUpstream,
    Spool,
)
from tests.simulation.virtual.loop import passed
from tests.simulation.virtual.world import Program

IRONIC = "ironic-1"
"""The name of the Ironic: without one, a host that is deleted while nobody looks keeps its unit."""

DECIDED: ContextVar[dict[str, Any] | None] = ContextVar("DECIDED", default=None)
"""What a gate has read of the node of the request that it decides."""


class _Upstream(SimulatedUpstream):
    """Notes what the gate reads, for the auditor."""

    async def node(self, ident: str, fields: Any, headers: Any) -> HttpAnswer:
        answer = await super().node(ident, fields, headers)
        noted = DECIDED.get()
        if noted is not None and answer.status == 200:
            noted["state"] = json.loads(answer.body)["provision_state"]
        return answer


class Gate(Program):
    """A gate. `passes`: it looks at all nodes again and again, otherwise only once."""

    passes = True

    def _start(self) -> None:
        world = self.world
        api, nodes = SimulatedLeaseApi(world), SimulatedNodeReader(world)
        meters, host_leases = GateMetrics(), HostLeases(api, IRONIC)
        self.watch = Watch(
            Reconciler(host_leases, nodes, world.rules), meters, _nothing, once=not self.passes
        )
        self.units = Units(api, host_leases, self.watch, meters)
        self.deciding = Deciding(
            _Upstream(world), host_leases, self.units, self.watch, world.rules, meters
        )
        self.process.start(self.watch.run())

    async def ask(self, node: str, target: str, agent: ClientPolicy, left: asyncio.Event) -> Any:
        """Ask for a provision state; `left`: the client leaves. Returns a status, or None."""
        asking = self.process.start(self._asked(node, target, agent))
        leaving = asyncio.ensure_future(left.wait())
        await asyncio.wait([asking, leaving], return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not asking.done():
            asking.cancel()
            return None
        return None if asking.cancelled() else asking.result()

    async def _asked(self, node: str, target: str, policy: ClientPolicy) -> int | None:
        DECIDED.set({})
        asked = Asked(
            method="PUT",
            target=f"/v1/nodes/{node}/states/provision",
            headers=CIMultiDict({VERSION_HEADER: "1.80", "Content-Type": "application/json"}),
            spool=Spool(json.dumps({"target": target}).encode()),  # type: ignore[arg-type] # in memory
            node=node,
            verb=target,
            id=f"req-{self.world.number()}",
            policy=policy,
            until=hold_until(policy),
        )
        try:
            return (await self.deciding.answer(asked)).status
        except asyncio.CancelledError:
            asked.left = True
            raise
        except self.world.away:
            return None

    async def end(self) -> None:
        """End it as SIGTERM does."""
        self.units.stop()
        await self.process.start(_finished(self.deciding, self.units))
        self.kill()


async def _finished(deciding: Deciding, units: Units) -> None:
    await deciding.finish(60.0)
    await units.settled()


async def _nothing() -> None:
    """Check nothing: the pools are as they must be."""


class Governing(Program):
    """`moorage ironic govern`."""

    def _start(self) -> None:
        world = self.world
        host_leases = HostLeases(SimulatedLeaseApi(world), IRONIC)
        self.governor = Governor(host_leases, SimulatedNodeReader(world), world.rules)
        self._stopped = False
        self._running = self.process.start(self._run())

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


class RollingOut(Program):
    """`moorage ironic rollout`, again and again with the same nodes until the wave is over."""

    def __init__(self, world: Any, name: str, nodes: list[str], verb: str, at_once: int) -> None:
        super().__init__(world, name)
        self._nodes, self._verb, self._limits = nodes, verb, Limits(at_once, 1_000)
        self.over = False

    def _start(self) -> None:
        world = self.world
        host_leases = HostLeases(SimulatedLeaseApi(world), IRONIC)
        nodes = SimulatedNodeReader(world)
        self.rollout = Rollout(host_leases, nodes, world.rules, self._verb, self._limits)
        self._running = self.process.start(self._run())

    async def _run(self) -> None:
        try:
            await self.rollout.prepare(self._nodes, "wave")
        except UnknownNodesError:  # somebody has deleted one
            self.over = True
            return
        except self.world.away:
            self.world.revive(self)
            return
        pause: Callable[[], Any] = lambda: passed(self.world.interval)  # noqa: E731 - typed
        await self.rollout.run(lambda _: None, pause, asyncio.Event())
        self.over = True


def age_of(program: Program) -> float:
    """Return how long a program runs."""
    return monotonic() - program.began
