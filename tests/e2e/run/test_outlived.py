"""What waits for a lease, or renews it, ends with the shell that started it, however that ends."""

import os
import shlex
import signal
import subprocess
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.client import single
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, Harbour, eventually, gone, line

ACQUIRE = 'moorage lease acquire -p "$POOL"'
WAYS = {
    "plain": f"{ACQUIRE} --handle h1; echo went on",
    "set -e": f"set -e; {ACQUIRE} --handle h2; echo went on",
    "its output": f"h=$({ACQUIRE}); echo went on",
    "a subshell": f"( {ACQUIRE} --handle h4; echo went on ); echo went on",
    "another shell": f"sh -c '{ACQUIRE} --handle h5; echo went on'; echo went on",
    "output of another shell": f"h=$(sh -c '{ACQUIRE}; true'); echo went on",
    "the background": f"{ACQUIRE} --handle h7 & wait; echo went on",
    "a background list": f"( {ACQUIRE} --handle h8; echo went on ) & wait",
    "a pipe": f"{ACQUIRE} --handle h9 | cat; echo went on",
    "a function": f"f() {{ {ACQUIRE} --handle h10; }}; f; echo went on",
    "another group": f"h=$(timeout 600 {ACQUIRE}); echo went on",
}
"""Scripts that wait for a lease."""

PROXIED = {
    "bash": 'source ./client.sh; h=$(lease__acquire --type="$POOL" --scope=step); echo went on',
    "a function in bash": 'source ./client.sh; lease__acquire --type="$POOL" --scope=step; echo',
    "a shell in bash": (
        "source ./client.sh; bash -c 'h=$(lease__acquire --type=$POOL --scope=step); :'; :"
    ),
}
"""The same with the functions for lease proxies."""


class Dock:
    """The shells of one test, in a folder, with variables that lead to the server and its proxy."""

    def __init__(self, harbour: Harbour, folder: Path) -> None:
        self.harbour = harbour
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "bin/python3").symlink_to(single.PYTHON)
        command = folder / "bin/moorage"
        command.write_text(f'#!/bin/sh\nexec {shlex.join(single.command())} "$@"\n')
        command.chmod(0o755)
        (folder / "client.sh").write_text(single.finished("client.sh").stdout)
        self.variables = {
            **single.BARE,
            **harbour.where(),
            "PATH": f"{folder / 'bin'}:{single.BARE['PATH']}",
            "TMPDIR": str(folder),
            "LEASE_PROXY_SERVER_URL": harbour.server.boskos_url,
        }

    def moorage(self, *words: str) -> str:
        """Run a command that succeeds; return its errors."""
        return subprocess.run(
            single.command(*words),
            env=self.variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        ).stderr

    def started(self, shell: str, script: str, **more: str) -> single.Started:
        """Start a script in its own session."""
        return single.Started(
            [shell, "-c", script],
            env={**self.variables, **more},
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def dock(port: Harbour, tmp_path: Path) -> Dock:
    """Shells at the server."""
    return Dock(port, tmp_path)


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_wait_ends_with_its_shell(dock: Dock, shell: str, number: signal.Signals) -> None:
    """Only the shells get the signal: all tickets go, and the unit that becomes free stays free."""
    pool = dock.harbour.pool()
    scripts = {**WAYS, **(PROXIED if shell == "bash" else {})}
    holding = dock.harbour.started("run", "--pool", pool, "--", *WAITING)
    with ExitStack() as stack, holding as holder:
        line(holder)
        shells = [
            stack.enter_context(dock.started(shell, one, POOL=pool)) for one in scripts.values()
        ]
        dock.harbour.waiting(pool, len(scripts))
        sessions = [single.session_of(one.pid) for one in shells]
        for one in shells:
            one.send_signal(number)
        dock.harbour.waiting(pool, 0)
        holder.communicate("\n", SECONDS)
        for name, one, session in zip(scripts, shells, sessions, strict=True):
            assert one.wait(SECONDS) == -number, name
            eventually(partial(all_gone, session))
    assert dock.harbour.leases(pool) == []


def test_a_wait_without_a_shell(dock: Dock) -> None:
    """A control: with `--with 0` the wait goes on, and its lease is for those who have the file."""
    pool = dock.harbour.pool()
    with dock.harbour.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        script = f"{ACQUIRE} --handle h --with 0 >&2; :"
        with dock.started("bash", script, POOL=pool) as shell:
            dock.harbour.waiting(pool)
            shell.kill()
        holder.communicate("\n", SECONDS)
    (lease,) = eventually(lambda: [*dock.harbour.leases(pool)] or None)
    assert lease.state == "granted"


def test_a_retry_ends_with_its_shell(dock: Dock) -> None:
    """The ticket that was to replace the lease goes."""
    pool = dock.harbour.pool()
    dock.moorage("lease", "acquire", "-p", pool, "--handle", "h")
    dock.harbour.admission.release(dock.harbour.leases(pool)[0].id)
    with dock.harbour.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        with dock.started("bash", "moorage lease retry --handle h; echo went on") as shell:
            dock.harbour.waiting(pool)
            shell.kill()
            dock.harbour.waiting(pool, 0)
        holder.communicate("\n", SECONDS)
    assert dock.harbour.leases(pool) == []


@pytest.mark.parametrize(
    "command",
    [
        "moorage lease acquire -p $POOL --handle h",
        "moorage lease acquire -p $POOL",
        "moorage lease acquire --json -p $POOL",
    ],
)
def test_a_handle_that_nobody_reads(dock: Dock, command: str) -> None:
    """It cannot be printed, so the lease is given back; the exit code is its own."""
    pool = dock.harbour.pool()
    for output in ("> /dev/full", ">&-", "| true", "| exec 0<&-"):
        script = f"set -o pipefail; {command} {output}"
        with dock.started("bash", script, POOL=pool) as shell:
            assert shell.wait(SECONDS) == 10, output
        assert dock.harbour.leases(pool) == [], output
        assert not (dock.folder / "h").exists()
        assert [*dock.folder.glob("moorage-lease-*")] == []


def test_a_file_that_is_removed(dock: Dock) -> None:
    """Removing the file, with or without `lease release`, ends the wait."""
    pool, handle = dock.harbour.pool(), dock.folder / "h"
    with dock.harbour.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        with dock.started("bash", f"{ACQUIRE} --handle h", POOL=pool) as shell:
            dock.harbour.waiting(pool)
            handle.unlink()
            assert shell.wait(SECONDS) == 8
        assert len(dock.harbour.leases(pool)) == 1
        holder.communicate("\n", SECONDS)


LOOPS = {
    "a background job": "moorage lease renew --loop --handle $H & wait",
    "a subshell": "( moorage lease renew --loop --handle $H; : ) & wait",
    "another process": "moorage lease renew --loop --handle $H --with $$ & wait",
    "another shell": "sh -c 'moorage lease renew --loop --handle $H; :' & wait",
    "nobody": "moorage lease renew --loop --handle $H --with 0 & wait",
}
"""Scripts that renew the lease of a file; the last one is a control."""


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_loop_ends_with_its_shell(dock: Dock, shell: str) -> None:
    """It renews nothing after its script was killed; one that works for nobody goes on."""
    pool = dock.harbour.pool(limit=len(LOOPS))
    for name in map(str, range(len(LOOPS))):
        dock.moorage("lease", "acquire", "-p", pool, "--handle", name)
    before = {one.id: one.expires_at for one in dock.harbour.leases(pool)}

    def all_are_renewed() -> bool | None:
        leases = dock.harbour.leases(pool)
        return True if all(one.expires_at != before[one.id] for one in leases) else None

    with ExitStack() as stack:
        shells = [
            stack.enter_context(dock.started(shell, one, H=str(number)))
            for number, one in enumerate(LOOPS.values())
        ]
        eventually(all_are_renewed)
        members = [looping(one.pid) for one in shells]
        for one in shells:
            one.kill()
        eventually(partial(all_gone, members[:-1]))
        assert not gone(members[-1])
        os.kill(members[-1], signal.SIGTERM)


def all_gone(processes: list[int]) -> bool | None:
    """Return whether all of these have ended."""
    return True if all(map(gone, processes)) else None


def looping(session: int) -> int:
    """Return the process of a session that renews."""
    for member in single.session_of(session):
        words = Path(f"/proc/{member}/cmdline").read_bytes().split(b"\0")
        if b"-I" in words and b"renew" in words:
            return member
    raise AssertionError("nothing renews")


def test_a_loop_has_an_end(dock: Dock) -> None:
    """After `--for` it stops, and says so; the lease stays as it is."""
    pool = dock.harbour.pool()
    dock.moorage("lease", "acquire", "-p", pool, "--handle", "h")
    said = dock.moorage("lease", "renew", "--loop", "--for", "1s", "--handle", "h")
    assert "the time for renewals, 1s, is over (--for)" in said
    assert len(dock.harbour.leases(pool)) == 1
