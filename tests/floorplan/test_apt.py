"""What CI installs from Debian waits its turn: apt-get gives up if another one has its locks."""

import os
import subprocess
from pathlib import Path
from shutil import which

import pytest

from tests.e2e.support.carried import eventually

ROOT = Path(__file__).resolve().parents[2]
WAITS = 'flock "$lock"\n'
# Like the real one, it gives up without a lock. It works until somebody writes into `end`.
APT_GET = """\
#!/bin/sh
mkdir lock 2>/dev/null || { echo "Unable to acquire the lock"; exit 100; }
echo "$@" >>done
read line <end
rmdir lock
"""

pytestmark = pytest.mark.skipif(
    which("flock") is None or not Path("/proc/locks").exists(), reason="needs Linux and flock"
)


def start(folder: Path, text: str) -> "subprocess.Popen[str]":
    """Run a script of this text, with an apt-get that works in `folder`."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, content in (("apt", text), ("bin/apt-get", APT_GET), ("bin/dpkg-deb", "#!/bin/sh\n")):
        if not (folder / name).exists():
            (folder / name).write_text(content)
            (folder / name).chmod(0o755)
    if not (folder / "end").exists():
        os.mkfifo(folder / "end")
    return subprocess.Popen(
        ["./apt", "download", "it"],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def waits(script: Path) -> bool | None:
    """Tell that a process waits for the lock on this file."""
    lines = Path("/proc/locks").read_text().splitlines()
    inode = f":{script.stat().st_ino} "
    return any("->" in line and inode in line for line in lines) or None


def test_one_after_another(tmp_path: Path) -> None:
    """The second waits until the first has ended, and then works."""
    text = (ROOT / "scripts/apt").read_text()
    with start(tmp_path, text) as first:
        eventually(lambda: (tmp_path / "done").exists() or None)
        with start(tmp_path, text) as second:
            eventually(lambda: waits(tmp_path / "apt"))
            for running in (first, second):
                (tmp_path / "end").write_text("\n")
                assert running.wait(timeout=60) == 0
    assert len((tmp_path / "done").read_text().splitlines()) == 2


def test_the_control(tmp_path: Path) -> None:
    """Without waiting, the second gives up."""
    text = (ROOT / "scripts/apt").read_text()
    assert WAITS in text
    text = text.replace(WAITS, "")
    with start(tmp_path, text) as first:
        eventually(lambda: (tmp_path / "done").exists() or None)
        with start(tmp_path, text) as second:
            assert "Unable to acquire" in second.communicate(timeout=60)[0]
            assert second.returncode != 0
        (tmp_path / "end").write_text("\n")
        assert first.wait(timeout=60) == 0
