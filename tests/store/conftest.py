"""The store's suite runs once per engine: ask for `engine` and get each in turn."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.store.api import Engine
from moorage.store.open import open_engine


@pytest.fixture(params=["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a database that nobody has used."""
    return f"{request.param}:///{tmp_path}/moorage.db"


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """Return an engine on an empty ledger; it is closed afterwards."""
    opened = open_engine(url)
    yield opened
    asyncio.run(opened.close())


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder in memory, where there is one: its syncs cost nothing."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)
