"""A start from the file of the catalog equals one from the rows; a doubtful file is ignored."""

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from functools import wraps
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage.core.ledger.import_mark import Beginning
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.search.catalog.packed_chunk import PackedRecords
from moorage.service.app import Service
from moorage.service.chores import Retention
from moorage.service.feed import saved_catalog
from moorage.service.feed.saved_catalog import SavedCatalog
from moorage.service.ledger import provider_cases
from moorage.store import catalog_file
from moorage.store.open import open_engine
from tests.service.ledger.imports.ledgers import (
    Ledger,
    differences,
    drawn,
    listed,
    rows_of,
    sent_in_any_order,
)
from tests.service.running import (
    CLASSES,
    TESTER,
    TRAITS,
    ManualClock,
    claim,
    fatal,
    provider_id,
)

KEPT = Retention(changes_min=0, changes_max=1)
"""Deletes change rows as soon as it can."""


def played(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Turn a story into a test."""

    @wraps(story)
    def test(*fixtures: Any, **more: Any) -> None:
        asyncio.run(story(*fixtures, **more))

    return test


class World:
    """A database with a file of its catalog, and the services that use them."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "x.sqlite"
        self.file = folder / "x.sqlite.catalog"
        self.clock = ManualClock()
        self._restored = False

    def began_with_file(self) -> bool:
        """Return whether the last service began with the file."""
        return self._restored

    @asynccontextmanager
    async def serving(
        self, *, saving: bool = True, retention: Retention | None = None, providers_min: int = 1
    ) -> AsyncIterator[Service]:
        """Serve; at the end the catalog must be what the rows are."""
        self.clock.at += 1_000_000
        engine = open_engine(f"sqlite:///{self.database}")
        saved = SavedCatalog(engine, str(self.file), providers_min) if saving else None
        service = await Service.start(
            *(engine, self.clock, CLASSES, TRAITS),
            on_fatal=fatal,
            retention=retention or Retention(),
            saved=saved,
        )
        self._restored = saved is not None and saved.origin is not None
        try:
            yield service
            assert (found := await service.operations.check()) == [], found
        finally:
            await service.stop()


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return an empty world."""
    return World(tmp_path)


async def grow(service: Service, first: int, more: int) -> None:
    """Create `more` providers with inventories, and claim something of each."""
    submit = service.transactor.submit
    for n in range(first, first + more):
        uuid = provider_id(n)
        parent = provider_id(n - 1) if n % 3 == 1 else None
        await submit(provider_cases.ProviderCreate(uuid, f"name-{n}", parent))
        specs = {"VCPU": InventorySpec(8), "DISK_GB": InventorySpec(100 + n % 2)}
        await submit(provider_cases.InventoriesReplace(uuid, 0, specs))
        if n % 2:
            await submit(provider_cases.TraitsReplace(uuid, 1, frozenset({"STORAGE_DISK_SSD"})))
        await submit(claim(n, uuid, VCPU=1 + n % 3))


@played
async def test_a_restart_begins_with_the_file(world: World) -> None:
    """A stop saves the catalog; the next start restores it, and searches see the same."""
    async with world.serving() as service:
        await grow(service, 0, 20)
        before = service.index.catalog
    assert not world.began_with_file()
    assert world.file.stat().st_mode & 0o777 == 0o600
    async with world.serving() as service:
        assert world.began_with_file()
        assert before.differences(service.index.catalog) == []


@played
async def test_a_fleet_that_has_shrunk(world: World) -> None:
    """Its file is removed: no later save would replace it."""
    async with world.serving() as service:
        await grow(service, 0, 20)
    async with world.serving(providers_min=21):
        assert world.began_with_file()
    assert not world.file.exists()


@played
async def test_a_catalog_that_is_read_again(world: World) -> None:
    """The file is written again, although few change rows have followed it."""
    async with world.serving() as service:
        await grow(service, 0, 20)
    written = world.file.stat().st_mtime_ns
    async with world.serving():
        assert world.began_with_file()
    assert world.file.stat().st_mtime_ns == written  # the control: nothing has changed
    async with world.serving() as service:
        await service.index.load()
    assert world.file.stat().st_mtime_ns > written


@played
async def test_change_rows_of_a_newer_release(world: World) -> None:
    """A start from the file would read them, one from the rows does not."""
    async with world.serving() as service:
        await grow(service, 0, 20)
    with closing(sqlite3.connect(world.database)) as rows, rows:
        rows.execute("UPDATE clock SET revision = revision + 1")
        rows.execute(
            "INSERT INTO change (revision, n, at, kind, key, body)"
            " SELECT revision, 0, 1, 'unheard_of', 'x', '{}' FROM clock"
        )
    async with world.serving() as service:
        assert not world.began_with_file()
        assert len(service.index.catalog) == 20


@played
async def test_change_rows_bring_it_up_to_date(world: World) -> None:
    """What was committed after the file was written, also by a process without it, is there."""
    async with world.serving() as service:
        await grow(service, 0, 10)
    async with world.serving(saving=False) as service:
        await grow(service, 10, 10)
        await service.transactor.submit(provider_cases.ProviderCreate(provider_id(90), "moved"))
        revision = service.index.revision
    async with world.serving() as service:
        assert world.began_with_file()
        assert service.index.revision == revision
        assert len(service.index.catalog) == 21


@pytest.mark.parametrize("seed", range(8))
@played
async def test_random_histories(world: World, seed: int) -> None:
    """However starts, stops, kills and changes alternate, each start has what the rows have."""
    random = Random(f"histories/{seed}")
    grown, numbers = 0, count(500)
    for _ in range(5):
        old = world.file.read_bytes() if world.file.exists() else None
        async with world.serving(saving=random.random() < 0.8) as service:
            more = random.randint(0, 6)
            await grow(service, grown, more)
            grown += more
            for n in random.sample(range(grown), min(grown, 3)):
                await service.transactor.submit(claim(next(numbers), provider_id(n), DISK_GB=1))
            assert len(service.index.catalog) == grown
        if old is not None and random.random() < 0.5:
            world.file.write_bytes(old)  # as if the process was killed before it saved anything
    async with world.serving():
        pass


def flipped(world: World) -> None:
    """Flip a bit in the middle."""
    content = bytearray(world.file.read_bytes())
    content[len(content) // 2] ^= 16
    world.file.write_bytes(content)


def truncated(world: World) -> None:
    """Cut the end off."""
    world.file.write_bytes(world.file.read_bytes()[:-9])


def emptied(world: World) -> None:
    """Leave nothing."""
    world.file.write_bytes(b"")


def writable_by_others(world: World) -> None:
    """Let others write it."""
    world.file.chmod(0o622)


@pytest.mark.parametrize("spoil", [flipped, truncated, emptied, writable_by_others])
@played
async def test_a_doubtful_file_is_ignored(
    world: World, spoil: Callable[[World], None], caplog: pytest.LogCaptureFixture
) -> None:
    """One line says so, the rows are read, and the file is written again."""
    async with world.serving() as service:
        await grow(service, 0, 10)
    spoil(world)
    with caplog.at_level(logging.WARNING, "moorage.index"):
        async with world.serving() as service:
            assert not world.began_with_file()
            assert len(service.index.catalog) == 10
    assert len(caplog.records) == 1 and "is not used" in caplog.text
    async with world.serving():
        assert world.began_with_file()


@played
async def test_an_older_database_does_not_use_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither one that lacks its revision, nor one that has written it at another time."""
    async with world.serving(saving=False) as service:
        await grow(service, 0, 4)
    older = world.database.read_bytes()
    async with world.serving() as service:
        await grow(service, 4, 6)
    file = world.file.read_bytes()
    for more in (0, 6, 9):
        world.database.write_bytes(older)
        # Without its mark, the database does not know that it was put back.
        world.database.with_name("x.sqlite.lock").unlink()
        world.file.write_bytes(file)
        async with world.serving(saving=False) as service:
            await grow(service, 4, more)
        caplog.clear()
        async with world.serving() as service:
            assert not world.began_with_file()
            assert len(service.index.catalog) == 4 + more
        assert "is not used: the database has another revision" in caplog.text


@played
async def test_a_database_that_was_put_back_does_not_use_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Its epoch is another one."""
    async with world.serving(saving=False) as service:
        await grow(service, 0, 4)
    older = world.database.read_bytes()
    async with world.serving() as service:
        await grow(service, 4, 6)
    world.database.write_bytes(older)
    async with world.serving() as service:
        assert not world.began_with_file()
        assert len(service.index.catalog) == 4
    assert "is not used: it is of epoch" in caplog.text


@played
async def test_another_database_does_not_use_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that was copied beside another database is ignored."""
    async with world.serving() as service:
        await grow(service, 0, 4)
    file = world.file.read_bytes()
    for one in world.database.parent.iterdir():
        one.unlink()
    async with world.serving(saving=False) as service:
        await grow(service, 0, 5)
    world.file.write_bytes(file)
    async with world.serving() as service:
        assert not world.began_with_file()
        assert len(service.index.catalog) == 5
    assert "is not used: it belongs to another database" in caplog.text


@played
async def test_deleted_change_rows_end_its_use(world: World) -> None:
    """If the rows that follow it are gone, all rows are read."""
    async with world.serving() as service:
        await grow(service, 0, 4)
    file = world.file.read_bytes()
    async with world.serving(saving=False, retention=KEPT) as service:
        await grow(service, 4, 6)
        world.clock.at += 3_600_000_000
        await service.chores.compact()
    world.file.write_bytes(file)
    async with world.serving() as service:
        assert not world.began_with_file()
        assert len(service.index.catalog) == 10


@played
async def test_too_many_change_rows_end_its_use(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then reading all rows is faster."""
    async with world.serving() as service:
        await grow(service, 0, 4)
    monkeypatch.setattr(saved_catalog, "rows_max", lambda providers: 10)
    async with world.serving(saving=False) as service:
        await grow(service, 4, 6)
    async with world.serving():
        assert not world.began_with_file()


@played
async def test_little_changed_is_not_saved_again(world: World) -> None:
    """A stop writes nothing while the change rows are few."""
    async with world.serving() as service:
        await grow(service, 0, 10)
    before = world.file.stat().st_ino
    async with world.serving() as service:
        await grow(service, 10, 1)
    assert world.file.stat().st_ino == before


@played
async def test_a_small_catalog_is_not_saved(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read its rows costs next to nothing."""
    async with world.serving(saving=False) as service:
        await grow(service, 0, 4)
    engine = open_engine(f"sqlite:///{world.database}")
    service = await Service.start(
        *(engine, world.clock, CLASSES, TRAITS),
        on_fatal=fatal,
        saved=SavedCatalog(engine, str(world.file)),
    )
    await service.stop()
    assert not world.file.exists()


@played
async def test_a_failed_write_harms_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a full disk, one line says so, and the next start reads all rows."""
    monkeypatch.setattr(catalog_file, "FREE_BYTES", 1 << 62)
    async with world.serving() as service:
        await grow(service, 0, 10)
    assert not world.file.exists()
    assert len(caplog.records) == 1 and "free on the disk" in caplog.text
    async with world.serving():
        assert not world.began_with_file()


@played
async def test_it_is_saved_while_the_service_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a stop, too; changes during the write do not get into the file."""
    monkeypatch.setattr(saved_catalog, "PERIOD_SECONDS", 0.0)
    async with world.serving(saving=False) as service:
        await grow(service, 0, 10)
    async with world.serving() as service:
        assert service.saved is not None
        numbers = count(700)
        while service.saved.origin is None:
            await service.transactor.submit(claim(next(numbers), provider_id(9), DISK_GB=1))
        copied = shutil.copy(world.file, world.file.with_name("copied"))
        await grow(service, 10, 3)
    shutil.copy(copied, world.file)
    async with world.serving() as service:
        assert world.began_with_file()
        assert len(service.index.catalog) == 13


@played
async def test_a_wrong_catalog_is_not_kept(world: World) -> None:
    """If a check finds that it is not what the rows are, the file goes, and stays away."""
    async with world.serving() as service:
        await grow(service, 0, 10)
    engine = open_engine(f"sqlite:///{world.database}")
    saved = SavedCatalog(engine, str(world.file), providers_min=1)
    service = await Service.start(
        *(engine, world.clock, CLASSES, TRAITS), on_fatal=fatal, saved=saved
    )
    service.index.catalog.summaries.rows.rows[0] += 1
    assert await service.operations.check() != []
    assert not world.file.exists()
    await service.stop()
    assert not world.file.exists()


@played
async def test_parts_that_cannot_be_read_are_ignored(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a fault in the restoring raises, the rows are read."""
    async with world.serving() as service:
        await grow(service, 0, 10)

    def broken(records: PackedRecords, names: int) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(PackedRecords, "_check", broken)
    async with world.serving() as service:
        assert not world.began_with_file()
        assert len(service.index.catalog) == 10
    assert "ZeroDivisionError" in caplog.text


@played
async def test_a_restart_after_an_import_begins_with_the_file(world: World) -> None:
    """A file from before an import is brought up to date with the rows that it has written."""
    async with world.serving() as service:
        await grow(service, 0, 3)
        await service.operations.wipe()
        await service.imports.begin(Beginning("a source"), TESTER)
        first = drawn(Random(7))
        await service.imports.write(rows_of(differences(Ledger(), first)))
    shutil.copy(world.file, f"{world.file}.old")
    async with world.serving() as service:
        assert world.began_with_file()
        assert service.imports.shown is not None
        second = first.drifted(Random(8))
        await sent_in_any_order(service, differences(first, second), Random(9))
        await service.imports.finish(TESTER)
    shutil.move(f"{world.file}.old", world.file)
    async with world.serving() as service:
        assert world.began_with_file()
        assert service.imports.shown is None
        assert await listed(service) == second
