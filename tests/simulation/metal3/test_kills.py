"""A governor is killed at every point of a story: before each of its requests, and after each.

The points are counted in a story without a kill, not listed by hand. `MOORAGE_SOAK` kills at all
of them; otherwise at some of them.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tests.simulation.metal3.cluster import Operating, nodes_of
from tests.simulation.metal3.processes import Governing
from tests.simulation.metal3.simulation import Metal3Simulation
from tests.simulation.metal3.users import ALL
from tests.simulation.provisioning.auditor import Violation
from tests.simulation.provisioning.net import Net, Weather
from tests.simulation.virtual.loop import CURRENT, passed
from tests.support.bmo_double import hosts
from tests.support.bmo_double.hosts import PAUSED
from tests.support.bmo_double.operator import Settings
from tests.support.kubernetes_client import host

T = TypeVar("T")
HOSTS = 5
LIMIT = 2
STRIDES = {1: 1, 2: 1} if os.environ.get("MOORAGE_SOAK") else {1: 8, 2: 40}
"""By the number of governors: the second one makes a story longer."""
END = 3_000.0


pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.thorough]


class KillingNet(Net):
    """Kills who sends the request with a number: before it arrives, or when it is carried out."""

    def __init__(self, world: Any, point: int | None, *, carried: bool) -> None:
        super().__init__(world)
        self._point, self._carried = point, carried
        self.requests, self.dead = 0, False

    async def exchange(
        self, weather: Weather, seconds: float, carry: Callable[[asyncio.Event], Awaitable[T]]
    ) -> T:
        """Have a request carried out, unless its sender dies first."""
        self.requests += 1
        process = CURRENT.get()
        assert process is not None
        if self.requests != self._point:
            return await super().exchange(weather, seconds, carry)
        if not self._carried:
            self._kill(process)
            raise asyncio.CancelledError

        async def last(gone: asyncio.Event) -> T:
            answer = await carry(gone)
            self._kill(process)
            return answer

        return await super().exchange(weather, seconds, last)

    def _kill(self, process: Any) -> None:
        self.dead = True
        self._world.killed(process)


class Killed(Metal3Simulation):
    """Five hosts get an image at once, one deployment fails; the governor is killed once."""

    pauses = (0.1, 30.0)

    def __init__(self, point: int | None = None, *, carried: bool = False, governors: int = 1):
        super().__init__(governors)  # not the point: until then, all stories are the same
        self.point, self.carried, self.governors = point, carried, governors
        self.storm = self.deadly = 0.0
        self.faulty, self.interval, self.limit = False, 5.0, LIMIT

    def _cast(self) -> None:
        self.net = self.killing = KillingNet(self, self.point, carried=self.carried)
        self.nodes.seconds = nodes_of(self, 0.2).seconds
        self.nodes.failures = {"metal3~host-0": 1}
        governors = [Governing(self, f"governor-{number}") for number in range(self.governors)]
        self.programs = [Operating(self, Settings()), *governors]
        for program in self.programs:
            program.start()

    async def course(self) -> None:
        await self._begin()
        names = [f"host-{number}" for number in range(HOSTS)]
        for name in names:
            await self.users.api.create(ALL, host(name, image="http://image"))
        await self._until(lambda: all(map(self._is_provisioned, names)), "P7 not provisioned")
        await self._until(lambda: not self._left(), "P6 left over")
        for name in names:
            times = self.nodes.book.times(f"metal3~{name}", "deploying")
            if times != 1 + (name == "host-0"):
                raise Violation(f"P4 {name} was deployed {times} times")

    def _is_provisioned(self, name: str) -> bool:
        found = self.cluster.host(name)
        assert found is not None
        return hosts.state(found) == "provisioned" and PAUSED not in hosts.annotations(found)

    async def _until(self, holds: Callable[[], bool], said: str) -> None:
        while not holds():
            if self.now() > END:
                raise Violation(f"{said}, request {self.point}: {self._left()}")
            await passed(1.0)


@pytest.mark.parametrize("governors", [1, 2])
@pytest.mark.parametrize("carried", [False, True])
def test_killed_at_every_point(carried: bool, governors: int) -> None:
    """The limit holds, every host is deployed once for each of its failures and once more, and no
    unit stays, whichever request was the last one of a governor; also if another one goes on.
    """
    all_points = Killed(governors=governors).run().killing.requests
    assert all_points > 50
    for point in range(1, all_points, STRIDES[governors]):
        story = Killed(point, carried=carried, governors=governors).run()
        assert story.killing.dead, "nobody was killed"
        assert story.nodes.book.most_busy <= LIMIT
