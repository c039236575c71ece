"""Without access to the database, the original is imported over its API."""

import json
import sqlite3
from pathlib import Path

from tests.e2e.support.server import serve
from tests.moving.support import engines
from tests.moving.support.commands import Importing
from tests.moving.support.comparing import Sides
from tests.moving.support.generator import fill
from tests.moving.support.original import Original


def test_what_the_api_shows_is_imported(tmp_path: Path) -> None:
    """Times of changes are exact; what it cannot show is listed."""
    database = engines.fresh("sqlite", tmp_path)
    with (
        Original(database) as original,
        serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server,
    ):
        made = fill(original.url, 11, 30, 60, 1)
        command = Importing.over_api(tmp_path, original.url, server.url)
        told = json.loads(command.run("--json"))
        assert told["rows"]["providers"] == len(made.providers)
        assert told["rows"]["consumers"] == len(made.consumers)
        assert told["oddities"]["api_blind"] == 4
        assert told["oddities"]["api_time_unknown"] == 4
        assert told["oddities"]["over_capacity"] > 0
        sides = Sides(original.url, server.url)
        sides.all(made.providers, made.consumers[:20], made.projects[:2])
        assert sides.differences == []


def test_what_it_cannot_show_is_seen_in_the_database(tmp_path: Path) -> None:
    """A consumer that a refused request has left behind."""
    database = engines.fresh("sqlite", tmp_path)
    with (
        Original(database) as original,
        serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server,
    ):
        fill(original.url, 11, 3, 4, 1)
        connection = sqlite3.connect(database.removeprefix("sqlite:///"))
        with connection:
            connection.execute(
                "INSERT INTO consumers (uuid, project_id, user_id, generation)"
                " VALUES ('00000000-0000-4000-8000-0000000000ff', 1, 1, 0)"
            )
        connection.close()
        refused = Importing(tmp_path, database, server.url).run("--copy", code=1)
        assert "consumer_empty (1)" in refused
        command = Importing.over_api(tmp_path, original.url, server.url)
        told = json.loads(command.run("--json"))
        assert "consumer_empty" not in told["oddities"]
