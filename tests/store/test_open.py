"""Opening: addresses, the single owner of a file, permissions, and unusable files."""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.store.addresses import sqlite_path
from moorage.store.api import Engine, Fatal, Locked, StoreError, Unavailable, Unusable
from moorage.store.open import open_engine
from tests.store.build import facts_of, index_load, provider_id, provider_new, run

OWNER = """
import sys
from moorage.store.open import open_engine
engine = open_engine(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""

SECOND = """
import sys
from moorage.store.api import Locked
from moorage.store.open import open_engine
try:
    open_engine(sys.argv[1])
except Locked as error:
    print(error)
"""


def test_one_process_owns_the_file(tmp_path: Path) -> None:
    """While a process has the file, another one is refused in one line; afterwards it is free."""
    url = f"sqlite:///{tmp_path}/a.db"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    assert owner.stdin is not None
    try:
        assert owner.stdout.readline() == "open\n"
        with pytest.raises(Locked):
            open_engine(url)
        second = subprocess.run(
            [sys.executable, "-c", SECOND, url], capture_output=True, text=True, check=True
        )
        assert second.stdout.count("\n") == 1
        assert f"{tmp_path}/a.db is in use by another process" in second.stdout
    finally:
        owner.kill()
        owner.wait()
        owner.stdin.close()
        owner.stdout.close()
    asyncio.run(open_engine(url).close())


def test_the_same_process_cannot_open_it_twice(sqlite_engine: Engine, url: str) -> None:
    """A second engine in the same process is refused as well."""
    with pytest.raises(Locked):
        open_engine(url)


def test_files_are_their_owners_only(tmp_path: Path) -> None:
    """The database, its log and its lock cannot be read by other users, whatever the umask."""
    before = os.umask(0)
    try:
        engine = open_engine(f"sqlite:///{tmp_path}/a.db")
        asyncio.run(run(engine, provider_new(0)))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert {"a.db", "a.db-wal", "a.db.lock"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    asyncio.run(engine.close())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db", "a.db.lock"]


def test_reopening_keeps_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written data is there the next time; a relative address means the present folder."""
    monkeypatch.chdir(tmp_path)
    for n in range(3):
        engine = open_engine("sqlite:///a.db")
        assert engine.name == f"sqlite {tmp_path}/a.db"
        assert asyncio.run(run(engine, provider_new(n))) == n + 1
        asyncio.run(engine.close())
    engine = open_engine(f"sqlite:///{tmp_path}/a.db", migrate=False)
    facts = asyncio.run(facts_of(engine, providers={provider_id(n) for n in range(3)}))
    assert len(facts.providers) == 3
    asyncio.run(engine.close())


@pytest.mark.parametrize(
    "url",
    ["sqlite://a.db", "sqlite:///", "sqlite:///:memory:", "a.db", "mysql://x/y", "sqlite:///a\0b"],
)
def test_wrong_addresses(url: str) -> None:
    """An invalid address of a database is refused, and the right form is named."""
    with pytest.raises(Unusable, match="use sqlite:///PATH"):
        sqlite_path(url)


@pytest.mark.parametrize("url", ["postgresql://%", "postgres://h/d?sslmodus=x"])
def test_wrong_addresses_of_a_server(url: str) -> None:
    """An address that libpq cannot parse is refused without a connection attempt."""
    with pytest.raises(Unusable, match="this is not the address of a database"):
        open_engine(url)


def test_an_unreachable_server(tmp_path: Path) -> None:
    """A server that does not answer raises Unavailable, not Unusable."""
    with pytest.raises(Unavailable, match=f"cannot reach {tmp_path}/d: "):
        open_engine(f"postgresql:///d?host={tmp_path}")


def test_missing_folders(tmp_path: Path) -> None:
    """A missing folder, a folder in place of the file, and a missing file are refused."""
    with pytest.raises(Unusable, match="No such file or directory"):
        open_engine(f"sqlite:///{tmp_path}/missing/a.db")
    with pytest.raises(Unusable, match="Is a directory"):
        open_engine(f"sqlite:///{tmp_path}")
    with pytest.raises(Unusable, match="there is no database"):
        open_engine(f"sqlite:///{tmp_path}/none.db", migrate=False)


def test_a_file_that_is_not_a_database(tmp_path: Path) -> None:
    """The file is refused and not changed, and the lock is released."""
    path = tmp_path / "notes.txt"
    path.write_text("Remember the milk. " * 500)
    for _ in range(2):
        with pytest.raises(Unusable, match="cannot use"):
            open_engine(f"sqlite:///{path}")
    assert path.read_text().startswith("Remember the milk.")


def test_damage_is_noticed(tmp_path: Path) -> None:
    """An overwritten page is an error that says what to do, never a wrong answer."""
    path = tmp_path / "a.db"
    engine = open_engine(f"sqlite:///{path}")
    asyncio.run(run(engine, provider_new(0, VCPU=1)))
    asyncio.run(engine.close())
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreError, match=r"damaged|malformed"):
        engine = open_engine(f"sqlite:///{path}")
        try:
            asyncio.run(engine.read_aside(index_load()))
        except Fatal as error:
            assert "restore a backup" in str(error)
            raise
        finally:
            asyncio.run(engine.close())
