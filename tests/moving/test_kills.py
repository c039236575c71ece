"""An import that is killed at any point is resumed by the same command, to the same ledger."""

import random
import sqlite3
import subprocess
from pathlib import Path

from moorage.client.run.clock import elapsed
from moorage.client.transport import RefusedError, Transport
from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from moorage.integrations.placement.difference import difference
from moorage.integrations.placement.ledger import Ledger
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, Reading, silent
from tests.e2e.support.server import Server, serve
from tests.integrations.placement.original_file import made
from tests.moving.support.commands import Importing

KILLS = 20
PROVIDERS, CONSUMERS = 150, 350


def test_twenty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    """Copies and aborts are killed, and at last the finish."""
    database = f"sqlite:///{filled(tmp_path)}"
    chance = random.Random(5)
    with serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server:
        reading = read(database)
        assert reading.rows.counts()["providers"] == PROVIDERS + 2
        command = Importing(tmp_path, database, server.url)
        ledger = Ledger(Transport(server.url, "admin"))
        began = elapsed()
        command.run("--copy", small=True)
        copied = elapsed() - began
        killed = 0
        while killed < KILLS - 2:
            killed += killed_at(chance, copied / 2, command, "--abort")
            aborted(command, ledger)
            killed += killed_at(chance, copied, command, "--copy")
            command.run("--copy")
            assert difference(reading.rows, ledger.rows).example() == "none"
        while killed < KILLS or under_way(ledger):
            killed += killed_at(chance, copied, command, "--finish")
        assert "finished" in command.run("--finish")
        assert difference(reading.rows, ledger.rows).example() == "none"
        assert_sound(server)


def filled(folder: Path) -> Path:
    """Return an original with 500 providers and consumers."""
    file = made(folder)
    connection = sqlite3.connect(file)
    with connection:
        for key in range(10, 10 + PROVIDERS):
            connection.execute(
                "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id,"
                " parent_provider_id, created_at) VALUES (?, ?, ?, 1, 1, ?, '2024-01-01 00:00:00')",
                (key, f"00000000-0000-4000-9000-{key:012x}", f"größe {key}", 1 + key % 2),
            )
        for key in range(10, 10 + CONSUMERS):
            uuid = f"00000000-0000-4000-a000-{key:012x}"
            connection.execute(
                "INSERT INTO consumers (id, uuid, project_id, user_id, generation, created_at)"
                " VALUES (?, ?, 1, 1, 1, '2024-01-01 00:00:00')",
                (key, uuid),
            )
            connection.execute(
                "INSERT INTO allocations (id, resource_provider_id, consumer_id,"
                " resource_class_id, used, created_at)"
                " VALUES (?, 1, ?, 0, 1, '2024-01-01 00:00:00')",
                (key, uuid),
            )
    connection.close()
    return file


def read(database: str) -> Reading:
    """Read the original, as the command does."""
    return DatabaseSource(Database(address_of(database))).read(Oddities(), silent)


def killed_at(chance: random.Random, seconds: float, command: Importing, step: str) -> bool:
    """Kill a step that takes this long at some point; return whether it had not ended before."""
    process = command.start(step, small=True)
    try:
        process.communicate(timeout=chance.uniform(0.2, 1.0) * seconds)
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
