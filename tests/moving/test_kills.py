"""An import that is killed at any point is resumed by the same command, to the same ledger."""

import random
import subprocess
from pathlib import Path

from moorage.client.transport import RefusedError, Transport
from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from moorage.integrations.placement.difference import difference
from moorage.integrations.placement.ledger import Ledger
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, Reading, silent
from tests.e2e.support.server import Server, serve
from tests.moving.support import engines
from tests.moving.support.commands import Importing
from tests.moving.support.generator import fill
from tests.moving.support.original import Original

KILLS = 20
ROWS = 500
SECONDS_MAX = 3.0
"""After which a step is killed at the latest; one takes about two seconds."""


def test_twenty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    """Copies, follows and aborts are killed, and at last the finish."""
    database = engines.fresh("mariadb", tmp_path)
    chance = random.Random(5)
    with (
        Original(database) as original,
        serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server,
    ):
        fill(original.url, 5, 120, 700)
        reading = read(database)
        assert sum(reading.rows.counts().values()) >= ROWS
        command = Importing(tmp_path, database, server.url)
        ledger = Ledger(Transport(server.url, "admin"))
        killed = 0
        while killed < KILLS - 2:
            killed += killed_at(chance, command, "--copy")
            command.run("--copy")
            assert difference(reading.rows, ledger.rows).example() == "none"
            killed += killed_at(chance, command, "--follow")
            command.run("--follow")
            assert difference(reading.rows, ledger.rows).example() == "none"
            killed += killed_at(chance, command, "--abort")
            aborted(command, ledger)
        killed += killed_at(chance, command, "--copy")
        command.run("--copy")
        while killed < KILLS or under_way(ledger):
            killed += killed_at(chance, command, "--finish")
        assert "finished" in command.run("--finish")
        assert difference(reading.rows, ledger.rows).example() == "none"
        assert_sound(server)


def read(database: str) -> Reading:
    """Read the original, as the command does."""
    return DatabaseSource(Database(address_of(database))).read(Oddities(), silent)


def killed_at(chance: random.Random, command: Importing, step: str) -> bool:
    """Kill a step at some point; return whether it had not ended before."""
    process = command.start(step, small=True)
    try:
        process.communicate(timeout=chance.uniform(0.2, SECONDS_MAX))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    return False


def aborted(command: Importing, ledger: Ledger) -> None:
    """End the abort, unless it had ended but for its last words; the ledger is empty then."""
    if under_way(ledger):
        command.run("--abort")
    assert not any(True for kind in ("providers", "consumers") for _ in ledger.rows(kind))


def under_way(ledger: Ledger) -> bool:
    """Return whether an import is under way."""
    try:
        ledger.under_way()
    except RefusedError as refusal:
        assert refusal.code == "import_not_found"
        return False
    return True


def assert_sound(server: Server) -> None:
    """Let the server compare what it has stored with what it computes."""
    answer = Transport(server.url, "admin").request("POST", "/v1/database/check", {})
    assert answer["differences"] == []
