"""The ledger of a real OpenStack Placement is imported, and answers as the original does."""

import json
import random
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.e2e.support.server import serve
from tests.moving.support import engines
from tests.moving.support.commands import Importing
from tests.moving.support.comparing import Sides
from tests.moving.support.generator import UNKNOWN, fill
from tests.moving.support.original import Asking, Original

SIZES = {"mariadb": (1_000, 5_000), "postgresql": (150, 600), "sqlite": (30, 120)}
"""Providers and allocations. The original takes most of the time, and more of it on SQLite."""

ASKED = 40
"""Providers and consumers that both sides are asked about."""


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_all_answers_are_those_of_the_original(engine: str, tmp_path: Path) -> None:
    """The rows are compared by the command itself; this compares what clients see."""
    providers, allocations = SIZES[engine]
    database = engines.fresh(engine, tmp_path)
    with (
        Original(database) as original,
        serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server,
    ):
        made = fill(original.url, 7, providers, allocations, engines.clients(engine))
        command = Importing(tmp_path, database, server.url)
        told = json.loads(command.run("--json"))
        assert told["finished"]
        assert told["rows"]["providers"] == len(made.providers) >= providers
        assert told["rows"]["consumers"] == len(made.consumers)
        assert told["oddities"]["over_capacity"] > 0
        assert told["oddities"]["consumer_typeless"] > 0
        assert set(told["oddities"]) == {
            *("consumer_incomplete", "consumer_typeless", "over_capacity")
        }
        sides = Sides(original.url, server.url)
        chance = random.Random(1)
        some = min(ASKED, len(made.providers))
        sides.all(
            chance.sample(made.providers, some),
            chance.sample(made.consumers, some),
            [quote(one) for one in [*made.projects[:5], UNKNOWN, "проект é"]],
        )
        assert sides.differences == []
        assert sides.asked > some * 7
        # The original's grouping by consumer type is an error on PostgreSQL.
        assert all(path.startswith("/usages") for path in sides.failed)
        assert bool(sides.failed) == (engine == "postgresql")


def test_a_changed_ledger_differs(tmp_path: Path) -> None:
    """The control: the comparison finds one changed generation, and one changed total."""
    database = engines.fresh("sqlite", tmp_path)
    with (
        Original(database) as original,
        serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server,
    ):
        made = fill(original.url, 7, 9, 20, 1)
        Importing(tmp_path, database, server.url).run()
        uuid = made.providers[0]
        ours = Asking(server.url)
        generation = ours.get(f"/resource_providers/{uuid}")["generation"]
        body = {"resource_provider_generation": generation, "traits": []}
        ours.do("PUT", f"/resource_providers/{uuid}/traits", {**body, "traits": ["CUSTOM_UNUSED"]})
        sides = Sides(original.url, server.url)
        sides.all([uuid], [], [])
        assert any(f"/resource_providers/{uuid}/traits" in one for one in sides.differences)


def test_the_ledger_is_closed_until_the_end(tmp_path: Path) -> None:
    """Clients of Placement learn why, and when to come back."""
    database = engines.fresh("sqlite", tmp_path)
    with (
        Original(database) as original,
        serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server,
    ):
        made = fill(original.url, 7, 6, 10, 1)
        command = Importing(tmp_path, database, server.url)
        command.run("--copy")
        ours = Asking(server.url)
        for path in ("/resource_providers", f"/allocations/{made.consumers[0]}"):
            status, _ = ours("GET", path)
            assert status == 503
            assert int(ours.headers["retry-after"]) >= 1
        command.run("--follow")
        command.run("--finish")
        assert len(ours.get("/resource_providers")["resource_providers"]) == len(made.providers)


def test_the_server_is_replaced_between_the_copy_and_the_end(tmp_path: Path) -> None:
    """As when Moorage is deployed in the place of the original; health checks see no fault."""
    database = engines.fresh("sqlite", tmp_path)
    with Original(database) as original:
        made = fill(original.url, 7, 6, 10, 1)
        with serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server:
            Importing(tmp_path, database, server.url).run("--copy")
        with serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server:
            ours = Asking(server.url)
            assert ours("GET", "/resource_providers")[0] == 503
            body = {"name": "early", "uuid": made.projects[0]}
            assert ours("POST", "/resource_providers", body)[0] == 503
            assert ours("GET", "/")[0] == 200
            Importing(tmp_path, database, server.url).run("--finish")
            assert len(ours.get("/resource_providers")["resource_providers"]) == len(made.providers)
