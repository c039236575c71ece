"""A database that is restored under running processes: what it no longer has is forgotten."""

import asyncio

from moorage.core.errors import Code
from tests.service.batch.test_put_back import ServerWorld
from tests.service.fleet.machines import BOOT, agent_id, ready
from tests.service.fleet.pair import counted, refused

WAIT = 30.0


def test_agents_that_a_restore_has_removed_are_forgotten() -> None:
    """They are no longer counted, are refused as unknown, and leave their numbers."""

    async def run() -> None:
        async with ServerWorld() as world:
            fleets = [service.fleet for service in world.services]
            await ready(fleets[0], 1)
            await world.snapshot()
            gone = await ready(fleets[0], 2)
            await fleets[1].alive(agent_id(2), BOOT, 1)
            await world.put_back(0)
            async with asyncio.timeout(WAIT):
                while any(fleet.directory.get(agent_id(2)) for fleet in fleets):
                    await asyncio.gather(*(service.index.current() for service in world.services))
            for fleet in fleets:
                assert vars(fleet.directory.tally) == vars(counted(fleet))
                assert gone.number not in fleet.liveness_loop.signs.ages()
                with refused(Code.AGENT_NOT_FOUND):
                    await fleet.alive(agent_id(2), BOOT, 1)
            await fleets[1].alive(agent_id(1), BOOT, 1)
            assert (await ready(fleets[1], 3)).number == gone.number

    asyncio.run(run())
