"""Limits that follow the members of groups of reporters: lowers them when members fall silent.

Members that join raise them in the batch of the join. Every batch that decides about a pool counts
the members again, so nothing is granted above the limit of that moment; this loop only makes sure
that a pool shows its limit although nothing happens.
"""

import logging

from moorage.core.admission.pools import limit_by_members
from moorage.core.fleet import members
from moorage.core.fleet.facts import Facts
from moorage.service.admission.pool_cases import MembersCounted
from moorage.service.background import Loop
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.transactor import Transactor
from moorage.store.admission import reads
from moorage.store.api import Engine
from moorage.store.fleet import reads as fleet_reads

PAUSE_SECONDS = 1.0

log = logging.getLogger("moorage.sweeper")


class MemberLimits:
    """Looks once a second whether the limits are those that follow from the members."""

    def __init__(self, engine: Engine, transactor: Transactor, service_clock: ServiceClock) -> None:
        self._engine = engine
        self._transactor = transactor
        self._service_clock = service_clock
        self._loop = Loop(log, "cannot count the members of groups of reporters", PAUSE_SECONDS)

    def start(self) -> None:
        """Start the loop."""
        self._loop.start(self.look)

    async def stop(self) -> None:
        """Stop the loop."""
        await self._loop.stop()

    async def look(self) -> float:
        """Correct the limits that are wrong; return the seconds until the next look."""
        pools = await self._engine.read(reads.pools_by_members())
        for group in {pool.spec.member_group for pool in pools} - {None}:
            assert group is not None
            shared = await self._engine.read(fleet_reads.shared_load(group))
            facts = Facts(members={(one.group, one.name): one for one in shared.members})
            if shared.group is not None:
                facts.reporter_groups[group] = shared.group
            moment = self._service_clock.estimate(shared.timeline).moment
            count = members.count(facts, group, moment)
            if any(
                pool.spec.limit != limit_by_members(pool.spec.per_member or 0, count)
                for pool in pools
                if pool.spec.member_group == group
            ):
                await self._transactor.submit(MembersCounted(group))
        return PAUSE_SECONDS
