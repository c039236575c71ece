"""The SQLite file in its place: one owner under any name, and what happens when it is moved."""

import asyncio
import logging
import os
import shutil
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from moorage.store.api import Engine, Locked, Unavailable, Unusable
from moorage.store.high_water_mark import BYTES, Mark
from moorage.store.open import open_engine, restore
from moorage.store.sqlite.file import PLACE_SECONDS, FileIdentity, Lock
from tests.store.build import index_load, provider_new, run


def epoch(path: Path) -> int:
    """Open a database file; return its epoch."""

    async def load() -> int:
        engine = open_engine(f"sqlite:///{path}")
        found = await engine.read_aside(index_load())
        await engine.close()
        return found[0]

    return asyncio.run(load())


def written(path: Path, *numbers: int) -> None:
    """Create the providers with these numbers in a database file."""

    async def write() -> None:
        engine = open_engine(f"sqlite:///{path}")
        for n in numbers:
            await run(engine, provider_new(n))
        await engine.close()

    asyncio.run(write())


def test_one_owner_by_any_name(tmp_path: Path) -> None:
    """A symbolic link to the file or its folder leads to the same lock."""
    (tmp_path / "real").mkdir()
    path = tmp_path / "real/a.db"
    written(path, 1)
    (tmp_path / "file.db").symlink_to(path)
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    engine = open_engine(f"sqlite:///{path}")
    for name in ("file.db", "folder/a.db"):
        with pytest.raises(Locked, match="in use by another process"):
            open_engine(f"sqlite:///{tmp_path}/{name}")
    asyncio.run(engine.close())
    assert epoch(tmp_path / "file.db") == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file.db", "folder", "real"]


def test_a_lock_file_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock on a file without a name is worthless: the process tries again."""
    path = str(tmp_path / "a.db")
    real = os.stat
    removed = []

    def stat(file: str | int, **more: Any) -> os.stat_result:
        if not removed:
            removed.append(file)
            os.unlink(f"{path}.lock")
        return real(file, **more)

    monkeypatch.setattr("moorage.store.sqlite.file.os.stat", stat)
    lock = Lock(path)
    monkeypatch.undo()
    with pytest.raises(Locked):
        Lock(path)
    lock.release()


def refused(engine: Engine, path: Path, n: int) -> int:
    """Create providers from the n-th on until one is refused; return its number."""
    end = time.monotonic() + 100 * PLACE_SECONDS
    while time.monotonic() < end:
        try:
            asyncio.run(run(engine, provider_new(n)))
        except Unavailable as error:
            assert f"{path} was moved, deleted or replaced" in str(error)
            return n
        n += 1
    raise AssertionError("no write was refused")


@pytest.mark.parametrize("end", ["", "-wal", ".lock"])
def test_a_file_that_was_moved(sqlite_engine: Engine, url: str, end: str) -> None:
    """Nothing is written while the file is elsewhere; writing continues when it is back."""
    path = Path(f"{url.removeprefix('sqlite:///')}{end}")
    asyncio.run(run(sqlite_engine, provider_new(1)))
    n = 2
    for taken, elsewhere in enumerate((path.with_name("elsewhere"), path.with_name("again"))):
        path.rename(elsewhere)
        if taken:
            shutil.copy(elsewhere, path)
        n = refused(sqlite_engine, path, n)
        assert refused(sqlite_engine, path, n) == n, "a repeated write was not refused"
        elsewhere.rename(path)
        asyncio.run(run(sqlite_engine, provider_new(n)))
        n += 1
    assert asyncio.run(sqlite_engine.read_aside(index_load()))[1] == n - 1


def test_the_place_is_checked_at_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not checked at every commit, since a check takes three system calls."""
    for end in ("", "-wal", ".lock"):
        (tmp_path / f"a.db{end}").touch()
    place, real, looks = FileIdentity(str(tmp_path / "a.db")), os.stat, 0

    def stat(file: str | int, **more: Any) -> os.stat_result:
        nonlocal looks
        looks += 1
        return real(file, **more)

    monkeypatch.setattr("moorage.store.sqlite.file.os.stat", stat)
    begun, checks = time.monotonic(), 0
    while time.monotonic() < begun + 3 * PLACE_SECONDS:
        place.check()
        checks += 1
    spent = time.monotonic() - begun
    monkeypatch.undo()
    assert 6 <= looks <= 4 + 3 * (1 + spent / PLACE_SECONDS) < checks


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A missing ledger is not replaced by an empty one; the message says how to continue."""
    path = tmp_path / "a.db"
    written(path, 1)
    shutil.copy(path, tmp_path / "copy.db")
    path.rename(tmp_path / "moved.db")
    complaint = r"a\.db\.lock remembers a ledger at revision 1\.1: move it back.*db epoch raise"
    with pytest.raises(Unusable, match=complaint):
        open_engine(f"sqlite:///{path}")
    assert not path.exists()
    (tmp_path / "moved.db").rename(path)
    assert epoch(path) == 1
    path.unlink()
    assert restore(f"sqlite:///{path}", str(tmp_path / "copy.db")) is None
    assert epoch(path) > 1


def test_an_empty_file(tmp_path: Path) -> None:
    """The remains of a failed copy are not a ledger, unless there was none before."""
    path = tmp_path / "a.db"
    written(path, 1)
    path.write_bytes(b"")
    complaint = r"a\.db is empty, but .*a\.db\.lock remembers a ledger at revision 1\.1: move it"
    with pytest.raises(Unusable, match=complaint):
        open_engine(f"sqlite:///{path}")
    assert path.read_bytes() == b""
    (tmp_path / "new.db").touch()
    assert epoch(tmp_path / "new.db") == 1


def test_a_copy_put_over_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each copy begins another epoch and logs it; opening it again changes nothing."""
    path = tmp_path / "a.db"
    written(path, 1)
    shutil.copy(path, tmp_path / "old.db")
    written(path, 2, 3)
    seen = [epoch(path), epoch(path)]
    assert seen == [1, 1] and not caplog.records
    for _ in range(3):
        shutil.copy(tmp_path / "old.db", path)
        with caplog.at_level(logging.WARNING):
            seen.append(epoch(path))
        assert "it was put back to an earlier state" in caplog.records[-1].message
        seen.append(epoch(path))
    assert seen[2] == seen[3] < seen[4] == seen[5] < seen[6] == seen[7]
    assert len(caplog.records) == 3


def test_a_file_that_was_written_to_elsewhere(tmp_path: Path) -> None:
    """It is detected even if its revision is not lower than that of the replaced file."""
    path, other = tmp_path / "a.db", tmp_path / "other.db"
    written(path, 1)
    shutil.copy(path, other)
    written(path, 2)
    written(other, 2, 3)
    connection = apsw.Connection(str(other))
    connection.execute("UPDATE change SET at = at + 1 WHERE revision = 2")
    connection.close()
    shutil.copy(other, path)
    assert epoch(path) > 1


def test_what_the_lock_file_says(tmp_path: Path) -> None:
    """A lock file with an epoch alone, as earlier releases wrote it, empty, or unreadable.

    A file may contain NULs if its data had not reached the disk before a loss of power.
    """
    lock = Lock(str(tmp_path / "a.db"))
    assert lock.mark() == Mark()
    lock.reached(Mark(3, 1 << 60, 1 << 62))
    assert lock.mark() == Mark(3, 1 << 60, 1 << 62)
    assert os.stat(lock.path).st_size == BYTES
    lock.release()
    for text, found in (("7\n", Mark(7)), ("", Mark()), ("\0" * BYTES, Mark())):
        (tmp_path / "b.db.lock").write_text(text)
        lock = Lock(str(tmp_path / "b.db"))
        assert lock.mark() == found
        lock.release()
    for text in ("of no use", "1 2 3 4", "-1 2 3", str(1 << 63)):
        (tmp_path / "b.db.lock").write_text(text)
        with pytest.raises(Unusable, match="remove it, then run `moorage db epoch raise`"):
            open_engine(f"sqlite:///{tmp_path}/b.db")
