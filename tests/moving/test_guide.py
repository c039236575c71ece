"""The way in of docs/howto/move-from-placement.md, typed as an operator does."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.server import Server, serve
from tests.e2e.support.typed import ROOT, Step, play, steps_of
from tests.moving.support import engines
from tests.moving.support.generator import fill
from tests.moving.support.original import Asking, Original

PAGE = ROOT / "docs/howto/move-from-placement.md"
ADDRESS = "mysql+pymysql://moorage:PASSWORD@db.example.org/placement"
GRANTS = re.compile(r"```sql\n(.*?)```", re.DOTALL)
FIGURES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d[\d.]*")
LEFT_BEHIND = (
    "INSERT INTO consumers (uuid, project_id, user_id, generation, created_at)"
    " VALUES ('00000000-0000-4000-8000-0000000000ff', 1, 1, 0, NOW())"
)
ODD = re.compile(r"^odd: .*$", re.MULTILINE)


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    """An original on MariaDB, with a consumer that a refused request has left behind."""
    maria = engines.mariadb()
    url = maria.create("placement")
    (grants,) = GRANTS.findall(PAGE.read_text())
    with Original(url) as found:
        fill(found.url, 2, 30, 60)
        maria.run(LEFT_BEHIND, database="placement")
        maria.run(*filter(str.strip, grants.replace("'%'", "'localhost'").split(";")))
        yield found


def typed(titles: list[str], folder: Path, server: Server) -> list[tuple[Step, str, int]]:
    """Type the commands of some sections, with the address of this test's database."""
    reading = engines.mariadb().url("placement", "moorage", "PASSWORD")
    steps = [step for title in titles for step in steps_of(PAGE, title)]
    assert any(ADDRESS in step.command for step in steps)
    steps = [Step(step.command.replace(ADDRESS, reading), step.shown) for step in steps]
    environment = {
        "PATH": f"{ROOT}/.venv/bin:/usr/bin:/bin",
        "MOORAGE_URL": server.url,
        "MOORAGE_TOKEN": "admin",
        "HOME": os.environ.get("HOME", "/"),
    }
    played = play(steps, folder, environment)
    assert len(played) == len(steps)
    return [(step, said, code) for step, (said, code) in zip(steps, played, strict=True)]


def normal(text: str) -> str:
    """Return what a command says without figures, UUIDs and the kinds of what is kept."""
    return FIGURES.sub("N", ODD.sub("odd: ...", text)).strip()


def test_the_ledger_moves_as_the_guide_says(original: Original, tmp_path: Path) -> None:
    """Each command says what the page shows; afterwards both answer the same."""
    with serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server:
        played = typed(["Prepare", "Copy", "Follow", "Finish"], tmp_path, server)
        for step, said, code in played:
            assert normal(said) == normal("\n".join(step.shown)), (step.command, said)
            assert (code != 0) == ("cannot be kept" in said), (step.command, said)
        assert sum(step.command.startswith("moorage") for step, _, _ in played) == 4
        assert "PASSWORD" not in "".join(said for _, said, _ in played)
        path = "/resource_providers"
        ours, theirs = (Asking(url).get(path)[path[1:]] for url in (server.url, original.url))
        assert len(ours) == len(theirs) == 30


def test_it_can_be_given_up_as_the_guide_says(original: Original, tmp_path: Path) -> None:
    """Afterwards the ledger is empty, and open."""
    with serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server:
        *_, (step, said, code) = typed(["Prepare", "Copy", "Give up"], tmp_path, server)
        assert (normal(said), code) == (normal("\n".join(step.shown)), 0)
        assert Asking(server.url).get("/resource_providers")["resource_providers"] == []
