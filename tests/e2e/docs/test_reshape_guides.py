"""The commands of the how-tos about reshape plans, typed against a real server."""

import re
from pathlib import Path

import pytest

from tests.e2e.support.server import serve
from tests.e2e.support.typed import ROOT, Step, play, steps_of
from tests.support.fake_kernel import FakeKernel

BLOCK = re.compile(r"```(console|yaml)\n(.*?)```", re.DOTALL)
EVIDENCE = "cards.yaml"
"""The file that the YAML of a guide is written to."""

DONE = re.compile(r"^reshape ([A-Z]+) is done", re.MULTILINE)
ID = re.compile(r"(?<=reshape )(undo )?([A-Z]+|[0-9a-f]{8}-[0-9a-f-]{27})(?= is done|\n|$)")
DIGEST = re.compile(r"(?<=digest )([0-9a-f]{64}|DIGEST)")
AGE = re.compile(r"(?<=\s)(\d+s|[\d-]{10}T[\d:+]+)(?=\s)")
GAP = re.compile(r"\s*\t\s*|\s{2,}")
REFUSED = "cannot be carried out"
LATEST = "moorage reshape list --limit 1 | tail -n 1 | cut -f 1"


def steps(page: Path, folder: Path) -> list[Step]:
    """Return what a reader types: the commands, and the files with a text editor."""
    found: list[Step] = []
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "yaml":
            found.append(Step(f"cat > {EVIDENCE} <<'END'\n{text}END"))
            continue
        block = folder / "block.md"
        block.write_text(f"```console\n{text}```\n")
        for step in steps_of(block):
            found.append(step)
            # The reader copies the id of a reshape from the terminal.
            found += [Step(f"{name}=$({LATEST})") for name in DONE.findall("\n".join(step.shown))]
    return found


def machine(folder: Path) -> Path:
    """Return a folder with a `moorage` whose agents run on a machine in a folder, with pages."""
    FakeKernel.made(folder / "machine")
    made = folder / "bin"
    made.mkdir()
    places = {"--sysfs": "machine/sys", "--procfs": "machine/proc", "--lock-file": "agent.lock"}
    given = " ".join(f"{name} {folder / path}" for name, path in places.items())
    (made / "moorage").write_text(
        f'#!/bin/sh\n[ "$1 $2" != "agent run" ] || set -- "$@" {given}\n'
        f'exec {ROOT}/.venv/bin/moorage "$@"\n'
    )
    (made / "moorage").chmod(0o755)
    return made


def lines(text: str) -> list[list[str]]:
    """Return the cells of each line without what differs each time; errors come at any place."""
    plain = AGE.sub("AGE", DIGEST.sub("DIGEST", ID.sub("ID", text)))
    return sorted(GAP.split(line.strip()) for line in plain.splitlines())


@pytest.mark.parametrize("name", ["split-an-inventory", "rename-or-replace-a-host"])
def test_each_command_says_what_the_page_shows(name: str, tmp_path: Path) -> None:
    """In the order of the page, in one shell."""
    typed = steps(ROOT / f"docs/howto/{name}.md", tmp_path)
    assert len(typed) > 10
    database = tmp_path / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        token = Path(f"{database}.token").read_text().strip()
        environment = {
            "PATH": f"{machine(tmp_path)}:{ROOT}/.venv/bin:{ROOT}/.venv-client/bin:/usr/bin:/bin",
            "MOORAGE_URL": server.url,
            "MOORAGE_TOKEN": token,
            "OS_AUTH_TYPE": "admin_token",
            "OS_ENDPOINT": server.url,
            "OS_TOKEN": token,
            "OS_PLACEMENT_API_VERSION": "1.39",
        }
        results = play(typed, tmp_path, environment)
    assert len(results) == len(typed)
    for step, (said, code) in zip(typed, results, strict=True):
        assert (code != 0) == (REFUSED in said and "|" not in step.command), (step.command, said)
        assert lines(said) == lines("\n".join(step.shown)), (step.command, said)
