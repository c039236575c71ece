"""Each theme of CI has a budget; one that exceeds it is stopped and fails, and the others run."""

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copy

from moorage.client.run.process.starters import SeenProcess, is_alive
from tests.e2e.support.carried import eventually

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED = "import signal; print(signal.getsignal(signal.SIGINT).__name__)"
MAKEFILE = f"""\
good:
\t@echo from the good one; {sys.executable} -c '{INTERRUPTED}'
late:
\t@echo before; sleep 60 & echo $$! > child; sleep 60
other:
\t@echo from the other; sleep 60 & echo $$! > other; sleep 60
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
    run = re.findall(r"\bthemes ([a-z0-9 ]+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    e2e = re.findall(r"^E2E(?:_BESIDE)? := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    themes = [*" ".join(dict.fromkeys(run)).split(), *" ".join(e2e).split()]
    themes.remove("e2e")
    assert sorted(themes) == sorted(budgets())


def project(folder: Path, late: int = 60) -> None:
    """Make a project with a few themes; `late` is the budget of the one that never ends."""
    for name in ("scripts", ".ci"):
        (folder / name).mkdir(exist_ok=True)
    copy(ROOT / "scripts/themes", folder / "scripts/themes")
    (folder / ".ci/budgets").write_text(f"# seconds\nlate {late}\ngood 60\n")
    (folder / "Makefile").write_text(MAKEFILE)


def child(file: Path) -> SeenProcess:
    """Return the process that a theme has started in the background."""
    return eventually(lambda: SeenProcess(int(text), None) if (text := _read(file)) else None)


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def themes(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/themes in such a project, without the end of the CI that runs this test."""
    project(folder, late=1)
    inherited = {name: value for name, value in os.environ.items() if name != "THEMES_UNTIL"}
    return subprocess.run(
        ["scripts/themes", *words],
        cwd=folder,
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def endings(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return how each theme has ended, in the order of their lines, without times."""
    said = [line for line in done.stdout.splitlines() if line.startswith("theme: ")]
    return [re.sub(r" after .*", "", line) for line in said]


def test_a_late_theme_fails(tmp_path: Path) -> None:
    """Also one that would never end; what runs after it still runs, and can be interrupted."""
    done = themes(tmp_path, "late", "bad", "good")
    assert done.returncode == 1
    assert endings(done) == [
        "theme: late was stopped, over its budget,",
        "theme: bad failed",
        "theme: good passed",
    ]
    said = done.stdout.splitlines()
    assert {"before", "from the good one", "default_int_handler"} <= set(said)
    assert not is_alive(child(tmp_path / "child")), "what it left behind"
    done = themes(tmp_path, "good", THEMES_UNTIL="1")
    assert done.returncode == 1
    assert "good did not run: there was no time left" in done.stdout
    assert themes(tmp_path, "good").returncode == 0, "the control"


def test_a_theme_beside_the_others(tmp_path: Path) -> None:
    """It has its budget, its failure counts, and its output is in one piece, at the end."""
    done = themes(tmp_path, "--beside", "late", "good", "bad")
    assert done.returncode == 1
    assert endings(done) == [
        "theme: good passed",
        "theme: bad failed",
        "theme: late was stopped, over its budget,",
    ]
    assert themes(tmp_path, "--beside", "late", "good").returncode == 1
    done = themes(tmp_path, "--beside", "good good", "good")
    assert (done.returncode, done.stdout.count("default_int_handler")) == (0, 3)


def test_who_ends_it_ends_both(tmp_path: Path) -> None:
    """A signal ends the theme that runs, and the one beside it, whose output is not lost."""
    project(tmp_path)
    words = ["scripts/themes", "--beside", "other", "late"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        children = [child(tmp_path / name) for name in ("child", "other")]
        running.terminate()
        assert "from the other" in running.communicate(timeout=60)[0]
        assert running.returncode == 130
    eventually(lambda: None if any(map(is_alive, children)) else True)
