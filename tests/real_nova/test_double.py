"""The double of Nova answers as nova itself does, for all states that an audit meets.

A real nova gets the rows that the double has, written with its own objects; then everything that an
audit may ask is asked of both.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from moorage.integrations.nova.asking import Nova
from moorage.integrations.nova.audit import Audit, Report, Wishes
from moorage.integrations.nova.pacing import Answer, Send
from moorage.integrations.nova.state_file import StateFile
from tests.real_nova.mirror import LIMIT, RealNova, paths_of, said, whole
from tests.simulation.nova.faults import (
    FAULTS,
    LURES,
    Faults,
    orphan_remembered,
    unconfirmed,
    without_spec,
)
from tests.simulation.nova.world import World
from tests.support.nova_double.api import Api
from tests.support.nova_double.database import Cell, Database
from tests.support.nova_double.server import NovaDouble

STRANGER = "00000009-0000-4000-8000-000000000009"
AT_ONCE = 8


class Scene:
    """A world, and a real nova that has its rows."""

    def __init__(self, nova: RealNova) -> None:
        self._nova = nova

    async def begin(self, *planted: Callable[[Faults], None]) -> None:
        """Begin with a new world; nobody does anything in it by himself."""
        self.world = World(0, hosts=3, metal=2)
        self.world.faults = 0.0
        self.faults = Faults(self.world)
        for one in planted:
            one(self.faults)
        await self._nova.become(self.world.database)

    async def differing(self, servers: Collection[str] | None = None) -> list[str]:
        """Return the paths that both answer in different ways; `servers`: only of these."""
        api = Api(self.world.database, LIMIT)

        async def double(path: str) -> Answer:
            return Answer(*api.answer(path))

        paths = paths_of(self.world.database, [STRANGER])
        if servers is not None:
            paths = [f"/servers/{uuid}" for uuid in servers]
        return [
            path
            for path in paths
            if said(await whole(double, path)) != said(await whole(self._nova.send, path))
        ]

    async def audit(self, send: Send | None = None) -> Report:
        """Audit the ledger of the world."""
        nova = Nova(send or self._nova.send, AT_ONCE)
        audit = Audit(self.world.ledger, nova, self.world, Wishes(settle=0.0), lambda *_: None)
        return await audit.run(StateFile(None, ""))

    def turn_off(self, cell: Cell) -> Send:
        """Return what sends requests to nova, and lets a cell go away before the first server."""
        alone = asyncio.Lock()  # a request under way would make nova remember the cell

        async def send(path: str) -> Answer:
            async with alone:
                if path.startswith("/servers/") and not cell.is_down:
                    cell.is_down = True
                    await self._nova.follow(self.world.database)
            answer = await self._nova.send(path)
            return replace(answer, retry_after=0.0)  # nobody waits for the cell

        return send

    async def status(self, path: str) -> int:
        """Return the status of nova's answer."""
        return (await self._nova.send(path)).status


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """Yield a scene that has not begun."""
    async with NovaDouble(Api(Database())) as double, RealNova(double, folder) as nova:
        yield Scene(nova)


def played(folder: Path, play: Callable[[Scene], Awaitable[None]]) -> None:
    """Play a scene."""

    async def run() -> None:
        async with scene(folder) as it:
            await play(it)

    asyncio.run(run())


def test_the_double_and_nova(tmp_path: Path) -> None:
    """Both answer the same, whatever has happened to servers; a lie of the double is found out."""

    async def play(it: Scene) -> None:
        await it.begin(*FAULTS, *LURES)
        assert not await it.differing()
        lie = it.world.server(it.world.hosts[0])  # the control: nova does not have it
        assert f"/servers/{lie}" in await it.differing([lie])

    played(tmp_path, play)


def test_an_audit(tmp_path: Path) -> None:
    """Nova makes an audit find just what is planted, and doubt what people must look at."""

    async def play(it: Scene) -> None:
        await it.begin(*FAULTS, *LURES)
        report = await it.audit()
        assert {one.key for one in report.findings} == it.faults.wanted
        assert {one.subject for one in report.unclear} >= it.faults.doubts

    played(tmp_path, play)


def test_a_cell_that_goes_away(tmp_path: Path) -> None:
    """Nothing is found of it: nova answers 404 for a server that runs, if its spec is gone.

    The double answers as nova does.
    """

    async def play(it: Scene) -> None:
        await it.begin(without_spec, unconfirmed, orphan_remembered)
        (old,) = (it.faults.lures & {*it.world.database.mappings}) - it.world.database.specs
        cell = it.world.database.mappings[old].cell
        assert cell is not None
        report = await it.audit(it.turn_off(cell))
        assert cell.is_down and {one.key for one in report.findings} <= it.faults.wanted
        assert await it.status(f"/servers/{old}") == HTTPStatus.NOT_FOUND
        assert old in {one.subject for one in report.unclear}
        assert not await it.differing()

    played(tmp_path, play)
