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


ATTEMPTS, ANY_OF = "for attempt in", "--any-of"
ACQUIRE, RELEASE = "handle=$SHARED_DIR/moorage-install\n", 'lease release --handle "$SHARED_DIR'
TRAPS = {"bash": "moorage.pyz trap", "sh": "trap release EXIT"}
"""A part of each script of the page, which no other has."""


def block(part: str) -> str:
    """Return the script of the page with this part."""
    page = (ROOT / "docs/howto/openshift-install.md").read_text()
    (found,) = (script for _, script in BLOCK.findall(page) if part in script)
    return str(found)


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
SHELLS = {"bash": "bash", "sh": "dash"}
"""The interpreter of each language of the page."""


def points() -> list[tuple[str, str]]:
    """Return between which lines of which script a signal comes; after the acquire, also in it."""
    return [
        (language, at)
        for language in SHELLS
        for at in (
            *map(str, range(len(block(TRAPS[language]).splitlines()) + 1)),
            "start",
            "wait",
        )
    ]


@pytest.mark.parametrize(("language", "at"), points())
def test_a_signal_at_any_point(port: Harbour, job: dict[str, str], language: str, at: str) -> None:
    """Only the shell gets TERM: it ends, and neither a lease nor a ticket nor a process is left."""
    pool, shell_name = port.pool(), SHELLS[language]
    lines = block(TRAPS[language]).replace("install/azure", pool).splitlines()
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
    first, trap, acquire = block(TRAPS["bash"]).replace("install/azure", pool).splitlines()
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
    code, said = shell(block(ATTEMPTS), job)
    assert code == 0, said
    log = Path(job["LOG"]).read_text().splitlines()
    assert log == [f"{what} install/azure" for what in ("create", "destroy", "create")]
    ended = port.ended("install/azure")
    assert [lease.labels.get("attempt") for lease in ended] == ["1", None, "2"]
    assert {lease.labels["command"] for lease in ended} == {"openshift-install"}
    assert port.leases("install/azure") == []


def test_any_of_two_accounts(port: Harbour, job: dict[str, str]) -> None:
    """The job gets the account that is free, and learns which one that is."""
    busy, free = port.pool(), port.pool()
    script = block(ANY_OF).replace("install/azure-1", busy).replace("install/azure-2", free)
    with port.started("run", "--pool", busy, "--", *WAITING) as holder:
        line(holder)
        code, said = shell(f"echo create >> $LOG; {script}", job)
        assert code == 0, said
        holder.communicate("\n", SECONDS)
    assert Path(job["LOG"]).read_text().splitlines()[-1] == f"create {free}"
    assert len(port.ended(free)) == 1


def test_a_signal_ends_the_attempts(job: dict[str, str]) -> None:
    """A script that gets a signal makes no further attempt."""
    installer = Path(job["dir"]) / "openshift-install"
    installer.write_text('#!/bin/bash\necho "$1" >> "$LOG"\nkill -s TERM $$\n')
    assert shell(block(ATTEMPTS), job)[0] == 143
    assert Path(job["LOG"]).read_text() == "create\n"


def test_two_steps_and_a_trap(port: Harbour, job: dict[str, str]) -> None:
    """One step acquires, another releases; an earlier trap runs after the release."""
    acquire, release, trap = block(ACQUIRE), block(RELEASE), block(TRAPS["bash"])
    assert shell(acquire, job)[0] == 0
    assert len(port.leases("install/azure")) == 1
    assert shell(f"{release}\n{release}", job)[0] == 0
    assert port.leases("install/azure") == []
    steps = "prepare_next_steps() { echo next $?; }; handle=$SHARED_DIR/h"
    code, said = shell(f"{steps}\n{trap}\nexit 4", job)
    assert (code, said.splitlines()[-1]) == (4, "next 4"), said
    assert port.leases("install/azure") == []
