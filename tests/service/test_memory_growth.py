"""What is kept in memory does not grow with what has been."""

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from functools import _lru_cache_wrapper
from pathlib import Path

from moorage.core.admission.leases import Proof
from tests.service.pools import ask, by_hand, spec, wish
from tests.service.running import TESTER, Running

POOLS = 150
LEASES = 80
NAME = "p" * 150
"""Long names make what is kept of them large beside everything else."""


async def grown(round_of: Callable[[int], Awaitable[None]]) -> int:
    """Return by how many bytes memory is larger after a third round than after a second one."""
    await round_of(1)
    tracemalloc.start(1)
    try:
        await round_of(2)
        before = kept()
        await round_of(3)
        return kept() - before
    finally:
        tracemalloc.stop()


def kept() -> int:
    """Return the traced bytes in use, less what is kept in caches that are bounded."""
    for one in gc.get_objects():
        if isinstance(one, _lru_cache_wrapper) and one.cache_parameters()["maxsize"] is not None:
            one.cache_clear()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_pools_that_are_gone_leave_nothing(tmp_path: Path) -> None:
    """Pools come and go, each with a lease."""

    async def scene(one: Running) -> None:
        admission = one.service.admission

        async def pools(turn: int) -> None:
            for n in range(POOLS):
                name = f"{NAME}/{turn}-{n}"
                await admission.pool_put(name, spec(), None, TESTER)
                lease = (await ask(admission, f"{turn}-{n}", name)).lease
                await admission.release(lease.id, Proof("me"))
                await admission.pool_delete(name, TESTER)

        size = await grown(pools)
        assert size < POOLS * len(NAME) // 2, size

    by_hand(tmp_path, scene)


def test_leases_that_have_ended_leave_nothing(tmp_path: Path) -> None:
    """Leases come and go, and so do tickets for which somebody waits."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(), None, TESTER)

        async def leases(turn: int) -> None:
            for n in range(LEASES):
                first = (await ask(admission, f"{turn}-{n}-1", "p")).lease
                wanted = wish(f"{turn}-{n}-2", "p")
                waiting = asyncio.create_task(admission.ask(wanted, TESTER, 60.0))
                while not admission.waiting.count:
                    await asyncio.wait([waiting], timeout=0)
                await admission.release(first.id, Proof("me"))
                await admission.release((await waiting).lease.id, Proof("me"))

        size = await grown(leases)
        assert size < LEASES * 60, size

    by_hand(tmp_path, scene)
