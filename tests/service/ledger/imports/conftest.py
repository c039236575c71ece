"""An empty database of either engine, and services on it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorage.service.app import Service
from moorage.store.open import open_engine
from tests.service.running import CLASSES, TRAITS, ManualClock, fatal
from tests.support import cluster


class Database:
    """A database, and services that use it."""

    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Service]:
        """Start a service; its own check must find nothing at the end."""
        service = await Service.start(
            open_engine(self.url), ManualClock(), CLASSES, TRAITS, on_fatal=fatal
        )
        try:
            yield service
            assert (found := await service.operations.check()) == [], found
        finally:
            await service.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Return a new database of either engine."""
    if request.param == "sqlite":
        yield Database(f"sqlite:///{tmp_path}/ledger.sqlite")
        return
    url = cluster.fresh()
    yield Database(url)
    cluster.shared().drop(cluster.database_of(url))
