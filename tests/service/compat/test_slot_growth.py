"""Pools that make slots for whoever waits, as a configuration of Boskos lets them."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from moorage.core.ids import LeaseId
from moorage.service.admission.service import Admission
from moorage.service.compat.boskos import Boskos
from tests.service.pools import MINUTE, ask, opened
from tests.service.running import TESTER

Scene = Callable[[Admission, Boskos], Awaitable[None]]


def configuration(most: int) -> str:
    """A type that has no slots until somebody asks, and so many at most."""
    return f"resources:\n- {{type: grows, state: free, min-count: 0, max-count: {most}}}\n"


def play(folder: Path, most: int, scene: Scene) -> None:
    """Run a scene on a service with that configuration."""
    file = folder / "boskos.yaml"
    file.write_text(configuration(most))

    async def whole() -> None:
        async with opened(f"sqlite:///{folder}/m.sqlite") as service:
            boskos = Boskos(
                service.engine, service.transactor, str(file), strict=False, native=True
            )
            await boskos.start()
            try:
                await scene(service.admission, boskos)
            finally:
                await boskos.stop()

    asyncio.run(whole())


async def granted(admission: Admission, *leases: LeaseId) -> None:
    """Return once all of these are granted."""
    async with asyncio.timeout(20):
        for lease in leases:
            while (await admission.queries.lease(lease)).lease.state != "granted":
                pass


async def wanting(admission: Admission, key: str, units: int = 1) -> LeaseId:
    """Ask with patience."""
    return (await ask(admission, key, "grows", units=units, patience=30 * MINUTE)).lease.id


def test_units_of_all_who_wait_are_made(tmp_path: Path) -> None:
    """Who wants three takes nothing from who wants one, if there may be four."""

    async def scene(admission: Admission, _: Boskos) -> None:
        wide, narrow = await asyncio.gather(
            wanting(admission, "wide", 3), wanting(admission, "narrow")
        )
        await granted(admission, wide, narrow)
        assert (await admission.queries.pool("grows")).pool.occupied == 4

    play(tmp_path, 4, scene)


def test_a_slot_that_was_buried_is_replaced(tmp_path: Path) -> None:
    """Somebody waits for the only one there may be, and it turns out to be beyond repair."""

    async def scene(admission: Admission, boskos: Boskos) -> None:
        holder = await wanting(admission, "holder")
        (name,) = (await admission.queries.lease(holder)).lease.slots["grows"]
        waiting = await wanting(admission, "waiting")
        await boskos.release(name, "tombstone", "me", TESTER)
        await granted(admission, waiting)

    play(tmp_path, 1, scene)


def test_more_are_made_when_there_may_be_more(tmp_path: Path) -> None:
    """A configuration that permits more serves those who wait already."""

    async def scene(admission: Admission, _: Boskos) -> None:
        leases = [await wanting(admission, str(n)) for n in range(4)]
        fresh = tmp_path / "fresh.yaml"
        fresh.write_text(configuration(5))
        os.replace(fresh, tmp_path / "boskos.yaml")
        await granted(admission, *leases)
        assert (await admission.queries.pool("grows")).slots == {"leased": 4}

    play(tmp_path, 1, scene)
