"""Each theme of CI has a budget; one that exceeds it is stopped and fails, and the others run."""

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copy

from moorage.client.run.process.starters import SeenProcess, is_alive

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED = "import signal; print(signal.getsignal(signal.SIGINT).__name__)"
MAKEFILE = f"""\
good:
\t@echo from the good one; {sys.executable} -c '{INTERRUPTED}'
late:
\t@echo before; sleep 60 & echo $$! > child; sleep 60
bad:
\t@false
"""


def budgets() -> dict[str, int]:
    """Return the seconds of each theme."""
    lines = (ROOT / ".ci/budgets").read_text().splitlines()
    pairs = [line.split() for line in lines if not line.startswith("#")]
    return {name: int(seconds) for name, seconds in pairs}


def test_every_theme_has_a_budget() -> None:
    """All that CI runs, and nothing else."""
    (run,) = re.findall(r"^scripts/themes (.*?) \|", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    (e2e,) = re.findall(r"^E2E := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    themes = [*run.split(), *e2e.split()]
    themes.remove("e2e")
    assert sorted(themes) == sorted(budgets())


def test_a_late_theme_fails(tmp_path: Path) -> None:
    """Also one that would never end; what runs after it still runs, and can be interrupted."""
    for folder in ("scripts", ".ci"):
        (tmp_path / folder).mkdir()
    copy(ROOT / "scripts/themes", tmp_path / "scripts/themes")
    (tmp_path / ".ci/budgets").write_text("# seconds\nlate 1\ngood 60\n")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    done = subprocess.run(
        ["scripts/themes", "late", "bad", "good"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("theme: ")]
    assert done.returncode == 1
    assert [re.sub(r" after .*", "", line) for line in said] == [
        "theme: late was stopped, over its budget,",
        "theme: bad failed",
        "theme: good passed",
    ]
    said = done.stdout.splitlines()
    assert {"before", "from the good one", "default_int_handler"} <= set(said)
    left = SeenProcess(int((tmp_path / "child").read_text()), None)
    assert not is_alive(left), "what it left behind"
    late = {**os.environ, "THEMES_UNTIL": "1"}
    done = subprocess.run(
        ["scripts/themes", "good"],
        cwd=tmp_path,
        env=late,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "good did not run: there was no time left" in done.stdout
    passed = subprocess.run(["scripts/themes", "good"], cwd=tmp_path, check=False)
    assert passed.returncode == 0, "the control"
