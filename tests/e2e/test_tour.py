"""The tour of README.md, run word for word with the stock client against a real server."""

import os
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.server import Server

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "127.0.0.1:8778"
FOLDER = "/home/alice/moorage"
PROMPT = "$ "
REFUSED = "(HTTP 4"
MARK = "-- exit code of the command above: "
TOUR_SECONDS = 600
NEEDED = (
    "resource class create",
    "trait create",
    "resource provider create",
    "resource provider inventory set",
    "resource provider trait set",
    "allocation candidate list",
    "resource provider allocation set",
    "resource provider usage show",
    "resource provider allocation delete",
)


@dataclass
class Step:
    """One command of the tour and the lines that the README shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


def tour(readme: str) -> list[Step]:
    """Take the commands and their output out of the tour's console blocks."""
    section = readme.split("## A five-minute tour\n", 1)[1].split("\n## ", 1)[0]
    steps: list[Step] = []
    for block in section.split("```console\n")[1:]:
        for line in block.split("```", 1)[0].splitlines():
            if line.startswith(PROMPT):
                steps.append(Step(line.removeprefix(PROMPT)))
            elif steps[-1].command.endswith("\\") and not steps[-1].shown:
                steps[-1].command += "\n" + line
            else:
                steps[-1].shown.append(line)
    return steps


def clone(folder: Path) -> None:
    """Make the folder look like the project's, so that files of the tour end up in it."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("moorage."):
            (folder / entry.name).symlink_to(entry)


def surroundings() -> dict[str, str]:
    """Return an environment without settings of ours, the client's or make's, but a free port."""
    ours = ("MOORAGE_", "OS_", "MAKE", "MFLAGS", "COLUMNS", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {**clean, "MOORAGE_LISTEN": f"127.0.0.1:{port}"}


def localised(lines: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    """Put this run's address and folder where the README shows its own."""
    here = environment["MOORAGE_LISTEN"]
    return [line.replace(ADDRESS, here).replace(FOLDER, str(folder)) for line in lines]


def play(steps: list[Step], folder: Path, environment: dict[str, str]) -> list[tuple[str, int]]:
    """Run the commands in one shell; return what each wrote and its exit code."""
    script = folder / "tour.sh"
    script.write_text("".join(f"{step.command}\necho '{MARK}'$?\n" for step in steps))
    run = subprocess.run(
        ["bash", str(script)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TOUR_SECONDS,
        check=True,
    )
    results: list[tuple[str, int]] = []
    said: list[str] = []
    for line in run.stdout.splitlines():
        if line.startswith(MARK):
            results.append(("\n".join(said), int(line.removeprefix(MARK))))
            said = []
        else:
            said.append(line)
    return results


def test_the_tour_word_for_word(tmp_path: Path) -> None:
    """Every command of the tour says exactly what the README shows, and ends as it should."""
    start, *steps = tour((ROOT / "README.md").read_text())
    assert start.command == "make run"
    clone(tmp_path)
    environment = surroundings()
    with Server(["bash", "-c", start.command], environment, tmp_path) as server:
        assert localised(start.shown, tmp_path, environment) == [
            line.rstrip() for line in server.said if line.startswith("moorage: ")
        ]
        results = play(steps, tmp_path, environment)
    for step, (said, code) in zip(steps, results, strict=True):
        if step.shown:
            assert said == "\n".join(step.shown), step.command
        assert (code != 0) == (REFUSED in said), f"{step.command}: exit code {code}\n{said}"


@pytest.mark.parametrize("words", NEEDED)
def test_the_tour_is_complete(words: str) -> None:
    """The tour leads past every station of a claim's life."""
    commands = [step.command for step in tour((ROOT / "README.md").read_text())]
    assert any(command.startswith(f"openstack {words} ") for command in commands)
