"""Plants one bug after the other and checks that the simulator catches it.

Run it as `python -m tests.simulation.mutation.mutants`.

Each bug is a replacement of text in a copy of the tree. A bug whose text no longer exists is an
error: plant it again. Exit code 1: at least one was missed.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.simulation.mutation.adaptive_bugs import ADAPTIVE_BUGS
from tests.simulation.mutation.admission_bugs import ADMISSION_BUGS
from tests.simulation.mutation.booking_bugs import BOOKING_BUGS
from tests.simulation.mutation.bug import Bug
from tests.simulation.mutation.client_bugs import CLIENT_BUGS
from tests.simulation.mutation.fleet_bugs import FLEET_BUGS
from tests.simulation.mutation.gate_bugs import GATE_BUGS
from tests.simulation.mutation.metal3_bugs import METAL3_BUGS
from tests.simulation.mutation.provisioning_bugs import PROVISIONING_BUGS
from tests.simulation.mutation.reporter_bugs import REPORTER_BUGS
from tests.simulation.mutation.reshape_bugs import RESHAPE_BUGS
from tests.simulation.mutation.search_bugs import SEARCH_BUGS

BUGS = (
    *(*ADMISSION_BUGS, *FLEET_BUGS, *PROVISIONING_BUGS, *REPORTER_BUGS, *METAL3_BUGS),
    *(*GATE_BUGS, *CLIENT_BUGS, *SEARCH_BUGS, *RESHAPE_BUGS, *ADAPTIVE_BUGS, *BOOKING_BUGS),
)
ROOT = Path(__file__).resolve().parents[3]
SECONDS_MAX = 900
"""Longer than any bug takes to be caught; an endless loop counts as caught, too."""


def broken(bug: Bug) -> str:
    """Return the text of a file with this bug in it. Raises ValueError: it cannot be planted."""
    text = (ROOT / bug.path).read_text()
    if text.count(bug.text) != 1:
        raise ValueError(
            f"{bug.invariant} {bug.said}: its text stands {text.count(bug.text)} times"
        )
    return text.replace(bug.text, bug.wrong)


def planted(folder: Path, bug: Bug) -> Path:
    """Return a copy of the tree with this bug in it."""
    tree = folder / f"{BUGS.index(bug)}"
    for name in ("src", "tests", "contrib", "scripts"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    (tree / bug.path).write_text(broken(bug))
    return tree


def hunted(folder: Path, bug: Bug) -> tuple[Bug, str]:
    """Return how a bug was caught; empty: it was missed."""
    tree = planted(folder, bug)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.simulation.mutation.hunt", bug.hunter],
            cwd=tree,
            env={"PYTHONPATH": f"{tree / 'src'}:{tree}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return bug, f"it never came to an end within {SECONDS_MAX} s"
    finally:
        shutil.rmtree(tree)
    if done.returncode == 0:
        return bug, ""
    return bug, (done.stdout or done.stderr).strip().splitlines()[-1]


def results() -> Iterator[tuple[Bug, str]]:
    """Hunt all bugs, two at a time, in order."""
    with (
        tempfile.TemporaryDirectory(prefix="moorage-mutants-") as folder,
        ThreadPoolExecutor(2) as pool,
    ):
        yield from pool.map(lambda bug: hunted(Path(folder), bug), BUGS)


def main() -> int:
    """Print what was caught and what was missed."""
    missed = 0
    for bug, how in results():
        missed += not how
        word = "caught" if how else "MISSED"
        sys.stdout.write(f"{word}  {bug.invariant:4} {bug.said}: {how[:100]}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(BUGS) - missed} of {len(BUGS)} caught\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
