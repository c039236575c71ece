"""The commands of docs/howto/contexts.md, typed against a real server."""

import re
from pathlib import Path

import pytest

from tests.e2e.support.server import serve
from tests.e2e.support.typed import ROOT, play, steps_of

PAGE = ROOT / "docs/howto/contexts.md"
SHOWN, HOME = "http://127.0.0.1:8778", "/home/alice"
VARYING = re.compile(r"(?<=#link=)[\w-]{43}|\d\d:\d\d:\d\d UTC")
WIDTH = 200


def plain(text: str, url: str, folder: Path) -> list[list[str]]:
    """Return the words of each line, without what no two runs have in common."""
    text = VARYING.sub("VARYING", text.replace(url, SHOWN).replace(str(folder), HOME))
    return [line.split() for line in text.splitlines()]


@pytest.mark.parametrize("columns", [WIDTH])
def test_each_command_says_what_the_page_shows(tmp_path: Path, columns: int) -> None:
    """In the order of the page, in one shell, in a folder without a database."""
    home = tmp_path / "home"
    home.mkdir()
    database = tmp_path / "moorage.sqlite"
    steps = steps_of(PAGE)
    assert len(steps) == 11
    with serve(database, "--no-access-log") as server:
        (home / "lab.token").write_text(Path(f"{database}.token").read_text())
        for step in steps:
            step.command = step.command.replace(SHOWN, server.url)
        environment = {
            "PATH": f"{ROOT}/.venv/bin:/usr/bin:/bin",
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
        }
        results = play(steps, home, environment, columns)
        for step, (said, code) in zip(steps, results, strict=True):
            shown = plain("\n".join(step.shown), SHOWN, home)
            assert plain(said, server.url, home) == shown, step.command
            assert code == (125 if "never" in step.command else 0), said
