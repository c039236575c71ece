"""The file of the catalog is used only as a whole and unchanged; writing it harms nothing."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.store import catalog_file
from moorage.store.catalog_file import Doubtful, Origin

ORIGIN = Origin.of(Instant(1), 2, 3, Instant(4), 5)
PARTS = [b"first", bytes(range(256)), b"x" * 1000]

FOREVER = """
import itertools, sys
from moorage.core.clock import Instant
from moorage.store import catalog_file
origin = catalog_file.Origin.of(Instant(1), 2, 3, Instant(4), 5)
parts = itertools.repeat(b"y" * 100_000)
written = itertools.count()
catalog_file.write(
    sys.argv[1], origin, parts, lambda: next(written) == 20 and print("begun", flush=True)
)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a written file."""
    path = tmp_path / "x.catalog"
    catalog_file.write(str(path), ORIGIN, PARTS)
    return path


def content(path: Path) -> list[bytes]:
    """Return the parts of a file."""
    parts: list[bytes] = []
    origins: list[Origin] = []
    catalog_file.read(str(path), origins.append, parts.append)
    assert origins == [ORIGIN]
    return parts


def test_what_was_written_is_read(path: Path) -> None:
    """The parts are read in order; only the owner may read or write the file."""
    assert content(path) == PARTS
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_every_flipped_bit_is_noticed(path: Path) -> None:
    """Whichever bit is wrong, the file is not used."""
    sound = path.read_bytes()
    for at in range(len(sound)):
        damaged = bytearray(sound)
        damaged[at] ^= 1 << Random(at).randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(Doubtful):
            content(path)
    path.write_bytes(sound)
    assert content(path) == PARTS


def test_every_truncation_and_addition_is_noticed(path: Path) -> None:
    """A file that ends early, or goes on, is not used."""
    sound = path.read_bytes()
    for damaged in (*(sound[:end] for end in range(len(sound))), sound + b"\0", sound * 2):
        path.write_bytes(damaged)
        with pytest.raises(Doubtful):
            content(path)


def test_parts_of_two_files_are_not_mixed(path: Path) -> None:
    """Each checksum covers everything before it, so that parts cannot be exchanged."""
    mine = path.read_bytes()
    catalog_file.write(str(path), replace(ORIGIN, revision=9), PARTS)
    other = path.read_bytes()
    assert len(mine) == len(other)
    end = mine.index(PARTS[0])
    path.write_bytes(other[:end] + mine[end:])
    with pytest.raises(Doubtful):
        catalog_file.read(str(path), lambda origin: None, lambda part: None)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_have_written_is_not_used(path: Path, mode: int) -> None:
    """Others must not decide what searches find."""
    path.chmod(mode)
    with pytest.raises(Doubtful, match="others"):
        content(path)


def test_only_a_regular_file_is_read(path: Path) -> None:
    """A link is not followed, and reading a named pipe does not block."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    with pytest.raises(OSError):
        content(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Doubtful, match="regular"):
        content(path)


def test_the_reader_may_refuse_the_origin(path: Path) -> None:
    """Then no part is read."""

    def refuse(origin: Origin) -> None:
        raise Doubtful("not mine")

    parts: list[bytes] = []
    with pytest.raises(Doubtful, match="not mine"):
        catalog_file.read(str(path), refuse, parts.append)
    assert parts == []


def test_another_build_is_foreign() -> None:
    """Another release or another layout is not read."""
    assert ORIGIN.foreign() is None
    assert replace(ORIGIN, release="0.0.1").foreign() is not None
    assert replace(ORIGIN, layout="?").foreign() is not None


def test_a_failed_write_leaves_the_old_file(path: Path) -> None:
    """A limit on the size of files acts as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(OSError):
            catalog_file.write(str(path), ORIGIN, [b"z" * 10_000] * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert content(path) == PARTS
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_the_last_space_is_left_to_the_database(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written if too little would remain free."""
    monkeypatch.setattr(catalog_file, "FREE_BYTES", 1 << 62)
    with pytest.raises(OSError, match="free"):
        catalog_file.write(str(path), ORIGIN, [])
    assert content(path) == PARTS


def test_a_killed_writer_leaves_the_old_file(path: Path) -> None:
    """What it has begun is not used, and the next write replaces it."""
    with subprocess.Popen(
        [sys.executable, "-c", FOREVER, str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
        writer.send_signal(signal.SIGKILL)
    assert (path.parent / "x.catalog.partial").stat().st_size > 0
    assert content(path) == PARTS
    catalog_file.write(str(path), ORIGIN, PARTS[:1])
    assert content(path) == PARTS[:1]
    assert [one.name for one in path.parent.iterdir()] == [path.name]
