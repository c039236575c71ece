"""A long audit ends in the middle: nothing is half, and the next one goes on from there."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.integrations.nova.cloud import CLOUD, World, played
from tests.support import warm

HOSTS = 6
CUT = 3
"""How many hosts are compared when the audit is interrupted."""

LISTS = "/servers/detail"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGHUP, -signal.SIGHUP),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_signal(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """The exit code is no finding's, and there is no plan; the same command finds all of it.

    It asks about no host that was compared before the signal.
    """

    async def scene(it: World) -> None:
        orphans = sorted(it.orphan(it.host(f"host-{host}")) for host in range(HOSTS))
        plan, state = tmp_path / "plan.json", tmp_path / "audit.state"
        words = ("audit", "nova", "--os-cloud", CLOUD, "--settle", "0", "--requests", "1")
        files = ("-o", str(plan), "--state", str(state))
        plan.write_text("the plan of yesterday")
        plan.chmod(0o600)

        def interrupt(_: str) -> None:
            if state.exists() and len(state.read_text().splitlines()) == 1 + CUT:
                process.send_signal(number)

        it.nova.before = interrupt
        process = await warm.fork_async([*words, *files], it.environment())
        output, errors = await process.communicate()
        assert (process.returncode, output) == (code, b"")
        interrupted = b"moorage: interrupted: the same command goes on from here\n"
        assert errors == (interrupted if number == signal.SIGINT else b"")
        assert plan.read_text() == "the plan of yesterday"
        compared = [json.loads(line) for line in state.read_text().splitlines()[1:]]
        assert CUT <= len(compared) < HOSTS

        it.nova.before = lambda _: None
        it.nova.requests.clear()
        found, _ = await it.audit("nova", *files)
        assert [each["consumer"] for each in found["findings"]] == orphans
        asked = {path.rpartition("=")[2] for path in it.nova.requests if path.startswith(LISTS)}
        assert asked == {f"host-{host}" for host in range(HOSTS)} - {
            one["host"] for one in compared
        }
        assert len(json.loads(plan.read_text())["heal"]) == HOSTS
        assert plan.stat().st_mode & 0o777 == 0o600
        there = {path.name for path in tmp_path.iterdir()}
        assert not {name for name in there if "state" in name or "partial" in name}

    played(scene, tmp_path)


def test_a_plan_that_cannot_be_written(tmp_path: Path) -> None:
    """What was compared is kept: another audit need not begin again."""

    async def scene(it: World) -> None:
        it.orphan(it.host("host-1"))
        state = tmp_path / "audit.state"
        words = ("audit", "nova", "--os-cloud", CLOUD, "--settle", "0", "--state", str(state))
        code, output, errors = await it.command(*words, "-o", str(tmp_path / "none" / "plan.json"))
        assert (code, output) == (1, "")
        assert "cannot write" in errors and "No such file or directory" in errors
        assert state.exists()

    played(scene, tmp_path)


def test_a_plan_for_a_pipe(tmp_path: Path) -> None:
    """What is no file is written, and not replaced; `-` is standard output."""

    async def scene(it: World) -> None:
        it.orphan(it.host("host-1"))
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        await it.audit("nova", "-o", str(pipe))
        assert len(json.loads(os.read(reader, 65_536))["heal"]) == 1
        os.close(reader)
        assert pipe.is_fifo()

    played(scene, tmp_path)
