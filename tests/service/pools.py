"""Pools and leases for tests: wishes in few words, services on either engine, time by hand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.core.admission.model import Need, PoolSpec
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.service.admission.service import Admission, LeaseRequest
from moorage.service.admission.views import LeaseView
from moorage.service.app import Service
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
"""Time passes in steps of so long, as it does for a service that is alive."""

Scene = Callable[[Admission], Awaitable[None]]


def spec(limit: int = 1, **more: Any) -> PoolSpec:
    """A pool of so many units whose leases last a minute."""
    return PoolSpec(limit=limit, ttl=MINUTE, ttl_max=60 * MINUTE, **more)


def wish(key: str, *pools: str, units: int = 1, owner: str = "me", **more: Any) -> LeaseRequest:
    """Ask for units of each of some pools."""
    needs = tuple(Need(pool, units) for pool in sorted(pools))
    return LeaseRequest(owner=owner, key=key, needs=needs, **more)


async def ask(admission: Admission, key: str, *pools: str, **more: Any) -> LeaseView:
    """Ask, and do not wait."""
    return await admission.ask(wish(key, *pools, **more), TESTER)


async def later(one: Running, microseconds: int) -> None:
    """Let time pass for a service that sweeps, as it does by itself."""
    while microseconds > 0:
        step = min(BEAT, microseconds)
        one.clock.at += step
        microseconds -= step
        await one.service.admission.sweeper.sweep()


async def refusal(awaitable: Awaitable[Any]) -> Code:
    """Return the code with which something is refused."""
    with pytest.raises(Error) as caught:
        await awaitable
    return caught.value.code


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Service]:
    """A service on a database, by the machine's clock; its own check must find nothing."""
    service = await Service.start(open_engine(url), SystemClock(), CLASSES, TRAITS, on_fatal=fatal)
    try:
        yield service
        assert await service.operations.check() == []
    finally:
        await service.stop()


def play(url: str, scene: Scene) -> None:
    """Run a scene on a fresh service."""

    async def whole() -> None:
        async with opened(url) as service:
            await scene(service.admission)

    asyncio.run(whole())


def by_hand(path: Path, scene: Callable[[Running], Awaitable[None]]) -> None:
    """Run a scene whose time is moved by hand."""

    async def whole() -> None:
        async with running(path / "m.sqlite") as one:
            await scene(one)

    asyncio.run(whole())


async def queued(admission: Admission, pool: str) -> None:
    """Return as soon as somebody waits in a pool's line."""
    while not (await admission.queries.leases(None, 1, pool, "waiting"))[0]:
        pass
