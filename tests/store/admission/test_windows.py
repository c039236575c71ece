"""Lists of leases in windows, by pool, state and the beginning of their ids, on both engines."""

import asyncio
from itertools import product
from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.facts import Changes, Keys
from moorage.core.admission.model import FencingToken, Lease
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import Timeline
from moorage.service.ids import ids_with
from moorage.store.admission import reads
from moorage.store.api import Engine
from tests.store.admission.grants import (
    ended,
    granted,
    pool,
    run,
    saved,
    ticket,
)

TIMELINE = Timeline(-1, 2, Instant(3), Instant(4))


async def timed(engine: Engine) -> None:
    """Save the timeline."""
    await run(engine, Keys(), lambda _: Changes(), TIMELINE)


def mixed() -> list[Lease]:
    """Return leases of two owners and pools in all states, by arrival and id."""
    found = []
    for n, (owner, name) in enumerate(product(("x", "y"), ("a", "b", "ab")), 1):
        for of in range(3):
            at = 10 * of + n
            plain = ticket(at, *name, owner=owner, arrival=at // 2)
            found.append((plain, granted(plain, token=FencingToken(1, 1, at)), ended(plain))[of])
    return sorted(found, key=lambda lease: (lease.arrival, lease.id))


@pytest.mark.parametrize("pool_name", [None, "a", "none"])
@pytest.mark.parametrize("state", [None, "waiting", "granted", "ended"])
def test_leases_in_windows(engine: Engine, pool_name: str | None, state: Any) -> None:
    """Leases are ordered by arrival, filtered by any of pool, state and owner."""

    async def scenario() -> None:
        leases = mixed()
        await saved(engine, pool("a"), pool("b"), *leases)
        for owner, size in product((None, "x", "z"), (1, 4, 99)):
            expected = [
                lease
                for lease in leases
                if pool_name in (None, *(need.pool for need in lease.needs))
                and state in (None, lease.state)
                and owner in (None, lease.owner)
            ]
            found: list[Lease] = []
            place: tuple[int, str] = (-1, "")
            while True:
                window = await engine.read(
                    reads.leases_window(place, size, pool=pool_name, state=state, owner=owner)
                )
                if not window.leases:
                    break
                assert len(window.leases) <= size
                found += window.leases
                place = (found[-1].arrival, found[-1].id)
            assert found == expected

    asyncio.run(scenario())


@pytest.mark.parametrize("pool_name", [None, "a", "none"])
@pytest.mark.parametrize("state", [None, "waiting", "ended"])
def test_leases_by_the_beginning_of_their_ids(
    engine: Engine, pool_name: str | None, state: Any
) -> None:
    """Those from the first to the last id of a range, by arrival; filtered as without a range."""

    async def scenario() -> None:
        leases = [structs.replace(one, arrival=99 - one.arrival) for one in mixed()]
        leases.sort(key=lambda lease: (lease.arrival, lease.id))
        await saved(engine, pool("a"), pool("b"), *leases)
        plain = [lease for lease in leases if "00000010" <= lease.id < "0000002"]
        assert 0 < len(plain) < len(leases)
        for owner, size in product((None, "x", "z"), (1, 99)):
            expected = [
                lease
                for lease in plain
                if pool_name in (None, *(need.pool for need in lease.needs))
                and state in (None, lease.state)
                and owner in (None, lease.owner)
            ]
            found: list[Lease] = []
            place: tuple[int, str] = (-1, "")
            while True:
                window = reads.leases_window(
                    place,
                    size,
                    pool=pool_name,
                    state=state,
                    owner=owner,
                    ids=("00000010", "0000002"),
                )
                seen = (await engine.read(window)).leases
                if not seen:
                    break
                assert len(seen) <= size
                found += seen
                place = (found[-1].arrival, found[-1].id)
            assert found == expected

    asyncio.run(scenario())


def test_the_bounds_of_ids(engine: Engine) -> None:
    """The first id of a range belongs to it, that after the last does not; `-` is before digits."""

    async def scenario() -> None:
        leases = [ticket(n, "a", id=LeaseId(one)) for n, one in enumerate(IDS)]
        await saved(engine, pool("a"), *leases)
        for prefix, expected in BEGINNINGS.items():
            window = reads.leases_window((-1, ""), 9, ids=ids_with(prefix))
            found = (await engine.read(window)).leases
            assert [IDS.index(lease.id) for lease in found] == expected, prefix

    asyncio.run(scenario())


IDS = (
    "019ce99e-0bd8-7000-8000-000000000000",
    "019ce99e-0bd8-7000-8000-0000000000ff",
    "019ce99e-ffff-7fff-bfff-ffffffffffff",
    "019ce99f-0000-7000-8000-000000000000",
)
BEGINNINGS = {
    "019ce99e": [0, 1, 2],
    "019CE99E-": [0, 1, 2],
    "019ce99e-0bd8-7": [0, 1],
    IDS[0]: [0],
    IDS[2]: [2],
    "019ce99f": [3],
    "019ce99d": [],
}
"""Which of these ids begin so."""
