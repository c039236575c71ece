"""SQLite's log during a long read: bounded for every kind of reader."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage.store.api import Engine, Plan, Row, Stream, Unavailable
from moorage.store.open import open_engine
from moorage.store.sqlite.copy import _log_watched, copy_beside
from moorage.store.sqlite.file import PAGE, connect, translated
from tests.store.build import Batch, index_load, provider_new, run, together

PAGES_MAX = 200
WRITES = 100


def large(n: int) -> Batch:
    """Return a batch that writes about ten pages."""
    return together(*(provider_new(n * 100 + k, VCPU=1) for k in range(30)))


class EndlessRead:
    """A read that runs until it is stopped or interrupted."""

    def __init__(self) -> None:
        self.rows = 0

    def plan(self) -> Plan[None]:
        """Read rows endlessly, in one snapshot."""
        while True:
            yield [Stream("providers_snapshot", (), self._take)]

    def _take(self, rows: list[Row]) -> None:
        self.rows += len(rows)


def opened(path: Path, pages_max: int) -> Engine:
    """Open a database with a limit for its log."""
    return open_engine(
        f"sqlite:///{path}", synchronous="OFF", checkpoint_pages=50, log_pages_max=pages_max
    )


def longest(path: Path, pages_max: int) -> tuple[int, int, bool]:
    """Write during a read; return the largest log, the file's size, and whether the read ended."""

    async def scenario() -> tuple[int, int, bool]:
        engine = opened(path, pages_max)
        await run(engine, large(0))
        reading = EndlessRead()
        reader = asyncio.ensure_future(engine.read_aside(reading.plan(), slow=True))
        while not reading.rows:
            await asyncio.sleep(0)
        most = 0
        for n in range(1, WRITES):
            await run(engine, large(n))
            most = max(most, Path(f"{path}-wal").stat().st_size)
        ended = reader.done()
        if ended:
            with pytest.raises(Unavailable, match="so that the log can start anew"):
                await reader
            assert (await engine.read_aside(index_load(), slow=True))[1] == WRITES
        else:  # end the read
            while not reader.done():
                engine._slow[1].interrupt()  # type: ignore[attr-defined]  # not in the interface of engines
                await asyncio.wait([reader], timeout=0.1)
            with pytest.raises(Unavailable):
                await reader
        await engine.close()
        return most, path.stat().st_size, ended

    return asyncio.run(scenario())


def test_the_log_is_bounded(tmp_path: Path) -> None:
    """A longer read is interrupted with an error; the log then starts again."""
    most, size, ended = longest(tmp_path / "a.db", PAGES_MAX)
    assert ended
    assert most < 2 * max(PAGES_MAX * PAGE, size)


def test_the_log_is_unbounded_without_a_limit(tmp_path: Path) -> None:
    """The control: the same reads and writes with a huge limit."""
    most, size, ended = longest(tmp_path / "a.db", 1 << 40)
    assert not ended
    assert most > 2 * max(PAGES_MAX * PAGE, size)


async def interrupted(engine: Any, target: Path) -> None:
    """Back up until an attempt is interrupted; on a busy machine some finish before that."""
    for _ in range(50):
        copying = asyncio.ensure_future(engine.backup(str(target)))
        while not copying.done():
            engine._log_pages = 1 << 40
            engine._end_long_reads()
            await asyncio.sleep(0)
        if copying.exception() is not None:
            await copying
        target.unlink()


def test_a_backup_that_takes_too_long(tmp_path: Path) -> None:
    """It is interrupted like any read and leaves no file; a later backup is complete."""

    async def scenario() -> None:
        engine: Any = opened(tmp_path / "a.db", 1)
        for n in range(40):
            await run(engine, large(n))
        target = tmp_path / "copy.db"
        with pytest.raises(Unavailable, match="so that the log can start anew"):
            await interrupted(engine, target)
        assert not list(tmp_path.glob("copy.db*"))
        await engine.backup(str(target))
        assert target.stat().st_size > 40 * PAGE
        await engine.close()

    asyncio.run(scenario())


ENDLESS = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n, clock
"""


def read_from_outside(path: Path, pages_max: int) -> None:
    """Read endlessly, as a command does in another process than the writer's."""
    connection = connect(str(path), writes=False)
    try:
        with _log_watched(str(path), pages_max, connection), translated("read"):
            connection.execute(ENDLESS).fetchall()
    finally:
        connection.close(True)


def test_another_process_ends_its_own_read(tmp_path: Path) -> None:
    """The writer cannot interrupt it: the reader watches the size of the log itself."""

    async def scenario() -> None:
        engine = opened(tmp_path / "a.db", 1 << 40)
        await run(engine, large(0))
        reader = asyncio.ensure_future(
            asyncio.to_thread(read_from_outside, tmp_path / "a.db", PAGES_MAX)
        )
        n = 1
        while not reader.done():
            await run(engine, large(n))
            n += 1
        with pytest.raises(Unavailable, match="so that the log can start anew"):
            await reader
        assert Path(f"{tmp_path}/a.db-wal").stat().st_size >= PAGES_MAX * PAGE
        await engine.close()

    asyncio.run(scenario())


def test_a_log_that_was_long_before(tmp_path: Path) -> None:
    """It does not prevent a backup as long as it does not grow."""
    engine = opened(tmp_path / "a.db", 1 << 40)
    asyncio.run(run(engine, large(0)))
    copy_beside(str(tmp_path / "a.db"), str(tmp_path / "copy.db"), 1)
    asyncio.run(engine.close())
    copied = open_engine(f"sqlite:///{tmp_path}/copy.db")
    assert asyncio.run(copied.read_aside(index_load()))[1] == 1
    asyncio.run(copied.close())


def test_closing_while_another_process_reads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends normally and logs that the log stays; the next start has everything."""
    monkeypatch.setattr("moorage.store.sqlite.file._BUSY_MS", 10)
    path = tmp_path / "a.db"
    engine = opened(path, 1 << 40)
    asyncio.run(run(engine, large(0)))
    reader = connect(str(path), writes=False)
    with reader:
        reader.execute("SELECT revision FROM clock").fetchall()
        asyncio.run(run(engine, large(1)))
        asyncio.run(engine.close())
    assert "everything is in the log, and the next start reads it" in caplog.text
    assert Path(f"{path}-wal").stat().st_size
    reader.close(True)
    again = open_engine(f"sqlite:///{path}")
    assert asyncio.run(again.read_aside(index_load()))[1] == 2
    asyncio.run(again.close())
