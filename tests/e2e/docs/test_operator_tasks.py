"""The commands of docs/howto/operator-tasks.md, typed against a real server."""

import re
from pathlib import Path

import pytest

from tests.e2e.support.server import serve
from tests.e2e.support.typed import ROOT, Step, play, steps_of

pytestmark = pytest.mark.thorough

PAGE = ROOT / "docs/howto/operator-tasks.md"
RESHAPE = re.compile(r"reshape undo [0-9a-f-]{36}")
AGE = re.compile(r"(?<= )\d+s(?= )")
WIDTH = 160
"""Of the terminal: enough for every column that has values."""

GAP = re.compile(r"\t|\s{2,}")
REFUSED = "is in use"


def all_steps() -> list[Step]:
    """Return the commands of the whole page, in order."""
    titles = re.findall(r"(?m)^## (.*)$", PAGE.read_text())
    return [step for title in titles for step in steps_of(PAGE, title)]


def beginning(folder: Path) -> list[Step]:
    """Return the commands before the first section."""
    page = folder / "page.md"
    page.write_text("## Before\n" + PAGE.read_text().split("\n", 1)[1])
    return steps_of(page, "Before")


def cells(text: str) -> list[list[str]]:
    """Return the cells of each line, without ages and the ids of reshapes."""
    lines = (RESHAPE.sub("reshape undo ID", line.strip()) for line in text.splitlines())
    return [GAP.split(AGE.sub("AGE", line)) for line in lines]


def test_each_command_says_what_the_page_shows(tmp_path: Path) -> None:
    """In the order of the page, in one shell."""
    steps = beginning(tmp_path) + all_steps()
    assert len(steps) > 20
    database = tmp_path / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        token = Path(f"{database}.token").read_text().strip()
        environment = {
            "PATH": f"{ROOT}/.venv/bin:{ROOT}/.venv-client/bin:/usr/bin:/bin",
            "MOORAGE_URL": server.url,
            "MOORAGE_TOKEN": token,
            "OS_AUTH_TYPE": "admin_token",
            "OS_ENDPOINT": server.url,
            "OS_TOKEN": token,
            "OS_PLACEMENT_API_VERSION": "1.39",
        }
        results = play(steps, tmp_path, environment, WIDTH)
    assert len(results) == len(steps)
    for step, (said, code) in zip(steps, results, strict=True):
        assert (code != 0) == (REFUSED in said), (step.command, said)
        if step.shown or step.command.startswith("moorage"):
            shown = "\n".join(step.shown)
            assert cells(said) == cells(shown), (step.command, said)
