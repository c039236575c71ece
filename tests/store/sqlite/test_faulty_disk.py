"""Each disk fault, once: a clear error, nothing half done, and the service continues or ends."""

import asyncio
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import apsw
import pytest

from moorage.store import changelog
from moorage.store.api import Fatal, StoreError, Unavailable
from moorage.store.open import open_engine
from moorage.store.sqlite.engine import SqliteEngine
from tests.store.build import Batch, differences_load, digest, run, stream
from tests.store.sqlite.checkpoints import settled
from tests.store.sqlite.faulty_disk import FAULTS, Faulty

pytestmark = pytest.mark.thorough

BATCHES = list(islice(stream(seed=9, providers_count=4), 6))


@dataclass
class Life:
    """What a client saw in one run of the database."""

    acknowledged: int = 0
    errors: list[StoreError] = field(default_factory=list)
    fatal: bool = False


async def life(path: Path, vfs: str) -> Life:
    """Open, run every batch, retrying temporary errors, and close."""
    lived = Life()
    try:
        engine = open_engine(f"sqlite:///{path}", vfs=vfs, checkpoint_pages=25)
    except StoreError as error:
        lived.errors.append(error)
        return lived
    assert isinstance(engine, SqliteEngine)
    for batch in BATCHES:
        await _one(engine, batch, lived)
        await settled(engine)
    try:
        await engine.close()
    except StoreError as error:
        lived.errors.append(error)
    return lived


async def _one(engine: SqliteEngine, batch: Batch, lived: Life) -> None:
    try:
        lived.acknowledged = await run(engine, batch)
    except Fatal as error:
        lived.errors.append(error)
        lived.fatal = True
    except Unavailable as error:
        assert not lived.fatal
        lived.errors.append(error)
        seen = await engine.read(changelog.changes_load(0))
        assert seen.revision == lived.acknowledged, "a refused batch is visible"
        lived.acknowledged = await run(engine, batch)


async def states(path: Path) -> dict[int, str]:
    """Return the ledger at each revision without faults."""
    engine = open_engine(f"sqlite:///{path}")
    watcher = apsw.Connection(str(path))
    found = dict([digest(watcher)])
    for batch in BATCHES:
        await run(engine, batch)
        found.update([digest(watcher)])
    watcher.close()
    await engine.close()
    return found


async def reopened(path: Path) -> tuple[int, str]:
    """Open without faults; return the content."""
    engine = open_engine(f"sqlite:///{path}")
    assert await engine.read_aside(differences_load()) == []
    await engine.close()
    with apsw.Connection(str(path)) as connection:
        found = digest(connection)
    connection.close()
    return found


def counted(folder: Path) -> dict[str, int]:
    """Return the number of operations of each kind when nothing fails."""
    system = Faulty("counting")
    lived = asyncio.run(life(folder / "counted.db", system.name))
    assert (lived.acknowledged, lived.errors) == (len(BATCHES), [])
    return system.count


@pytest.mark.parametrize(
    ("operation", "way"), [(operation, way) for operation in FAULTS for way in FAULTS[operation]]
)
def test_every_operation_may_fail_once(folder: Path, operation: str, way: str) -> None:
    """Each operation fails once, in turn; afterwards the file has what was acknowledged."""
    right = asyncio.run(states(folder / "right.db"))
    total = counted(folder)[operation]
    assert total >= {"truncate": 1, "open": 4}.get(operation, 10)
    for at in range(total):
        path = folder / f"{at}.db"
        system = Faulty(f"{operation} {way} {at}", operation, way, at)
        lived = asyncio.run(life(path, system.name))
        assert system.happened
        assert all(str(error) and "\n" not in str(error) for error in lived.errors)
        revision, state = asyncio.run(reopened(path))
        assert right[revision] == state, f"partially written after {lived.errors}"
        if lived.fatal:
            assert revision in (lived.acknowledged, lived.acknowledged + 1)
        else:
            assert revision == lived.acknowledged


def test_failed_sync_is_final(folder: Path) -> None:
    """After a failed sync of a commit no later batch is written or acknowledged."""
    total = counted(folder)["sync"]
    finals = 0
    for at in range(total):
        system = Faulty(f"final {at}", "sync", "error", at)
        lived = asyncio.run(life(folder / f"{at}.db", system.name))
        assert [error for error in lived.errors if isinstance(error, Fatal)], "no error was raised"
        assert all(isinstance(error, Fatal) for error in lived.errors)
        finals += lived.fatal
        if lived.fatal:
            left = len(BATCHES) - lived.acknowledged
            assert len(lived.errors) >= left, "a later batch was not refused"
    assert finals >= len(BATCHES)
