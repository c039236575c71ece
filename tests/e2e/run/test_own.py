"""Waiting for oneself, in shells: refused, or named at once; what the limit allows goes on."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client import single
from tests.e2e.support.carried import SECONDS, Harbour

PYTHON = """
import sys
from moorage.client import Client
with Client().lease(sys.argv[1], int(sys.argv[2])):
    print("inner")
"""


def inner(way: str, pool: str, units: int, folder: Path) -> list[str]:
    """Return a command that asks for units of a pool."""
    needs = f"{pool}={units}"
    if way == "python":
        return [sys.executable, "-c", PYTHON, pool, str(units)]
    if way == "acquire":
        return single.command("lease", "acquire", "-p", needs, "--handle", str(folder / "h"))
    return single.command("run", "-p", needs, "--nested", "wait", "--", "echo", "inner")


@pytest.mark.parametrize("way", ["python", "acquire", "run"])
@pytest.mark.parametrize(("limit", "own", "units"), [(1, 1, 1), (3, 2, 2)])
def test_inside_of_a_run(
    port: Harbour, tmp_path: Path, way: str, limit: int, own: int, units: int
) -> None:
    """What its own lease makes impossible is refused, and leaves no ticket."""
    pool = port.pool(limit=limit)
    command = shlex.join(inner(way, pool, units, tmp_path))
    script = f"{command} 2>&1; echo $?"
    where = {**port.where(), "PYTHONPATH": str(single.ROOT / "src")}
    words = ("run", "-p", f"{pool}={own}", "--", "sh", "-c", script)
    done = single.finished(*words, **where)
    (outer, ticket) = port.ended(pool)
    said = f"your own lease {outer.id} holds {own} of {limit} units of {pool}"
    assert said in done.stdout, done.stdout
    assert done.stdout.splitlines()[-1] == {"python": "1", "acquire": "3", "run": "121"}[way]
    assert ticket.cause == "withdrawn"


@pytest.mark.parametrize("way", ["python", "acquire", "run"])
def test_what_the_limit_allows(port: Harbour, tmp_path: Path, way: str) -> None:
    """The control: with room for both, the inner one gets its lease."""
    pool = port.pool(limit=2)
    where = {**port.where(), "PYTHONPATH": str(single.ROOT / "src")}
    words = ("run", "-p", pool, "--", *inner(way, pool, 1, tmp_path))
    done = single.finished(*words, **where)
    assert (done.returncode, "your own" in done.stderr) == (0, False), done.stderr


def test_a_run_in_a_script_with_a_handle(port: Harbour, tmp_path: Path) -> None:
    """The script may release it elsewhere, so the run waits, but names the lease at once."""
    pool = port.pool()
    acquire = shlex.join(single.command("lease", "acquire", "-p", pool, "--handle", "h"))
    run = shlex.join(single.command("run", "-p", pool, "--wait", "2s", "--", "true"))
    done = subprocess.run(
        ["bash", "-c", f"{acquire}; {run}; echo $?"],
        env={**single.BARE, **port.where()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    (held,) = port.leases(pool)
    assert f"your own lease {held.id} holds 1 of 1 units of {pool} (process" in done.stderr
    assert done.stdout.splitlines()[-1] == "124"
