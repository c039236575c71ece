"""Helpers for tests of pools and leases: short requests, services, and a manual clock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.core.admission.model import Need, PoolSpec
from moorage.core.admission.requests import LeaseRequest
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.service.admission.pool_cases import PoolDelete, PoolPause, PoolPut
from moorage.service.admission.service import Admission
from moorage.service.admission.views import LeaseView, PoolView
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.service.batch.ledger_share import LeaseAllocations, text_of
from moorage.service.clock import SystemClock
from moorage.store.open import open_engine
from tests.service.running import (
    CLASSES,
    TESTER,
    TRAITS,
    Running,
    fatal,
    running,
)

MINUTE = 60 * SECOND
BEAT = 4 * SECOND
"""The step in which time passes, as it does for a service that is alive."""

Scenario = Callable[[Admission], Awaitable[None]]


def spec(limit: int = 1, **more: Any) -> PoolSpec:
    """A pool of `limit` units whose leases have a TTL of a minute."""
    return PoolSpec(limit=limit, ttl=MINUTE, ttl_max=60 * MINUTE, **more)


def wish(
    key: str,
    *pools: str,
    units: int = 1,
    owner: str = "me",
    allocations: LeaseAllocations | None = None,
    **more: Any,
) -> LeaseRequest:
    """A request for `units` units of each of some pools."""
    needs = tuple(Need(pool, units) for pool in sorted(pools))
    held = None if allocations is None else text_of(allocations)
    return LeaseRequest(owner=owner, key=key, needs=needs, allocations=held, **more)


async def ask(admission: Admission, key: str, *pools: str, **more: Any) -> LeaseView:
    """Ask without waiting."""
    return await admission.acquire(wish(key, *pools, **more), TESTER)


async def pool_put(
    admission: Admission,
    name: str,
    spec: PoolSpec,
    generation: int | None = None,
    by: Actor = TESTER,
    *,
    paced: bool = False,
) -> PoolView:
    """Create or change a pool."""
    return await admission.change_pool(PoolPut(name, by, spec, generation, paced))


async def pool_pause(
    admission: Admission, name: str, paused: bool, by: Actor = TESTER, *, reason: str = ""
) -> PoolView:
    """Pause or resume a pool."""
    return await admission.change_pool(PoolPause(name, by, paused, reason))


async def pool_delete(admission: Admission, name: str, by: Actor = TESTER) -> None:
    """Delete a pool."""
    await admission._transactor.submit(PoolDelete(name, by))


async def pass_time(one: Running, microseconds: int) -> None:
    """Let time pass in steps, with a sweep after each, as in a running service."""
    while microseconds > 0:
        step = min(BEAT, microseconds)
        one.clock.at += step
        microseconds -= step
        await one.service.admission.sweeper.sweep()


async def refusal(awaitable: Awaitable[Any]) -> Code:
    """Return the code of the expected refusal."""
    with pytest.raises(Error) as caught:
        await awaitable
    return caught.value.code


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Service]:
    """A service on a database with the system clock; its own check must find nothing at the end."""
    service = await Service.start(open_engine(url), SystemClock(), CLASSES, TRAITS, on_fatal=fatal)
    try:
        yield service
        assert await service.operations.check() == []
    finally:
        await service.stop()


def play(url: str, scenario: Scenario) -> None:
    """Run a scenario on a new service."""

    async def run() -> None:
        async with opened(url) as service:
            await scenario(service.admission)

    asyncio.run(run())


def with_manual_clock(path: Path, scenario: Callable[[Running], Awaitable[None]]) -> None:
    """Run a scenario with a clock that moves only when the test moves it."""

    async def run() -> None:
        async with running(path / "m.sqlite") as one:
            await scenario(one)

    asyncio.run(run())


async def until_queued(admission: Admission, pool: str, tickets: int = 1) -> None:
    """Return as soon as at least `tickets` tickets wait in a pool's line."""
    while len((await admission.queries.leases(None, tickets, pool, "waiting"))[0]) < tickets:
        pass
