"""Fixtures of the store's tests; a test that uses `engine` runs once per engine."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.store.api import Engine
from moorage.store.open import open_engine
from tests.support import cluster


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the address of an unused SQLite database."""
    return f"sqlite:///{tmp_path}/moorage.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Return an engine on an empty ledger; close it afterwards."""
    postgres = request.param == "postgresql"
    url = cluster.fresh() if postgres else f"sqlite:///{tmp_path}/moorage.db"
    opened = open_engine(url)
    yield opened
    asyncio.run(opened.close())
    if postgres:
        cluster.shared().drop(cluster.database_of(url))


@pytest.fixture
def sqlite_engine(url: str) -> Iterator[Engine]:
    """Return an engine on the empty SQLite database at `url`."""
    opened = open_engine(url)
    yield opened
    asyncio.run(opened.close())


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder in memory, if there is one: its syncs are free."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)
