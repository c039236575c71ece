"""docs/howto/move-from-placement.md, typed as an operator does."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.server import Server, serve
from tests.e2e.support.typed import ROOT
from tests.moving.support import engines
from tests.moving.support.generator import fill
from tests.moving.support.original import SETTINGS, Asking, Original
from tests.moving.support.pages import Typed, steps_in, typed

PAGE = ROOT / "docs/howto/move-from-placement.md"
ADDRESS = "mysql+pymysql://moorage:PASSWORD@db.example.org/placement"
BACK = "mysql+pymysql://placement:PASSWORD@db.example.org/placement_back"
THERE = "http://10.0.0.5:8778"
GRANTS = re.compile(r"```sql\n(.*?)```", re.DOTALL)
LEFT_BEHIND = (
    "INSERT INTO consumers (uuid, project_id, user_id, generation, created_at)"
    " VALUES ('00000000-0000-4000-8000-0000000000ff', 1, 1, 0, NOW())"
)
IN = ["Prepare", "Copy", "Follow", "Finish"]


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


def typed_here(titles: list[str], folder: Path, server: Server) -> list[Typed]:
    """Type the commands of some sections of the way in."""
    reading = engines.mariadb().url("placement", "moorage", "PASSWORD")
    return typed(steps_in(PAGE, titles, {ADDRESS: reading}), folder, server)


def test_the_ledger_moves_as_the_guide_says(original: Original, tmp_path: Path) -> None:
    """Each command says what the page shows, and both answer the same; then it moves back."""
    with serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server:
        played = typed_here(IN, tmp_path, server)
        for one in played:
            assert one.as_shown(), (one.step.command, one.said)
            assert (one.code != 0) == ("cannot be kept" in one.said), (one.step.command, one.said)
        followed, finished = played[-2:]
        assert not Typed(finished.step, followed.said, 0).as_shown(), "the control"
        assert sum(one.step.command.startswith("moorage") for one in played) == 4
        assert "PASSWORD" not in "".join(one.said for one in played)
        path = "/resource_providers"
        ours, theirs = (Asking(url).get(path)[path[1:]] for url in (server.url, original.url))
        assert len(ours) == len(theirs) == 30
        _moves_back(tmp_path, server)


def _moves_back(folder: Path, server: Server) -> None:
    """Type "And back"; the original is started on its new database before it is compared."""
    maria = engines.mariadb()
    database = maria.url("placement_back")
    written = SETTINGS.format(database=database.replace("%", "%%"), log=folder / "log")
    (folder / "placement-back.conf").write_text(written)
    (folder / "original.token").write_text("admin\n")
    (folder / "original.token").chmod(0o600)
    writing = maria.account("placement", "SELECT, INSERT", "placement_back")
    *steps, compared = steps_in(PAGE, ["And back"], {BACK: writing})
    assert THERE in compared.command
    played = typed(steps, folder, server)
    with Original(database) as second:
        compared.command = compared.command.replace(THERE, second.url)
        played += typed([compared], folder, server)
        for one in played:
            assert one.as_shown(), (one.step.command, one.said)
            assert one.code == 0, (one.step.command, one.said)
        assert "PASSWORD" not in "".join(one.said for one in played)


def test_it_can_be_given_up_as_the_guide_says(original: Original, tmp_path: Path) -> None:
    """Afterwards the ledger is empty, and open."""
    with serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server:
        *_, last = typed_here(["Prepare", "Copy", "Give up"], tmp_path, server)
        assert last.as_shown()
        assert last.code == 0
        assert Asking(server.url).get("/resource_providers")["resource_providers"] == []
