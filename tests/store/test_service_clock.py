"""The row of service time: migrated from admission's row, saved and loaded by both engines."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import apsw
import psycopg
import pytest

from moorage.core.clock import Instant
from moorage.core.service_time import Timeline
from moorage.store import service_clock
from moorage.store.batch import batch_save
from moorage.store.migrations import migrations
from moorage.store.open import open_engine
from tests.support import cluster

BEFORE = 9
"""The last migration with service time in admission's row."""

STORED = Timeline(skew=-5, downtime=7, alive_at=Instant(100), outage_ended_at=Instant(90))

ADMISSION = (
    "UPDATE admission_clock SET arrivals = 3, skew = -5, downtime = 7, alive_at = 100,"
    " outage_ended_at = 90"
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of a database of the release before."""
    texts = [
        (one.text, one.number, one.name, one.checksum)
        for one in migrations("sqlite" if request.param == "sqlite" else "postgres")[:BEFORE]
    ]
    if request.param == "sqlite":
        file = apsw.Connection(str(tmp_path / "a.db"))
        for text, *row in texts:
            file.execute(text)
            file.execute("INSERT INTO migration VALUES (?, ?, ?)", row)
        file.execute(ADMISSION)
        file.close()
        yield f"sqlite:///{tmp_path}/a.db"
        return
    name = f"before_{uuid4().hex}"
    address = cluster.shared().create(name)
    with psycopg.connect(address) as server:
        for text, *row in texts:
            server.execute(text.encode())
            server.execute("INSERT INTO migration VALUES (%s, %s, %s)", row)
        server.execute(ADMISSION.encode())
    yield address
    cluster.shared().drop(name)


def test_an_upgrade_keeps_service_time(url: str) -> None:
    """Otherwise holds and cooldowns would jump with the wall clock, or by all outages."""

    async def run() -> None:
        engine = open_engine(url)
        assert await engine.read(service_clock.timeline_load()) == STORED
        await engine.close()

    asyncio.run(run())


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
