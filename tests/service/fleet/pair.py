"""Two services on one database: two processes on PostgreSQL; on SQLite one is both.

A test that uses the fixture `url` of `conftest.py` runs once for each engine.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Agent
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import capacity_of
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory
from moorage.service.app import Service
from moorage.service.fleet.directory import Tally
from moorage.service.fleet.service import Fleet
from moorage.service.ledger import provider_cases
from moorage.store.open import open_engine
from tests.service.fleet.machines import PAGES, agent_id, part_id
from tests.service.running import CLASSES, TRAITS, ManualClock, fatal, provider_id

ROUNDS = 12
"""How often a race is run, each time with other values."""


class Pair:
    """Two services that share a database; their loops that look for silence do not run."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = ManualClock()
        self.services: tuple[Service, Service]

    async def start(self) -> None:
        """Start both services, or again after `end`."""
        one = await self._service()
        self.services = (one, await self._service() if self.is_shared else one)

    async def end(self) -> None:
        """Stop both."""
        for service in {id(one): one for one in self.services}.values():
            await service.stop()

    async def _service(self) -> Service:
        engine = open_engine(self.url)
        service = await Service.start(engine, self.clock, CLASSES, TRAITS, on_fatal=fatal)
        await service.fleet.liveness_loop.stop()
        return service

    @property
    def is_shared(self) -> bool:
        """Whether these are two processes."""
        return not self.url.startswith("sqlite")

    @property
    def fleets(self) -> tuple[Fleet, Fleet]:
        """The agents, as each of the services knows them."""
        one, other = self.services
        return one.fleet, other.fleet

    async def submit(self, command: Any, *, at: int = 0) -> Any:
        """Execute a command at a service."""
        return await self.services[at].transactor.submit(command)

    async def provider(self, n: int, **totals: int) -> ProviderId:
        """Create the n-th provider with these inventories."""
        uuid = provider_id(n)
        await self.submit(provider_cases.ProviderCreate(uuid, f"name-{n}"))
        specs = {name: InventorySpec(total) for name, total in totals.items()}
        await self.submit(provider_cases.InventoriesReplace(uuid, 0, specs))
        return uuid

    async def agent(self, n: int) -> Agent:
        """Return the n-th agent as it is stored."""
        return (await self.fleets[0].queries.agent(agent_id(n))).agent

    async def inventory(self, n: int, name: str = PAGES) -> Inventory | None:
        """Return the inventory of the n-th machine's part, which both services see alike."""
        found = []
        for service in self.services:
            record = (await service.index.current()).record(part_id(n))
            found.append(None if record is None else record.inventories.get(name))
        assert found[0] == found[1]
        return found[0]

    async def pages(self, n: int) -> Inventory:
        """Return the inventory of pages of the n-th machine, which must exist."""
        inventory = await self.inventory(n)
        assert inventory is not None
        return inventory

    async def offered(self, n: int) -> float:
        """Return how many pages of the n-th machine may be used in all."""
        return capacity_of(await self.pages(n))

    async def caught_up(self) -> None:
        """Let both services learn of all commits of the other."""
        for service in self.services:
            await service.feed.caught_up()

    async def revision(self) -> int:
        """Return the revision of the last commit that followers see."""
        await self.caught_up()
        return self.services[0].feed.position.revision

    async def actions(self, target: str) -> list[str]:
        """Return the audited actions on a target, the first one first."""
        rows, _ = await self.services[0].audit.page(None, 1_000)
        return [row.action for row in reversed(rows) if row.target == target]

    async def check(self) -> None:
        """Both must find nothing wrong, and know the same."""
        for service in self.services:
            assert await service.operations.check() == []
        await self.caught_up()
        one, other = self.services
        assert (await one.index.current()).differences(await other.index.current()) == []
        known = [{a.uuid: a for a in fleet.directory.agents()} for fleet in self.fleets]
        assert known[0] == known[1]
        for fleet in self.fleets:
            assert vars(fleet.directory.tally) == vars(counted(fleet))


def counted(fleet: Fleet) -> Tally:
    """Count all agents that a service knows."""
    tally = Tally()
    for agent in fleet.directory.agents():
        tally.change(None, agent)
    return tally


def play(url: str, scenario: Callable[[Pair], Awaitable[None]]) -> None:
    """Run a scenario with two services; at the end their checks must find nothing."""

    async def run() -> None:
        pair = Pair(url)
        await pair.start()
        try:
            await scenario(pair)
            await pair.check()
        finally:
            await pair.end()

    asyncio.run(run())


async def outcomes(*calls: Awaitable[Any]) -> list[Any]:
    """Run calls at the same time; a refusal is returned as its code."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, Error):
            raise answer
    return [answer.code if isinstance(answer, Error) else answer for answer in answers]


@contextmanager
def refused(code: Code) -> Iterator[None]:
    """Expect a refusal."""
    with pytest.raises(Error) as caught:
        yield
    assert caught.value.code is code
