"""The scripts of the how-to about installations, as the page shows them."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.wire.admission import PoolWanted
from tests.client import single
from tests.client.single import ROOT
from tests.e2e.support.carried import SECONDS, Harbour, harbour

BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)

INSTALLER = """#!/bin/bash
echo "$1 $MOORAGE_LEASE_POOL" >> "$LOG"
[[ $1 == destroy ]] || (( $(grep -c create "$LOG") >= 2 ))
"""
"""An installer whose second attempt succeeds."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """A server with the pool of the how-to."""
    with harbour(tmp_path_factory.mktemp("howto")) as found:
        wanted = PoolWanted(limit=50, hold=1200.0, pacing=None)
        found.admission.pool_put("install/azure", wanted)
        yield found


@pytest.fixture
def job(port: Harbour, tmp_path: Path) -> dict[str, str]:
    """The environment of a job: the single file, an installer, a shared folder."""
    (tmp_path / "moorage.pyz").symlink_to(single.built())
    installer = tmp_path / "openshift-install"
    installer.write_text(INSTALLER)
    installer.chmod(0o755)
    folder = str(tmp_path)
    path = f"{folder}:{single.BARE['PATH']}"
    own = {"PATH": path, "LOG": f"{folder}/log", "dir": folder, "SHARED_DIR": folder}
    return {**single.BARE, **port.where(), **own}


def blocks() -> list[str]:
    """Return the scripts of the page in order: attempts, acquire, release, trap."""
    return BLOCK.findall((ROOT / "docs/howto/openshift-install.md").read_text())


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
