"""The row of service time, saved and loaded by both engines."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.core.clock import Instant
from moorage.core.service_time import Timeline
from moorage.store import service_clock
from moorage.store.batch import batch_save
from moorage.store.open import open_engine
from tests.support import cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of an empty ledger."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/a.db"
        return
    address = cluster.fresh()
    yield address
    cluster.shared().drop(cluster.database_of(address))


def test_a_batch_saves_service_time_without_a_revision(url: str) -> None:
    """Followers need not know that time passes."""
    later = Timeline(1, 2, Instant(300), Instant(200))

    async def run() -> None:
        engine = open_engine(url)
        async with engine.transaction() as transaction:
            assert await transaction.run(batch_save([], [], Instant(0), later)) is None
            await transaction.commit()
        assert await engine.read(service_clock.timeline_load()) == later
        await engine.close()

    asyncio.run(run())
