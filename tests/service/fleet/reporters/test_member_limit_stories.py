"""Random stories of a pool with some units for each member of a group, beside a simple model.

Nothing is granted above what the members of that moment allow, nothing granted is taken away, and
nobody waits while units are free.
"""

from random import Random

import pytest

from moorage.core.admission.model import PoolSpec
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND, Instant
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.app import Service
from moorage.service.fleet.reporter_cases import Join, Leave, Observe
from tests.service.fleet.pair import Pair, play
from tests.service.fleet.reporters.reporting import GROUP, instance
from tests.service.fleet.reporters.test_member_limits import POOL, put, spec
from tests.service.pools import BEAT, ask

STEPS = 60
NAMES = ("a", "b", "c", "d")
LASTS = 3_600 * SECOND


class Story:
    """One pool, its members and its leases, as a model that knows nothing of the rules."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.pair = pair
        self.random = Random(seed)
        self.per_member = self.random.randrange(3)
        self.until: dict[str, int] = {}
        """When each member is no longer live, by the clock."""
        self.observed: set[str] = set()
        self.granted: dict[str, str] = {}
        """Leases by their keys."""
        self.asked = 0

    async def play(self) -> None:
        """Do random things, and compare after each."""
        await put(self.pair, self._spec())
        for _ in range(STEPS):
            kinds = {
                self.join: 2,
                self.leave: 1,
                self.observe: 1,
                self.ask: 3,
                self.release: 1,
                self.wait: 2,
                self.change: 1,
                self.restart: 1,
            }
            (what,) = self.random.choices([*kinds], [*kinds.values()])
            await what()
            await self._compare()

    def _spec(self) -> PoolSpec:
        return spec(self.per_member, ttl=LASTS, ttl_max=LASTS)

    @property
    def _one(self) -> Service:
        return self.random.choice(self.pair.services)

    async def join(self) -> None:
        """A member joins, or shows that it is there."""
        name, ttl = self.random.choice(NAMES), self.random.choice([10, 30]) * SECOND
        await self._one.transactor.submit(Join(GROUP, name, instance(1), ttl))
        self.until[name] = self.pair.clock.at + ttl

    async def leave(self) -> None:
        """A member leaves."""
        name = self.random.choice(NAMES)
        await self._one.transactor.submit(Leave(GROUP, name, None))
        self.until.pop(name, None)

    async def observe(self) -> None:
        """Somebody sees other members, or an error: then the last ones stay."""
        seen = set(self.random.sample(NAMES, self.random.randrange(3)))
        at = Instant(self.pair.clock.at)
        await self._one.transactor.submit(Observe(GROUP, sorted(seen), at, ""))
        self.observed = seen

    async def ask(self) -> None:
        """Somebody asks for a unit."""
        self.asked += 1
        await ask(self._one.admission, f"key-{self.asked}", POOL)

    async def release(self) -> None:
        """Somebody releases a unit."""
        if self.granted:
            key = self.random.choice(sorted(self.granted))
            await self._one.admission.change(LeaseRelease(self.granted.pop(key), Proof()))

    async def wait(self) -> None:
        """Time passes, as for services that are alive."""
        for _ in range(self.random.randrange(1, 6)):
            self.pair.clock.at += BEAT
            for service in self.pair.services:
                await service.admission.sweeper.sweep()

    async def change(self) -> None:
        """An operator changes the units for each member."""
        self.per_member = self.random.randrange(3)
        await put(self.pair, self._spec())

    async def restart(self) -> None:
        """Both services start again, at once."""
        if self.random.random() < 0.3:
            await self.pair.end()
            await self.pair.start()

    async def _compare(self) -> None:
        for service in self.pair.services:
            await service.admission.member_limits.look()
        leases, _, _ = await self._one.admission.queries.leases(None, 200, POOL, None)
        states = {each.lease.key: each.lease for each in leases if each.lease.ended_at is None}
        granted = {key: one.id for key, one in states.items() if one.state == "granted"}
        live = {name for name, end in self.until.items() if end > self.pair.clock.at}
        limit = self.per_member * len(live | self.observed)
        assert self.granted.keys() <= granted.keys(), "a granted lease is gone"
        new = granted.keys() - self.granted.keys()
        assert not new or len(granted) <= limit, f"{new} are granted above {limit}"
        waiting = states.keys() - granted.keys()
        assert not waiting or len(granted) >= limit, f"{waiting} wait while units are free"
        self.granted = granted


@pytest.mark.parametrize("seed", range(8))
def test_stories(url: str, seed: int) -> None:
    """The story of a seed."""
    play(url, lambda pair: Story(pair, seed).play())
