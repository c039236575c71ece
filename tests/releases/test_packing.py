"""`scripts/pack` gives the same bytes for the same files."""

import os
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("z.txt", "a/b.txt", "a/run.sh", ".helmignore")


def folder_of(at: Path, order: tuple[str, ...], mode: int) -> Path:
    """Make a folder with files, in an order of the file system and with a mode."""
    for name in order:
        path = at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}\n")
        path.chmod(mode | (0o100 if name.endswith(".sh") else 0))
        os.utime(path, (mode, mode))
    return at


def pack(folder: Path, file: Path, epoch: str = "1000000000") -> subprocess.CompletedProcess[str]:
    """Run the script."""
    return subprocess.run(
        [ROOT / "scripts/pack", folder, "chart", file],
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_same_bytes(tmp_path: Path) -> None:
    """Order, times, modes and hidden files have no effect; contents and the given time have."""
    one = folder_of(tmp_path / "one", NAMES, 0o644)
    two = folder_of(tmp_path / "two", NAMES[::-1], 0o600)
    (two / ".hidden").touch()
    for folder in (one, two):
        assert pack(folder, tmp_path / f"{folder.name}.tgz").returncode == 0
    packed = (tmp_path / "one.tgz").read_bytes()
    assert packed == (tmp_path / "two.tgz").read_bytes()
    with tarfile.open(tmp_path / "one.tgz") as archive:
        found = {entry.name: entry.mode for entry in archive}
    assert list(found) == [f"chart/{name}" for name in sorted(NAMES)]
    assert found["chart/a/run.sh"] == 0o755 and found["chart/z.txt"] == 0o644
    pack(one, tmp_path / "later.tgz", "1000000001")
    (one / "z.txt").write_text("other")
    pack(one, tmp_path / "other.tgz")
    for name in ("later", "other"):
        assert (tmp_path / f"{name}.tgz").read_bytes() != packed


def test_links_are_refused(tmp_path: Path) -> None:
    """They would lead elsewhere where the archive is extracted."""
    folder = folder_of(tmp_path / "one", NAMES, 0o644)
    (folder / "link").symlink_to("z.txt")
    done = pack(folder, tmp_path / "one.tgz")
    assert done.returncode == 1
    assert done.stderr == f"pack: {folder}/link is neither a file nor a folder\n"
