"""The fleet: the operations on agents and groups that faces may call."""

import asyncio
from collections.abc import Awaitable, Callable

from moorage.core.clock import Clock, Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet import plans, reports, starts
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Agent, Group, Liveness, MachineReport, PlanOutcome
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.fleet.starts import Start
from moorage.core.fleet.ttl import TTL_RANGE, TtlRange, next_in
from moorage.core.ids import AgentId, ConsumerId
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.core.service_time import When
from moorage.service import errors
from moorage.service.audit_entries import Actor
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.transactor import Transactor
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.service.feed.followers import Followers
from moorage.service.fleet.agent_cases import (
    AgentRegister,
    AgentReport,
)
from moorage.service.fleet.directory import Directory
from moorage.service.fleet.group_defaults import GroupDefaults
from moorage.service.fleet.liveness_cases import (
    SERVER,
    AgentReturned,
    GroupConfirm,
)
from moorage.service.fleet.liveness_loop import LivenessLoop
from moorage.service.fleet.plan_bounds import PlanTurns, check_own
from moorage.service.fleet.plan_cases import AgentPlanned, AgentSettled
from moorage.service.fleet.queries import FleetQueries
from moorage.service.ledger.reshapes import request_of
from moorage.store.api import Engine

AGAIN_SECONDS = 5.0
"""How often a wait for a start looks again: allocations before it may end without a report."""

CONFIRMED_AT_ONCE = 100
"""Members of a suspect group that one batch declares lost."""


class Fleet:
    """Agents and groups of one service. Every method raises `Error`."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        index: CatalogIndex,
        followers: Followers[Changes],
        service_clock: ServiceClock,
        clock: Clock,
        ttl_range: TtlRange = TTL_RANGE,
    ) -> None:
        self._engine = engine
        self._index = index
        self._plan_turns = PlanTurns(clock)
        self._transactor = transactor
        self._feed = index.feed
        self._followers = followers
        self._service_clock = service_clock
        self._clock = clock
        self.queries = FleetQueries(engine)
        self.directory = Directory()
        self._closed = False
        self.group_defaults = GroupDefaults(transactor, self.directory, self._caught_up)
        self.liveness_loop = LivenessLoop(
            engine,
            transactor,
            self.directory,
            clock,
            ttl_range,
        )
        followers.add(self.liveness_loop.note)  # first: it compares with the directory
        followers.add(self.directory.note)

    async def start(self) -> None:
        """Read all agents, and start to follow commits. Raises `Error`."""
        state, when = await self._reload()
        self.directory.note(state, when)
        if self._engine.shared:
            self._followers.start(self._reload)
        await self.liveness_loop.start()
        self.group_defaults.start()

    async def stop(self) -> None:
        """Stop what `start` has started."""
        await self.group_defaults.stop()
        await self.liveness_loop.stop()
        await self._followers.stop()

    async def _reload(self) -> tuple[Changes, When]:
        """Return all agents, and the time."""
        state = Changes()
        async for found in self.queries.everyone():
            state.agents.update((agent.uuid, agent) for agent in found)
        state.groups.update((group.name, None) for group in self.directory.groups())
        state.groups.update((group.name, group) for group in await self.queries.all_groups())
        # Commits since then are reported after this; agents that are missing are gone by a restore.
        for agent in self.directory.keep(state.agents):
            self.liveness_loop.signs.forget(agent.number)
        now = Instant(0)
        return state, self._service_clock.present(now, now)

    async def register(self, uuid: AgentId, spec: RegisterSpec, by: Actor) -> Agent:
        """Register a machine; every volatile amount of a new boot is 0 when this returns."""
        case = AgentRegister(uuid, by, spec, known=self.directory.get(uuid))
        return self._heard(await self._transactor.submit(case))

    async def report(self, uuid: AgentId, report: MachineReport, by: Actor) -> Agent:
        """Record the full state of a machine."""
        case = AgentReport(uuid, by, report, known=self.directory.get(uuid))
        return self._heard(await self._transactor.submit(case))

    async def report_with_plan(
        self, uuid: AgentId, report: MachineReport, plan: ReshapePlan, by: Actor
    ) -> Agent:
        """Record the full state of a machine, and carry out its plan once for each boot.

        `Agent.plan` of the answer says what became of it. Raises ReshapeRefusal and `Error`, see
        `AgentPlanned`; also those of `PlanTurns.of`.
        """
        digest = await asyncio.to_thread(request_of, plan)
        await self._caught_up()
        known = self.directory.get(uuid)
        case = AgentSettled(uuid, by, report, plan, digest, known=known)
        agent = await self._transactor.submit(case)
        if not _is_settled(agent, report, digest):
            async with self._plan_turns.of(uuid):
                agent = await self._planned(agent, report, plan, digest, by)
        return self._heard(agent)

    async def _planned(
        self, agent: Agent, report: MachineReport, plan: ReshapePlan, digest: str, by: Actor
    ) -> Agent:
        root = plans.check_may_plan(agent)
        check_own(await self._index.current(), root, plan)
        case = AgentPlanned(agent.uuid, by, report, plan, digest, known=agent)
        planned = await self._transactor.submit(case)
        if planned.plan is not None and planned.plan.outcome is PlanOutcome.DONE:
            self._plan_turns.note(agent.uuid)
        return planned

    def _heard(self, agent: Agent) -> Agent:
        self.liveness_loop.signs.note(agent.number)
        return agent

    async def alive(self, uuid: AgentId, boot_id: str, report_generation: int) -> Agent:
        """Note a sign of life; return the agent.

        Nothing is written, unless the agent was silent before.

        Raises AGENT_NOT_FOUND, DECOMMISSIONED, STALE_BOOT, SUPERSEDED_BOOT, STALE_REPORT,
        REPORT_CONFLICT, UNAVAILABLE.
        """
        await self._caught_up()
        agent = self._alive(uuid, boot_id, report_generation)
        if agent.liveness is not Liveness.FRESH:
            agent = await self._transactor.submit(AgentReturned(uuid, SERVER, known=agent))
        return self._heard(agent)

    def alive_prompt(self, uuid: AgentId, boot_id: str, report_generation: int) -> Agent | None:
        """Do what `alive` does if memory is enough for it; return None otherwise.

        It is not enough if other processes may have changed the agent, or if it was silent.

        Raises what `alive` raises.
        """
        if self._engine.shared:
            return None
        agent = self._alive(uuid, boot_id, report_generation)
        return self._heard(agent) if agent.liveness is Liveness.FRESH else None

    def _alive(self, uuid: AgentId, boot_id: str, report_generation: int) -> Agent:
        """Return the agent that sends a valid sign of life. Raises what `alive` raises."""
        self.liveness_loop.check_known()
        agent = self.directory.get(uuid)
        if agent is None:
            raise Error(Code.AGENT_NOT_FOUND, f"There is no agent {uuid}.")
        reports.check_alive(agent, boot_id, report_generation)
        return agent

    async def may_start(
        self,
        uuid: AgentId,
        boot_id: str,
        consumer: ConsumerId,
        seconds: float,
        gone: Callable[[], Awaitable[None]],
    ) -> Start:
        """Return whether a consumer may start on a machine; wait until it may, or time is over.

        Args:
            uuid: the agent of the machine.
            boot_id: the boot in which it would start.
            consumer: the one that wants to start.
            seconds: the longest wait.
            gone: returns when the caller has disconnected.

        Raises AGENT_NOT_FOUND, DECOMMISSIONED, STALE_BOOT, SUPERSEDED_BOOT, PLACE_NOT_FOUND.
        """
        changed = asyncio.Event()
        deadline = asyncio.get_running_loop().time() + seconds
        self.directory.watch(uuid, changed.set)
        left = asyncio.ensure_future(gone())
        try:
            while True:
                changed.clear()
                known = self.directory.get(uuid)
                root = None if known is None else known.root
                view = await self.queries.agent(uuid, root)
                start = starts.may_start(view.agent, boot_id, consumer, view.places)
                rest = deadline - asyncio.get_running_loop().time()
                if start.may_start or rest <= 0 or left.done() or self._closed:
                    return start
                waiting = asyncio.ensure_future(changed.wait())
                await asyncio.wait(
                    [waiting, left],
                    timeout=min(rest, AGAIN_SECONDS),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waiting.cancel()
        finally:
            left.cancel()
            self.directory.unwatch(uuid, changed.set)

    def ttl(self, chance: float) -> tuple[int, int]:
        """Return the TTL, and when the next sign of life is due, in microseconds."""
        ttl = self.liveness_loop.ttl()
        return ttl, next_in(ttl, chance)

    def heard_at(self, uuid: AgentId) -> Instant | None:
        """Return when an agent was last heard of, by the wall clock; None: unknown."""
        agent = self.directory.get(uuid)
        if agent is None or agent.boot_id is None:
            return None
        return Instant(self._clock.now() - self.liveness_loop.signs.age(agent.number))

    def close(self) -> None:
        """End all waits: their requests are answered with the current state."""
        self._closed = True
        self.directory.wake_all()

    async def group_confirm(self, name: str, by: Actor) -> Group:
        """Declare the silent members of a suspect group lost, and end the suspicion."""
        await self._caught_up()
        late = [
            (agent, Liveness.LOST)
            for agent in self.directory.agents()
            if agent.group == name and agent.liveness is Liveness.LATE
        ]
        for first in range(0, len(late), CONFIRMED_AT_ONCE):
            await self.liveness_loop.sweep(
                late[first : first + CONFIRMED_AT_ONCE], {}, braked=False
            )
        return await self._transactor.submit(GroupConfirm(name, by))

    async def _caught_up(self) -> None:
        """Return once the directory knows all commits, those of other processes included."""
        with errors.translated():
            await self._feed.caught_up()


def _is_settled(agent: Agent, report: MachineReport, digest: str) -> bool:
    """Return whether an agent says what became of a plan in the boot of a report."""
    plan = agent.plan
    return plan is not None and (plan.digest, plan.boot_id) == (digest, report.boot_id)
