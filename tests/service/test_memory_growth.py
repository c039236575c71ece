"""Memory does not grow with the number of past pools and leases."""

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from functools import _lru_cache_wrapper
from itertools import pairwise
from pathlib import Path

import pytest

from moorage.core.admission.requests import Proof
from moorage.service.admission.lease_cases import LeaseRelease
from tests.service.pools import ask, pool_delete, pool_put, spec, wish, with_manual_clock
from tests.service.running import TESTER, Running

pytestmark = pytest.mark.thorough

POOLS = 150
LEASES = 80
NAME = "p" * 150
"""Long names make whatever is kept of a pool large compared with everything else."""


async def grown(round_of: Callable[[int], Awaitable[None]]) -> int:
    """Return by how many bytes memory grows in each of two rounds.

    What a single round leaves behind, such as a log line that is still being written, is no growth.
    """
    await round_of(1)
    tracemalloc.start(1)
    try:
        sizes = []
        for turn in (2, 3, 4):
            await round_of(turn)
            sizes.append(kept())
        return min(after - before for before, after in pairwise(sizes))
    finally:
        tracemalloc.stop()


def kept() -> int:
    """Return the traced bytes in use, without those of bounded caches."""
    for one in gc.get_objects():
        if isinstance(one, _lru_cache_wrapper) and one.cache_parameters()["maxsize"] is not None:
            one.cache_clear()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_deleted_pools_leave_nothing(tmp_path: Path) -> None:
    """Pools are created and deleted, each with a lease."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission

        async def pools(turn: int) -> None:
            for n in range(POOLS):
                name = f"{NAME}/{turn}-{n}"
                await pool_put(admission, name, spec())
                lease = (await ask(admission, f"{turn}-{n}", name)).lease
                await admission.change(LeaseRelease(lease.id, Proof("me")))
                await pool_delete(admission, name)

        size = await grown(pools)
        assert size < POOLS * len(NAME) // 2, size

    with_manual_clock(tmp_path, scenario)


def test_ended_leases_leave_nothing(tmp_path: Path) -> None:
    """Leases begin and end, and so do tickets whose callers wait."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())

        async def leases(turn: int) -> None:
            for n in range(LEASES):
                first = (await ask(admission, f"{turn}-{n}-1", "p")).lease
                wanted = wish(f"{turn}-{n}-2", "p")
                waiting = asyncio.create_task(admission.acquire(wanted, TESTER, 60.0))
                while not admission.waiting.count:
                    await asyncio.wait([waiting], timeout=0)
                await admission.change(LeaseRelease(first.id, Proof("me")))
                await admission.change(LeaseRelease((await waiting).lease.id, Proof("me")))

        size = await grown(leases)
        assert size < LEASES * 60, size

    with_manual_clock(tmp_path, scenario)
