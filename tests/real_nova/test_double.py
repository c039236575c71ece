"""The double of Nova answers as nova itself does, for all states that an audit meets.

A real nova gets the rows that the double has, written with its own objects; then everything that an
audit may ask is asked of both.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from moorage.integrations.nova.asking import Nova
from moorage.integrations.nova.audit import Audit, Report, Wishes
from moorage.integrations.nova.pacing import Answer, Send
from moorage.integrations.nova.state_file import StateFile
from tests.real_nova.mirror import LIMIT, RealNova, paths_of, said, whole
from tests.simulation.nova.faults import Faults
from tests.simulation.nova.world import World
from tests.support.nova_double.api import Api
from tests.support.nova_double.database import Cell
from tests.support.nova_double.server import NovaDouble

STRANGER = "00000009-0000-4000-8000-000000000009"
AT_ONCE = 8


class Scene:
    """A world with all faults and lures, and a real nova that has its rows."""

    def __init__(self, nova: RealNova, world: World, faults: Faults, api: Api) -> None:
        self.nova, self.world, self.faults, self.api = nova, world, faults, api

    async def differing(self) -> list[str]:
        """Return the paths that both answer in different ways."""

        async def double(path: str) -> Answer:
            return Answer(*self.api.answer(path))

        return [
            path
            for path in paths_of(self.world.database, [STRANGER])
            if said(await whole(double, path)) != said(await whole(self.nova.send, path))
        ]

    async def audit(self, send: Send) -> Report:
        """Audit the ledger of the world."""
        audit = Audit(
            self.world.ledger, Nova(send, AT_ONCE), self.world, Wishes(settle=0.0), lambda *_: None
        )
        return await audit.run(StateFile(None, ""))

    def turn_off(self, cell: Cell) -> Send:
        """Return what sends requests to nova, and lets a cell go away before the first server."""

        async def send(path: str) -> Answer:
            if path.startswith("/servers/") and not cell.is_down:
                cell.is_down = True
                await self.nova.follow(self.world.database)
            answer = await self.nova.send(path)
            return replace(answer, retry_after=0.0)  # nobody waits for the cell

        return send


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """Yield a scene; nobody does anything in it by himself."""
    world = World(0, hosts=3, metal=2)
    world.faults = 0.0
    faults = Faults(world)
    faults.plant(1)
    api = Api(world.database, LIMIT)
    async with NovaDouble(api) as double, RealNova(double, folder) as nova:
        await nova.become(world.database)
        yield Scene(nova, world, faults, api)


def test_the_double_and_nova(tmp_path: Path) -> None:
    """Both answer the same. An audit finds just what is planted; with a cell away, no more.

    For a server in that cell that runs, and has no request spec, nova answers 404.
    """

    async def play() -> None:
        async with scene(tmp_path) as it:
            assert not await it.differing()
            report = await it.audit(it.nova.send)
            assert {one.key for one in report.findings} == it.faults.wanted
            assert {one.subject for one in report.unclear} >= it.faults.doubts

            database = it.world.database
            (old,) = it.faults.lures - {*database.specs} & {*database.mappings}
            cell = database.mappings[old].cell
            assert cell is not None
            report = await it.audit(it.turn_off(cell))
            assert cell.is_down and {one.key for one in report.findings} <= it.faults.wanted
            assert (await it.nova.send(f"/servers/{old}")).status == HTTPStatus.NOT_FOUND
            doubts = {one.subject for one in report.unclear}
            assert {old, *it.faults.doubts} <= doubts
            assert not await it.differing()

            lie = it.world.server(it.world.hosts[0])  # the control: nova does not have it
            assert f"/servers/{lie}" in await it.differing()

    asyncio.run(play())
