"""The commands of docs/howto/find-and-heal-orphans.md print what the guide shows."""

import re
import sys
from asyncio import create_subprocess_shell, subprocess
from pathlib import Path

from tests.integrations.nova.cloud import World, played
from tests.support.nova_double.database import FLAVOR
from tests.support.nova_double.operations import play, resources

GUIDE = Path(__file__).resolve().parents[3] / "docs/howto/find-and-heal-orphans.md"
RESHAPE = re.compile(r"reshape undo (?P<id>[0-9a-f-]{36})")


def steps() -> list[tuple[str, str]]:
    """Return the commands of the guide, each with its output."""
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    return [(command, output) for command, output in blocks]


async def typed(it: World, command: str, reshape: str) -> str:
    """Type a command; return what it prints, as the guide shows it."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(it.folder),
        "ID": reshape,
        "MOORAGE_URL": it.url,
        "MOORAGE_TOKEN": it.secret,
        "OS_CLIENT_CONFIG_FILE": str(it.folder / "clouds.yaml"),
    }
    process = await create_subprocess_shell(
        re.sub("^moorage", f"exec {sys.executable} -m moorage", command),
        cwd=it.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == (1 if "audit" in command else 0), errors.decode()
    return (output + errors).decode().replace("\t", "  ")


def test_the_guide(tmp_path: Path) -> None:
    """What is planted is found, shown, healed and restored, in the words of the guide."""

    async def scene(it: World) -> None:
        one, two, three = (it.host(f"host-{number}") for number in range(1, 4))
        it.server(one)
        orphan, moved = it.orphan(one), it.server(one)
        play(it.operations.evacuate(moved, two))
        odd = it.server(two)
        it.placement.write({odd: {two.uuid: {**resources(FLAVOR), "MEMORY_MB": 1024}}})
        it.database.remove_host(three.host)
        reshape = ""
        for command, output in steps():
            printed = await typed(it, command, reshape)
            if found := RESHAPE.search(printed):
                reshape = found["id"]
                printed = printed.replace(reshape, "ID")
            if output:
                assert printed == output, command
        assert it.ledger.consumer(orphan).allocations
        assert len(it.ledger.consumer(moved).allocations) == 2

    played(scene, tmp_path)
