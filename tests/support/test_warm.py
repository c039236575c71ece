"""Forked processes are like those that an interpreter starts."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from moorage.client.run.process.starters import SeenProcess, is_alive
from tests.e2e.support.carried import eventually
from tests.e2e.support.server import MOORAGE, Server, serve
from tests.support import warm

SECONDS = 60.0


def files_of(server: Server) -> Counter[str]:
    """Count the descriptors of a server by their kind, or by the name of their file."""
    found = Path(f"/proc/{server.pid}/fd").iterdir()
    return Counter(Path(os.readlink(one).partition(":")[0]).name for one in found)


def signals_of(server: Server) -> list[str]:
    """Return which signals a server ignores and which it handles."""
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return [line for line in lines if line.startswith(("SigIgn", "SigCgt", "SigBlk"))]


def test_a_forked_server_is_like_another(tmp_path: Path) -> None:
    """It has no file of others, and the same handlers of signals; both lead a session."""
    folders = [tmp_path / "forked", tmp_path / "started"]
    for folder in folders:
        folder.mkdir()
    with (
        serve(folders[0] / "m.sqlite") as forked,
        serve(folders[1] / "m.sqlite", moorage=MOORAGE) as started,
    ):
        assert files_of(forked) == files_of(started)
        assert signals_of(forked) == signals_of(started)
        assert os.getsid(forked.pid) == forked.pid


def test_servers_in_turn_have_other_hashes(tmp_path: Path) -> None:
    """Servers of one database must not agree on the order of sets by accident."""
    with serve(tmp_path / "a") as one, serve(tmp_path / "b") as other:
        parents = [
            Path(f"/proc/{server.pid}/stat").read_text().split()[3] for server in (one, other)
        ]
    assert len({*parents}) == 2


def test_exit_codes_and_output(tmp_path: Path) -> None:
    """They are those of a process that Python starts; so is the folder."""
    for words in (["version"], ["serve", "--listen", "nowhere"], ["nothing"], ["backup", "x"]):
        forked = warm.run(words, SECONDS, tmp_path)
        started = subprocess.run(
            [*MOORAGE, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert forked.returncode == started.returncode
        assert (forked.stdout, forked.stderr) == (started.stdout, started.stderr)


def test_when_the_warm_process_is_gone(tmp_path: Path) -> None:
    """A server that it has forked is ended with its test all the same."""
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.e2e.support.server import serve\n"
        "server = serve(Path(sys.argv[1]) / 'm.sqlite')\n"
        "parent = int(Path(f'/proc/{server.pid}/stat').read_text().split()[3])\n"
        "os.kill(parent, signal.SIGKILL)\n"
        "print(server.pid, server.stop())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    pid, code = map(int, done.stdout.split())
    assert code == -signal.SIGKILL
    eventually(lambda: None if is_alive(SeenProcess(pid, None)) else True)


def test_what_cannot_be_started(tmp_path: Path) -> None:
    """The test says so at once."""
    with pytest.raises(AssertionError):
        warm.run(["version"], SECONDS, tmp_path / "missing")
    with pytest.raises(AssertionError):
        warm.run(["version"], SECONDS, environment={"LONG": "x" * warm.ORDER_BYTES_MAX})
