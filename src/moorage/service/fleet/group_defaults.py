"""Makes the members of a group follow its defaults, in small batches.

If a process is killed in between, any process makes the others follow later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from moorage.core.fleet.groups import follows
from moorage.core.fleet.model import Agent, Goal, Group, Silence, State
from moorage.service.audit_entries import Actor
from moorage.service.background import Loop
from moorage.service.batch.transactor import Transactor
from moorage.service.fleet.directory import Directory
from moorage.service.fleet.policy_cases import GroupFollow, GroupPut

MEMBERS_AT_ONCE = 100
"""Members that change in one batch."""

AGAIN_SECONDS = 5.0
"""Time between two looks for members that do not follow."""

log = logging.getLogger("moorage.fleet")


class GroupDefaults:
    """The defaults of groups of agents.

    Args:
        transactor: executes the changes.
        directory: knows the agents.
        caught_up: returns once the directory knows all commits, those of other processes included.
    """

    def __init__(
        self,
        transactor: Transactor,
        directory: Directory,
        caught_up: Callable[[], Awaitable[None]],
    ) -> None:
        self._transactor = transactor
        self._directory = directory
        self._caught_up = caught_up
        self._loop = Loop(log, "cannot make agents follow their groups", AGAIN_SECONDS)

    def start(self) -> None:
        """Start to look for members that do not follow."""
        self._loop.start(self._follow_again)

    async def stop(self) -> None:
        """Stop looking."""
        await self._loop.stop()

    async def put(
        self, name: str, desired: Mapping[str, Goal], by: Actor, silence: Silence | None = None
    ) -> Group:
        """Create a group or replace its settings; returns when its members follow them.

        `silence` None: unchanged.

        Raises `Error`.
        """
        group = await self._transactor.submit(GroupPut(name, desired, by, silence))
        await self._caught_up()
        await self._follow(
            [
                agent
                for agent in self._directory.agents()
                if agent.group == name and agent.state is State.ACTIVE
            ]
        )
        return group

    async def _follow(self, members: Sequence[Agent]) -> None:
        """Make agents follow the defaults of their groups."""
        for first in range(0, len(members), MEMBERS_AT_ONCE):
            portion = members[first : first + MEMBERS_AT_ONCE]
            await self._transactor.submit(GroupFollow(portion))

    async def _follow_again(self) -> None:
        """Make those agents follow before whose turn a process was killed."""
        agents = [*self._directory.agents()]
        for first in range(0, len(agents), MEMBERS_AT_ONCE):
            await asyncio.sleep(0)
            portion = [
                (agent, self._directory.group(agent.group))
                for agent in agents[first : first + MEMBERS_AT_ONCE]
            ]
            await self._follow([a for a, group in portion if group and not follows(a, group)])
