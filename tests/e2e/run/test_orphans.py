"""Processes that a command has started end with it when the lease is lost, wherever they are."""

from pathlib import Path

import pytest

from tests.client import single
from tests.e2e.support.carried import SECONDS, Harbour, eventually, gone, line

HEEDLESS = f"""
    heedless=("{single.PYTHON}" -c '
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
while True: signal.pause()
')
    "${{heedless[@]}}" &
    timeout 1000 "${{heedless[@]}}" &
    setsid -f "${{heedless[@]}}"
    wait
"""
"""Dies of SIGTERM, unlike its children: one in its process group, one in another, an orphan."""


@pytest.mark.parametrize("on_lost", ["term", "kill"])
def test_nothing_of_the_command_works_on(port: Harbour, on_lost: str) -> None:
    """The command has ended, its children ignore SIGTERM: they are killed."""
    pool = port.pool(ttl=1.5)
    words = ("run", "--pool", pool, "--on-lost", on_lost, "--kill-after", "500ms", "--")
    with port.started(*words, "bash", "-c", HEEDLESS) as process:
        heedless = [int(line(process)) for _ in range(3)]
        port.admission.revoke(port.leases(pool)[0].id)
        assert process.wait(SECONDS) == 120
        assert all(gone(one) for one in heedless)


def test_orphans_are_reaped(port: Harbour) -> None:
    """Processes that the command leaves behind become our children and are reaped."""
    pool = port.pool()
    script = "for n in 1 2 3 4 5 6 7 8 9; do (true & true &); done; echo up; read line"
    with port.started("run", "--pool", pool, "--", "bash", "-c", script) as process:
        line(process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        eventually(lambda: True if len(children.read_text().split()) == 1 else None)
        process.communicate("\n", SECONDS)
        assert process.returncode == 0


def test_what_ends_in_time_is_not_waited_for(port: Harbour) -> None:
    """All processes have ended by SIGTERM: there is no wait for --kill-after."""
    pool = port.pool(ttl=1.5)
    words = ("run", "--pool", pool, "--on-lost", "term", "--kill-after", "1h", "--")
    with port.started(*words, "bash", "-c", "sleep 1000 & echo up; wait") as process:
        line(process)
        port.admission.revoke(port.leases(pool)[0].id)
        assert process.wait(SECONDS) == 120
