"""The commands of docs/howto/nova-ironic.md do what the guide says."""

import asyncio
import os
import re
import sys
from pathlib import Path

from tests.integrations.ironic.report.world import World, world

GUIDE = Path(__file__).resolve().parents[4] / "docs/howto/nova-ironic.md"
NODES = 50
"""As many as `make ironic` has."""

SECONDS = 60.0


def commands() -> list[str]:
    """Return the commands of the guide, in order, without their output."""
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def expected() -> str:
    """Return the line that the guide shows of the running reporter."""
    return next(line for line in GUIDE.read_text().splitlines() if line.startswith("moorage: "))


async def run(it: World, folder: Path, command: str) -> str:
    """Run a command of the guide as an administrator; return its output.

    One that goes on gets SIGTERM after its first line.
    """
    program = f"{sys.executable} -m moorage"
    shown = command.replace("http://127.0.0.1:6385", it.double.url)
    process = await asyncio.create_subprocess_shell(
        "exec " + re.sub("^moorage", program, shown),
        cwd=folder,
        env={
            **os.environ,
            "MOORAGE_URL": it.server.url,
            "MOORAGE_TOKEN": it.secret,
            "NODE": it.node(1).uuid,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        first = await process.stdout.readline()
        if first.startswith(b"moorage: reporting"):
            process.terminate()
        rest, errors = await process.communicate()
    assert process.returncode == 0, (command, errors.decode())
    return (first + rest).decode()


def test_the_guide(tmp_path: Path) -> None:
    """A dry run foretells that all nodes are created; then they are reported, and so on."""

    async def play() -> None:
        async with world(tmp_path, NODES) as it:
            said = [await run(it, tmp_path, command) for command in commands()]
            _, foretold, once, running, members, pin, pins, unpin, status, deleted = said
            assert foretold.count("\tcreated") == NODES
            assert once == f"{NODES} nodes sent: {NODES} created\n"
            assert running.splitlines() == [expected()]
            assert "member" in members
            assert pin.startswith("1 node pinned to reporter-1, which is not live: ")
            assert it.node(1).uuid in pins
            assert unpin == "1 node no longer pinned\n"
            assert "nobody reports" in status
            assert deleted == "deleted ironic\n"
            assert it.reporting.group("conductors").observed == ["moorage"]

    asyncio.run(play())
