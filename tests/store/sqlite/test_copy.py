"""Backup and restore: backups during writes are complete, and a restore begins a new epoch."""

import asyncio
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import apsw
import pytest

from moorage.store.api import Engine, Locked, Unusable
from moorage.store.open import open_engine, restore
from moorage.store.sqlite.copy import copy
from tests.store.build import (
    differences_load,
    digest,
    index_load,
    provider_new,
    run,
    stream,
    together,
)
from tests.store.killed_backup import left_by_a_killed_process


def filled(path: Path, batches: int, seed: int = 20) -> str:
    """Create a database with batches; return its address."""

    async def fill() -> None:
        engine = open_engine(f"sqlite:///{path}")
        for batch in islice(stream(seed), batches):
            await run(engine, batch)
        await engine.close()

    asyncio.run(fill())
    return f"sqlite:///{path}"


def state(path: Path) -> tuple[int, str]:
    """Return revision and content of an unused database file."""
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        found = digest(connection)
    connection.close()
    return found


def epoch(url: str) -> int:
    """Return the epoch of an unused database."""

    async def load() -> int:
        engine = open_engine(url)
        found = await engine.read_aside(index_load())
        assert await engine.read_aside(differences_load()) == []
        await engine.close()
        return found[0]

    return asyncio.run(load())


def test_backup_while_writing(sqlite_engine: Engine, tmp_path: Path) -> None:
    """A copy made while batches run is one of the states that the ledger really had."""
    target = tmp_path / "copy.db"

    async def scenario() -> dict[int, str]:
        batches = stream(seed=21)
        states: dict[int, str] = {}
        watcher = apsw.Connection(sqlite_engine.name.removeprefix("sqlite "))
        for batch in islice(batches, 30):
            await run(sqlite_engine, batch)
        copying = asyncio.create_task(sqlite_engine.backup(str(target)))
        states.update([digest(watcher)])
        while not copying.done():
            await run(sqlite_engine, next(batches))
            states.update([digest(watcher)])
        await copying
        watcher.close()
        return states

    states = asyncio.run(scenario())
    revision, found = state(target)
    assert states[revision] == found
    assert (target.stat().st_mode & 0o777) == 0o600
    assert not list(tmp_path.glob("*.partial"))


def test_backup_refuses_an_existing_file(sqlite_engine: Engine, tmp_path: Path) -> None:
    """Nothing is overwritten, and a missing folder is named."""
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(Unusable, match="exists"):
        asyncio.run(sqlite_engine.backup(str(target)))
    assert target.read_text() == "precious"
    with pytest.raises(Unusable, match="No such file"):
        asyncio.run(sqlite_engine.backup(str(tmp_path / "missing" / "copy.db")))


def test_restore_raises_the_epoch(tmp_path: Path) -> None:
    """The backup's content is restored under a new epoch, and the old file is kept."""
    url = filled(tmp_path / "a.db", 10)
    copy = tmp_path / "copy.db"

    async def backup_then_write() -> None:
        engine = open_engine(url)
        await engine.backup(str(copy))
        await run(engine, provider_new(500))
        await engine.close()

    asyncio.run(backup_then_write())
    before = state(tmp_path / "a.db")
    epochs = [epoch(url)]
    for name in ("before-restore", "before-restore-2", "before-restore-3"):
        assert restore(url, str(copy)) == str(tmp_path / f"a.db.{name}")
        epochs.append(epoch(url))
        assert epochs[-1] > epochs[-2]
        assert state(tmp_path / "a.db")[0] == 10
    assert state(tmp_path / "a.db.before-restore") == before
    assert not list(tmp_path.glob("*restoring*"))


def test_restore_over_a_damaged_file(tmp_path: Path) -> None:
    """An unreadable database is replaced; its epoch is known from the lock file."""
    url = filled(tmp_path / "a.db", 10)
    copy = tmp_path / "copy.db"
    copy.write_bytes((tmp_path / "a.db").read_bytes())
    restore(url, str(copy))
    before = epoch(url)
    assert before > 1
    (tmp_path / "a.db").write_bytes(b"nothing of use" * 1_000)
    (tmp_path / "a.db-wal").write_bytes(b"nor this" * 1_000)
    kept = restore(url, str(copy))
    assert kept is not None
    assert Path(kept).read_bytes().startswith(b"nothing of use")
    assert not os.path.exists(tmp_path / "a.db-wal")
    assert epoch(url) > before


def test_restore_keeps_what_only_the_log_had(tmp_path: Path) -> None:
    """A database whose process was killed keeps everything that was acknowledged."""
    url = filled(tmp_path / "copy.db", 3)
    live = open_engine(f"sqlite:///{tmp_path}/live.db")
    asyncio.run(run(live, provider_new(1)))
    for end in ("", "-wal"):
        (tmp_path / f"a.db{end}").write_bytes((tmp_path / f"live.db{end}").read_bytes())
    asyncio.run(live.close())
    kept = restore(f"sqlite:///{tmp_path}/a.db", url.removeprefix("sqlite:///"))
    assert kept is not None
    assert state(Path(kept)) == state(tmp_path / "live.db")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_restore_by_root_keeps_the_owner(tmp_path: Path) -> None:
    """The service, which is not root, can open the file and its lock, also if both are new."""
    copy = filled(tmp_path / "copy.db", 3).removeprefix("sqlite:///")
    filled(tmp_path / "a.db", 5)
    os.chown(tmp_path / "a.db", 4711, 4712)
    kept = restore(f"sqlite:///{tmp_path}/a.db", copy)
    assert kept is not None
    (tmp_path / "folder").mkdir()
    os.chown(tmp_path / "folder", 4711, 4712)
    restore(f"sqlite:///{tmp_path}/folder/new.db", copy)
    for name in ("a.db", "a.db.lock", "folder/new.db", "folder/new.db.lock", kept):
        found = os.stat(tmp_path / name)
        assert (found.st_uid, found.st_gid) == (4711, 4712), name
    assert state(tmp_path / "a.db")[0] == 3


def test_restore_without_a_database(tmp_path: Path) -> None:
    """A backup can be restored on a new machine."""
    filled(tmp_path / "copy.db", 5)
    url = f"sqlite:///{tmp_path}/new.db"
    assert restore(url, str(tmp_path / "copy.db")) is None
    assert epoch(url) > 1


def test_two_backups_to_one_name(sqlite_engine: Engine, tmp_path: Path) -> None:
    """The second is refused while the first is being written, and the first is complete."""
    target = tmp_path / "copy.db"

    async def scenario() -> None:
        await run(sqlite_engine, together(*(provider_new(n, VCPU=1) for n in range(500))))
        backups = (sqlite_engine.backup(str(target)) for _ in range(4))
        found = await asyncio.gather(*backups, return_exceptions=True)
        assert found.count(None) == 1
        assert all(one is None or isinstance(one, Unusable) for one in found)

    asyncio.run(scenario())
    assert state(target) == state(Path(sqlite_engine.name.removeprefix("sqlite ")))
    assert not list(tmp_path.glob("*.partial"))


def test_a_backup_called_as_an_unfinished_one(tmp_path: Path) -> None:
    """Otherwise the next backup would remove it as the remains of a killed process."""
    source, target = tmp_path / "a.db", tmp_path / "copy.db"
    filled(source, 5)
    with pytest.raises(Unusable, match="this name is reserved for unfinished backups"):
        copy(str(source), f"{target}.partial")
    assert list(tmp_path.glob("copy.db*")) == []
    left_by_a_killed_process(target)
    (tmp_path / "copy.db.partial" / "moorage.sqlite-journal").touch()
    copy(str(source), str(target))
    assert list(tmp_path.glob("copy.db*")) == [target]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_backup_whose_folder_is_replaced(tmp_path: Path, when: str) -> None:
    """If another process takes its name, the backup fails and keeps what the other has written."""
    source, target = tmp_path / "a.db", tmp_path / "copy.db"
    theirs = tmp_path / "copy.db.partial"
    filled(source, 5)

    def replace() -> None:
        theirs.rename(tmp_path / "ours")
        theirs.mkdir()
        (theirs / "moorage.sqlite").touch()

    @contextmanager
    def replacing(_: apsw.Connection) -> Iterator[None]:
        if when == "before":
            replace()
        yield
        if when == "after":
            replace()

    with pytest.raises(Unusable, match="another process has replaced"):
        copy(str(source), str(target), replacing)
    assert (theirs / "moorage.sqlite").exists()
    assert list((tmp_path / "ours").iterdir()) == []
    assert not target.exists()
    copy(str(source), str(target))
    assert state(target) == state(source)


@pytest.mark.parametrize("kind", ["file", "hard link", "symbolic link"])
def test_what_others_have_prepared_is_not_filled(tmp_path: Path, kind: str) -> None:
    """Who can write to the folder knows the names, but must not get the content of a backup."""
    source, target, prepared = tmp_path / "a.db", tmp_path / "copy.db", tmp_path / "theirs"
    filled(source, 5)
    prepared.mkdir()
    content = prepared / "moorage.sqlite"
    content.touch()
    place = tmp_path / "copy.db.partial"
    if kind == "file":
        place.write_text("")
    elif kind == "hard link":
        place.hardlink_to(content)
    else:
        place.symlink_to(prepared)
    with pytest.raises(Unusable, match=r"cannot create .*copy\.db\.partial"):
        copy(str(source), str(target))
    assert content.read_bytes() == b""
    place.unlink()
    copy(str(source), str(target))
    assert state(target) == state(source)


def test_a_backup_that_cannot_begin_says_why(tmp_path: Path) -> None:
    """Not even if its folder can be made, but no file in it; the folder goes again."""
    address = filled(tmp_path / "m.sqlite", 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)  # the lowest one
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    try:
        with pytest.raises(Unusable, match=r"cannot create .*b\.partial: Too many open files"):
            copy(address.removeprefix("sqlite:///"), str(tmp_path / "b"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not [*tmp_path.glob("b*")]


def test_nobody_else_can_open_a_backup_that_is_written(tmp_path: Path) -> None:
    """Its folder is private from the beginning, whatever is usual in the folder around it."""
    source, target = tmp_path / "a.db", tmp_path / "copy.db"
    filled(source, 5)
    tmp_path.chmod(0o2777)
    seen = []

    @contextmanager
    def looking(_: apsw.Connection) -> Iterator[None]:
        yield
        folder = tmp_path / "copy.db.partial"
        seen.extend(
            stat.S_IMODE(path.stat().st_mode) & 0o777 for path in (folder, *folder.iterdir())
        )

    before = os.umask(0)
    try:
        copy(str(source), str(target), looking)
    finally:
        os.umask(before)
    assert seen == [0o700, 0o600]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_restore_refuses(tmp_path: Path) -> None:
    """A database in use; a backup that is missing, foreign, empty, newer or damaged.

    The database stays unchanged, and nothing else is left behind.
    """
    url = filled(tmp_path / "a.db", 5)
    before = state(tmp_path / "a.db")
    copy = tmp_path / "copy.db"
    copy.write_bytes((tmp_path / "a.db").read_bytes())
    engine = open_engine(url)
    with pytest.raises(Locked):
        restore(url, str(copy))
    asyncio.run(engine.close())
    with pytest.raises(Unusable, match="no such file"):
        restore(url, str(tmp_path / "missing"))
    foreign = apsw.Connection(str(tmp_path / "foreign.db"))
    foreign.execute("CREATE TABLE recipe (x)")
    foreign.close()
    with pytest.raises(Unusable, match="another program"):
        restore(url, str(tmp_path / "foreign.db"))
    (tmp_path / "empty.db").touch()
    with pytest.raises(Unusable, match=r"empty\.db cannot be used: it is empty"):
        restore(url, str(tmp_path / "empty.db"))
    newer = tmp_path / "newer.db"
    newer.write_bytes(copy.read_bytes())
    connection = apsw.Connection(str(newer))
    connection.execute("INSERT INTO migration VALUES (999, 'future', 'x')")
    connection.close()
    with pytest.raises(Unusable, match=r"newer\.db has migration 999"):
        restore(url, str(newer))
    with copy.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 8192)
    with pytest.raises(Unusable, match="damaged"):
        restore(url, str(copy))
    assert state(tmp_path / "a.db") == before
    assert [file.name for file in tmp_path.glob("a.db*restor*")] == []
