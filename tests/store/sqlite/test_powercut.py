"""A power loss at any moment loses no acknowledged write and leaves no partial batch."""

import asyncio
import hashlib
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

import apsw
import pytest

from moorage.store import changelog_compaction
from moorage.store.open import open_engine
from moorage.store.sqlite.engine import SqliteEngine
from tests.store.build import differences_load, digest, provider_new, run, stream
from tests.store.sqlite.checkpoints import settled
from tests.store.sqlite.powercut import Disk, Recorder, write_image

pytestmark = pytest.mark.thorough

NAME = "moorage.db"
EMPTY = "empty"
"""The content of a database without tables."""


class Session:
    """A recorded run: what was written, and the content at each revision."""

    def __init__(self, folder: Path, synchronous: str, seed: int, *, beside: bool = False) -> None:
        """With `beside` the next batch does not wait for a checkpoint in progress."""
        self.recorder = Recorder(f"recorder {folder.name} {synchronous} {seed}")
        self.states: dict[int, set[str]] = {}
        self._path = folder / NAME
        self._synchronous = synchronous
        self._beside = beside
        self._stream = stream(seed)
        self._contents: dict[bytes, tuple[int, str] | None] = {}

    def live(self, batches: int) -> None:
        """Open the database, run batches, close it."""
        asyncio.run(self._live(batches))

    async def _live(self, batches: int) -> None:
        engine = open_engine(
            f"sqlite:///{self._path}",
            vfs=self.recorder.name,
            synchronous=self._synchronous,
            checkpoint_pages=50,
        )
        assert isinstance(engine, SqliteEngine)
        watcher = apsw.Connection(str(self._path), vfs=self.recorder.name)
        self._remember(watcher)
        for number, batch in enumerate(islice(self._stream, batches)):
            await run(engine, batch)
            self.recorder.acknowledge(self._remember(watcher))
            if number % 20 == 19:
                async with engine.transaction() as transaction:
                    await transaction.run(changelog_compaction.compact(number // 2))
                    await transaction.commit()
                self._remember(watcher)
            if not self._beside:
                await settled(engine)
        watcher.close()
        await engine.close()

    def _remember(self, watcher: apsw.Connection) -> int:
        revision, state = digest(watcher)
        self.states.setdefault(revision, set()).add(state)
        return revision

    def judge(self, image: dict[str, bytes], folder: Path, acknowledged: int) -> str:
        """Open an image of a power loss; return `sound` or what is wrong.

        Two images in five are equal to an earlier one; these are opened only once.
        """
        key = fingerprint(image)
        if key not in self._contents:
            write_image(image, folder)
            self._contents[key] = contents(folder / NAME)
        found = self._contents[key]
        if found is None:
            return "corrupt"
        revision, state = found
        if revision < acknowledged:
            return "lost"
        return "sound" if state == EMPTY or state in self.states.get(revision, ()) else "half done"


def fingerprint(image: dict[str, bytes]) -> bytes:
    """Return a hash of the names and bytes of all files."""
    content = hashlib.sha256()
    for name, data in sorted(image.items()):
        content.update(f"{name} {len(data)} ".encode())
        content.update(data)
    return content.digest()


def contents(database: Path) -> tuple[int, str] | None:
    """Return the revision and a hash of a database's content; None if it is damaged."""
    connection = apsw.Connection(str(database))
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if connection.pragma("integrity_check") != "ok":
            return None
        if not connection.execute("SELECT name FROM sqlite_master").fetchall():
            return 0, EMPTY
        return digest(connection)
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
        return None
    finally:
        connection.close(True)


def verdicts(session: Session, folder: Path, images: int, seed: int) -> Counter[str]:
    """Build images at moments throughout the log and count their states."""
    random = Random(seed)
    log = session.recorder.log
    moments = Counter(random.randrange(len(log)) for _ in range(images))
    place = folder / "image"
    place.mkdir(exist_ok=True)
    disk, found = Disk({NAME: b""}), Counter[str]()
    for moment, event in enumerate(log):
        disk.step(event)
        for _ in range(moments[moment]):
            image = disk.image(random)
            verdict = session.judge(image, place, disk.acknowledged)
            found[verdict] += 1
            if verdict == "sound" and random.random() < 0.02:
                write_image(image, place)
                asyncio.run(use_again(place))
    return found


async def use_again(place: Path) -> None:
    """Open the image with an engine, assert that it is consistent, and write to it."""
    engine = open_engine(f"sqlite:///{place / NAME}")
    assert await engine.read_aside(differences_load()) == []
    await run(engine, provider_new(999, VCPU=1))
    await engine.close()


def test_full_loses_nothing(folder: Path) -> None:
    """None of 6,000 images of a power loss lacks an acknowledged write."""
    session = Session(folder, "FULL", seed=1)
    session.live(45)
    session.live(15)
    happened = Counter((event.kind, event.file) for event in session.recorder.log)
    assert happened["sync", NAME] >= 5, "too few checkpoints"
    assert happened["delete", f"{NAME}-wal"] == 2, "the log was not deleted at the end"
    assert verdicts(session, folder, 6_000, seed=2) == {"sound": 6_000}


def test_checkpoints_beside_commits_lose_nothing(folder: Path) -> None:
    """The same holds if checkpoints run while the next batches are written."""
    session = Session(folder, "FULL", seed=3, beside=True)
    session.live(60)
    assert verdicts(session, folder, 1_500, seed=4) == {"sound": 1_500}


def test_normal_loses_writes(folder: Path) -> None:
    """The control: with one sync less per commit the same test finds losses, but no damage."""
    session = Session(folder, "NORMAL", seed=5)
    session.live(40)
    found = verdicts(session, folder, 300, seed=6)
    assert found["lost"] > 30
    assert found["lost"] + found["sound"] == 300


def test_off_loses_and_damages(folder: Path) -> None:
    """The control: without syncs the same test finds losses and damaged files."""
    session = Session(folder, "OFF", seed=7)
    session.live(40)
    found = verdicts(session, folder, 300, seed=8)
    assert found["lost"] > 30
    assert found["corrupt"] > 30
