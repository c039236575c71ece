"""The scripts of the how-to about installations, as the page shows them."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from moorage.wire.admission import PoolWanted
from tests.client import single
from tests.client.single import ROOT
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, Harbour, eventually, line

BLOCK = re.compile(r"^```(bash|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

INSTALLER = """#!/bin/bash
echo "$1 $MOORAGE_LEASE_POOL" >> "$LOG"
[[ $1 == destroy ]] || (( $(grep -c create "$LOG") >= 2 ))
"""
"""An installer whose second attempt succeeds."""


@pytest.fixture
def job(port: Harbour, tmp_path: Path) -> dict[str, str]:
    """The environment of a job: the pool of the how-to, the single file, an installer, a folder."""
    port.admission.pool_put("install/azure", PoolWanted(limit=50, hold=1200.0, pacing=None))
    (tmp_path / "moorage.pyz").symlink_to(single.built())
    installer = tmp_path / "openshift-install"
    installer.write_text(INSTALLER)
    installer.chmod(0o755)
    folder = str(tmp_path)
    path = f"{folder}:{single.BARE['PATH']}"
    own = {"PATH": path, "LOG": f"{folder}/log", "dir": folder, "SHARED_DIR": folder}
    return {**single.BARE, **port.where(), **own}


def blocks(language: str = "bash") -> list[str]:
    """Return the scripts of the page in order: attempts, acquire, release, trap; of sh: trap."""
    page = (ROOT / "docs/howto/openshift-install.md").read_text()
    return [script for written, script in BLOCK.findall(page) if written == language]


def shell(script: str, job: dict[str, str]) -> tuple[int, str]:
    """Run a script in the job's folder; return its exit code and its output."""
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{script}"],
        env=job,
        cwd=job["dir"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


POINT = """
point() {{ echo "point $1"; [ "$1" != "$AT" ] || read -r line; }}
prepare_next_steps() {{ :; }}
handle=$SHARED_DIR/$NAME
set -eu
{script}
"""
SHELLS = {"bash": ("bash", 3), "sh": ("dash", 0)}
"""The interpreter of each language of the page, and which of its scripts sets traps."""


def points() -> list[tuple[str, str]]:
    """Return between which lines of which script a signal comes; after the acquire, also in it."""
    return [
        (language, at)
        for language, (_, number) in SHELLS.items()
        for at in (
            *map(str, range(len(blocks(language)[number].splitlines()) + 1)),
            "start",
            "wait",
        )
    ]


@pytest.mark.parametrize(("language", "at"), points())
def test_a_signal_at_any_point(port: Harbour, job: dict[str, str], language: str, at: str) -> None:
    """Only the shell gets TERM: it ends, and neither a lease nor a ticket nor a process is left."""
    pool, (shell_name, number) = port.pool(), SHELLS[language]
    lines = blocks(language)[number].replace("install/azure", pool).splitlines()
    marked = [f"point {place}\n{line}" for place, line in enumerate(lines)]
    script = POINT.format(script="\n".join([*marked, f"point {len(lines)}"]))
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        if at not in ("start", "wait"):
            holder.communicate("\n", SECONDS)
        with single.Started(
            [shell_name, "-c", script],
            env={**job, "AT": at, "NAME": "h"},
            cwd=job["dir"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as script_run:
            reach(port, script_run, pool, at)
            script_run.send_signal(signal.SIGTERM)
            assert script_run.wait(SECONDS) in (-signal.SIGTERM, 128 + signal.SIGTERM)
            eventually(lambda: None if single.session_of(script_run.pid) else True)
        if at in ("start", "wait"):
            holder.communicate("\n", SECONDS)
    assert port.leases(pool) == []


def test_the_old_order_leaks(port: Harbour, job: dict[str, str]) -> None:
    """The control: a signal between an acquire and a later trap leaves the lease behind."""
    pool = port.pool()
    first, trap, acquire = blocks()[3].replace("install/azure", pool).splitlines()
    script = POINT.format(script="\n".join([first, acquire, "point 0", trap]))
    with single.Started(
        ["bash", "-c", script],
        env={**job, "AT": "0", "NAME": "h"},
        cwd=job["dir"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as script_run:
        reach(port, script_run, pool, "0")
        script_run.send_signal(signal.SIGTERM)
        script_run.wait(SECONDS)
    assert len(port.leases(pool)) == 1


def reach(port: Harbour, script: subprocess.Popen[str], pool: str, at: str) -> None:
    """Return when a script has come to a point."""
    if at == "wait":
        port.waiting(pool)
    elif at == "start":
        eventually(lambda: True if any(map(acquires, single.session_of(script.pid))) else None)
    else:
        while line(script) != f"point {at}\n":
            pass


def acquires(process: int) -> bool:
    """Return whether a process is the acquire, of which at first nothing has run."""
    try:
        return b"acquire" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def test_the_attempts(port: Harbour, job: dict[str, str]) -> None:
    """A failed attempt is cleaned up and repeated, each with its own lease."""
    code, said = shell(blocks()[0], job)
    assert code == 0, said
    log = Path(job["LOG"]).read_text().splitlines()
    assert log == [f"{what} install/azure" for what in ("create", "destroy", "create")]
    ended = port.ended("install/azure")
    assert [lease.labels.get("attempt") for lease in ended] == ["1", None, "2"]
    assert {lease.labels["command"] for lease in ended} == {"openshift-install"}
    assert port.leases("install/azure") == []


def test_a_signal_ends_the_attempts(job: dict[str, str]) -> None:
    """A script that gets a signal makes no further attempt."""
    installer = Path(job["dir"]) / "openshift-install"
    installer.write_text('#!/bin/bash\necho "$1" >> "$LOG"\nkill -s TERM $$\n')
    assert shell(blocks()[0], job)[0] == 143
    assert Path(job["LOG"]).read_text() == "create\n"


def test_two_steps_and_a_trap(port: Harbour, job: dict[str, str]) -> None:
    """One step acquires, another releases; an earlier trap runs after the release."""
    _, acquire, release, trap = blocks()
    assert shell(acquire, job)[0] == 0
    assert len(port.leases("install/azure")) == 1
    assert shell(f"{release}\n{release}", job)[0] == 0
    assert port.leases("install/azure") == []
    steps = "prepare_next_steps() { echo next $?; }; handle=$SHARED_DIR/h"
    code, said = shell(f"{steps}\n{trap}\nexit 4", job)
    assert (code, said.splitlines()[-1]) == (4, "next 4"), said
    assert port.leases("install/azure") == []
