"""Snapshots restored without the service's knowledge: no token or cursor is issued twice."""

import asyncio
import shutil
from pathlib import Path

import psycopg
import pytest

from moorage.service.app import Service
from moorage.service.clock import SystemClock
from moorage.service.feed.watch import ChangesGoneError
from moorage.service.ledger import vocabulary_cases
from moorage.store.api import Engine
from moorage.store.high_water_mark import Mark
from moorage.store.open import open_engine, restore
from tests.service.batch.put_back import POOL, Book, run_steps
from tests.service.pools import pool_put, spec
from tests.service.running import CLASSES, TESTER, TRAITS, fatal
from tests.support import cluster

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'migration'"


async def started(engine: Engine) -> Service:
    """Start a service on an engine."""
    return await Service.start(engine, SystemClock(), CLASSES, TRAITS, on_fatal=fatal)


class FileWorld:
    """A SQLite file that is copied while it is not in use, and copied back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "ledger.sqlite"
        self._count = 0
        self.services: list[Service] = []

    async def __aenter__(self) -> "FileWorld":
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.services[0].stop()

    async def _start(self) -> None:
        self.services = [await started(open_engine(f"sqlite:///{self._file}"))]

    async def snapshot(self) -> None:
        await self.services[0].stop()
        shutil.copy(self._file, self._folder / f"{self._count}.snapshot")
        self._count += 1
        await self._start()

    async def put_back(self, n: int) -> None:
        await self.services[0].stop()
        if n % 3:
            shutil.copy(self._folder / f"{n}.snapshot", self._file)
        else:
            restore(f"sqlite:///{self._file}", str(self._folder / f"{n}.snapshot"))
        await self._start()

    async def again(self) -> None:
        await self.services[0].stop()
        await self._start()


class ServerWorld:
    """A PostgreSQL database whose rows are replaced while services are connected.

    With `epoch_file` no service is connected meanwhile: the file has the known history.
    """

    def __init__(self, epoch_file: Path | None = None) -> None:
        self._url = cluster.fresh()
        self._epoch_file = None if epoch_file is None else str(epoch_file)
        self._count = 0
        self.services: list[Service] = []

    async def __aenter__(self) -> "ServerWorld":
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()
        cluster.shared().drop(cluster.database_of(self._url))

    async def _start(self) -> None:
        processes = 1 if self._epoch_file else 2
        self.services = [
            await started(open_engine(self._url, epoch_file=self._epoch_file))
            for _ in range(processes)
        ]

    async def _stop(self) -> None:
        for service in self.services:
            await service.stop()

    def _copy(self, statements: str, n: int) -> None:
        with psycopg.connect(self._url) as server:
            server.execute(f"CREATE SCHEMA IF NOT EXISTS kept_{n}".encode())
            for (table,) in server.execute(TABLES).fetchall():
                server.execute(statements.format(table=table, kept=f"kept_{n}.{table}").encode())

    async def snapshot(self) -> None:
        await asyncio.to_thread(self._copy, "CREATE TABLE {kept} AS TABLE {table}", self._count)
        self._count += 1

    async def put_back(self, n: int) -> None:
        replaced = "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM {kept}"
        if self._epoch_file:
            await self._stop()
        await asyncio.to_thread(self._copy, replaced, n)
        if self._epoch_file:
            await self._start()

    async def again(self) -> None:
        if self._epoch_file:
            await self._stop()
            await self._start()
        else:  # one process stays, because it must know the last revision
            await self.services[1].stop()
            self.services[1] = await started(open_engine(self._url))


World = FileWorld | ServerWorld


def world_of(kind: str, folder: Path) -> World:
    """Return a world of one kind."""
    if kind == "file":
        return FileWorld(folder)
    return ServerWorld(folder / "epoch" if kind == "server, cold" else None)


def run_world(kind: str, folder: Path, seed: int, steps: int) -> Book:
    """Execute random steps on a ledger of some kind."""

    async def run() -> Book:
        async with world_of(kind, folder) as world:
            return await run_steps(world, seed, steps)

    return asyncio.run(run())


KINDS = ("file", "server", "server, cold")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_issued_twice(kind: str, seed: int, tmp_path: Path) -> None:
    """After any restore tokens rise, and a cursor keeps its meaning or is refused."""
    book = run_world(kind, tmp_path, seed, 100)
    assert min(len(book.tokens), book.resumed, book.refused) > 2


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_comparison_tokens_are_issued_twice(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a service that trusts whatever it finds issues tokens or cursors twice."""
    monkeypatch.setattr(Mark, "is_missed_by", lambda *_: False)
    monkeypatch.setattr("moorage.store.postgres.known.KnownHistory.taken", lambda *_: None)
    with pytest.raises(AssertionError, match=r"issued twice|not the highest|another ledger"):
        for seed in range(1, 6):
            (tmp_path / str(seed)).mkdir()
            run_world(kind, tmp_path / str(seed), seed, 150)


def test_a_restored_snapshot_of_the_volume_is_noticed(tmp_path: Path) -> None:
    """A running process notices that the files of the server were restored while it was stopped.

    The server's timeline and identity are unchanged, and another process has written since.
    """

    def copied(source: Path, target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)
        owner = source.stat().st_uid, source.stat().st_gid
        for path in (target, *target.rglob("*")):
            shutil.chown(path, *owner)

    async def run() -> None:
        with cluster.Cluster() as server:
            url = server.create("ledger")
            one, other = [await started(open_engine(url)) for _ in range(2)]
            await pool_put(one.admission, POOL, spec(limit=100))
            await asyncio.to_thread(server.stop)
            kept = tmp_path / "kept"
            await asyncio.to_thread(copied, server.data, kept)
            await asyncio.to_thread(server.start)
            for n in range(3):
                await one.transactor.submit(vocabulary_cases.TraitEnsure(f"CUSTOM_LOST_{n}"))
            cursor = await one.watch.now()
            for service in (one, other):
                await service.index.current()
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(copied, kept, server.data)
            await asyncio.to_thread(server.start)
            for n in range(5):
                await other.transactor.submit(vocabulary_cases.TraitEnsure(f"CUSTOM_NEW_{n}"))
            with pytest.raises(ChangesGoneError):
                await one.watch.window(cursor)
            assert not any("LOST" in name for name in (await one.index.current()).traits)
            assert (await one.watch.now()).epoch > cursor.epoch
            for service in (one, other):
                await service.stop()

    asyncio.run(run())


def test_the_command_begins_an_unused_epoch(tmp_path: Path) -> None:
    """However often the database is restored, the command begins an epoch that was never used."""

    async def run() -> None:
        url = cluster.fresh()
        epochs = []
        for _ in range(2):
            engine = open_engine(url)
            service = await started(engine)
            epochs.append((await service.operations.epoch_raise(by=TESTER))[0])
            assert (await service.watch.now()).epoch == service.index.epoch == epochs[-1]
            await service.stop()
            with psycopg.connect(url) as server:
                server.execute("UPDATE clock SET epoch = 1")
                while True:  # wait for the database's clock
                    found = server.execute("SELECT extract(epoch FROM clock_timestamp())")
                    if int(found.fetchone()[0]) > epochs[-1]:  # type: ignore[index]  # one row
                        break
        assert epochs[0] < epochs[1]
        cluster.shared().drop(cluster.database_of(url))

    asyncio.run(run())
