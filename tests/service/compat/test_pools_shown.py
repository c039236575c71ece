"""Pools of Boskos' configuration as the native API shows them: times, units, pacing."""

from pathlib import Path

from moorage.cli.support.views.pool_text import changed_of
from moorage.core.admission.compat.boskos import AcquireRequest
from moorage.core.admission.model import Growth, PoolSpec
from moorage.core.admission.slot_config import ResourceType, SlotConfig
from moorage.core.clock import DAY, SECOND
from moorage.faces.v1.admission.pools import pool_shown
from moorage.service.compat.boskos_cases import Acquire, Release, Sync
from moorage.service.ids import lease_id_new
from moorage.wire import admission as wire
from tests.service.pools import MINUTE, pool_put, spec, with_manual_clock
from tests.service.running import TESTER, Running

NAMED = SlotConfig((ResourceType("t", names=("a", "b", "c")),))
GROWING = SlotConfig((ResourceType("t", growth=Growth(0, 10, "free")),))


async def synced(one: Running, config: SlotConfig) -> None:
    """Apply a configuration."""
    await one.service.transactor.submit(Sync(config, {"t"}, "seed", for_tickets=True))


async def acquired(one: Running, dest: str) -> str:
    """Take a free slot, which gets the state `dest`; return its name."""
    wish = AcquireRequest("t", "free", dest, "me", "", lease_id_new(), "")
    return (await one.service.transactor.submit(Acquire(wish))).slot.name


async def pool(one: Running, name: str = "t") -> wire.Pool:
    """Return a pool as clients see it now."""
    return pool_shown(await one.service.admission.queries.pool(name))


def test_pools_are_dated_by_the_wall_clock(tmp_path: Path) -> None:
    """This holds after a jump of the clock, however the pool is created."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "before", spec())
        one.clock.jump = -DAY
        await pool_put(admission, "made", spec())
        await synced(one, NAMED)
        made, configured = await pool(one, "made"), await pool(one)
        assert configured.created_at == configured.updated_at == made.created_at
        assert (await admission.queries.pool("t")).pool.created_at == one.clock.now()

    with_manual_clock(tmp_path, scenario)


def test_a_slot_in_use_is_not_free_whatever_its_state(tmp_path: Path) -> None:
    """A client of Boskos may give an occupied slot the state `free`."""

    async def scenario(one: Running) -> None:
        await synced(one, NAMED)
        await acquired(one, "free")
        told = await pool(one)
        assert (told.units, told.occupied, told.free, told.resting) == (3, 1, 2, 0)
        assert told.slots == {"free": 3}

    with_manual_clock(tmp_path, scenario)


def test_cooldowns_of_slots_are_counted_by_slot(tmp_path: Path) -> None:
    """A slot that leaves the configuration during its cooldown no longer counts as resting."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await synced(one, NAMED)
        cool = PoolSpec(limit=None, ttl=MINUTE, ttl_max=DAY, cooldown=MINUTE)
        await pool_put(admission, "t", cool)
        names = [await acquired(one, "busy") for _ in range(2)]
        for name in names:
            done = Release(name, "me", False, "free", TESTER)
            await one.service.transactor.submit(done)
        told = await pool(one)
        assert (told.free, told.resting, told.over) == (1, 2, False)
        fewer = SlotConfig((ResourceType("t", names=tuple({"a", "b", "c"} - {names[0]})),))
        await synced(one, fewer)
        told = await pool(one)
        assert (told.units, told.free, told.resting) == (2, 1, 1)
        one.clock.at += 61 * SECOND
        told = await pool(one)
        assert (told.free, told.resting) == (2, 0)

    with_manual_clock(tmp_path, scenario)


def test_the_pacing_of_a_growing_pool_keeps_following_its_units(tmp_path: Path) -> None:
    """The server and the command line count the slots that it may have as its units."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await synced(one, GROWING)
        paced = PoolSpec(limit=None, ttl=MINUTE, ttl_max=DAY, hold=10 * MINUTE)
        await pool_put(admission, "t", paced, paced=True)
        told = await pool(one)
        assert (told.units, told.slots) == (10, {})
        assert told.pacing == wire.Pacing(interval=60, burst=1)
        assert changed_of(told, {"quota": 3}).pacing == "auto"
        unpaced = await pool_put(admission, "t", paced)
        assert changed_of(pool_shown(unpaced), {"quota": 3}).pacing is None

    with_manual_clock(tmp_path, scenario)
