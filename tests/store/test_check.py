"""The check finds every planted inconsistency, and none in a consistent ledger."""

import asyncio
from itertools import islice
from pathlib import Path

import apsw
import psycopg
import pytest

from moorage.store.api import Engine
from moorage.store.open import open_engine
from tests.store.build import claimed, differences_load, provider_new, run, stream, tagged, together
from tests.support import cluster

A, B = "00000000-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
C = "00000007-cccc-4ccc-8ccc-cccccccccccc"

PLANTED = {
    f"UPDATE provider SET inventories = replace(inventories, '\"used\":2', '\"used\":9') "
    f"WHERE uuid = '{A}'": "used is 9, allocations sum up to 2",
    f"UPDATE provider SET generation = -1 WHERE uuid = '{A}'": "generation -1",
    f"UPDATE provider SET parent = NULL WHERE uuid = '{B}'": "no parent, but its root is",
    f"UPDATE provider SET parent = 'x' WHERE uuid = '{B}'": "its parent x does not exist",
    f"UPDATE provider SET root = uuid WHERE uuid = '{B}'": "its parent's is",
    f"UPDATE provider SET parent = '{B}' WHERE uuid = '{A}'": "its own ancestor",
    "UPDATE provider_tags SET provider = 'x'": "traits and aggregates: provider x does not exist",
    "UPDATE provider_tags SET traits = '[\"CUSTOM_X\"]'": "no trait CUSTOM_X",
    "UPDATE provider SET inventories = replace(inventories, 'VCPU', 'CUSTOM_X')": (
        "no resource class CUSTOM_X"
    ),
    f"UPDATE provider SET inventories = '{{}}' WHERE uuid = '{A}'": "has no inventory of VCPU",
    f"DELETE FROM provider WHERE uuid = '{A}'": "has no inventory of VCPU",
    "UPDATE consumer SET allocations = '{}'": f"consumer {C}: it has no allocations",
    "DELETE FROM consumer": f"consumer {C} has no allocation on it",
    "DELETE FROM holder": f"consumer {C} is missing",
    "UPDATE consumer SET generation = -1": f"consumer {C}: generation -1",
    "UPDATE consumer SET allocations = replace(allocations, ':2', ':0')": "amount 0",
}


def test_a_sound_ledger(engine: Engine) -> None:
    """Everything that batches wrote is consistent."""

    async def scenario() -> None:
        for batch in islice(stream(seed=30), 30):
            await run(engine, batch)
        await run(engine, provider_new(50, parent=3, VCPU=1))
        assert await engine.read_aside(differences_load()) == []

    asyncio.run(scenario())


def plant(engine: Engine, url: str, statement: str) -> None:
    """Run a statement in the database, bypassing the engine."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url) as server:
            server.execute(statement.encode())
        return
    with apsw.Connection(engine.name.removeprefix("sqlite ")) as file:
        file.execute(statement)
    file.close()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("statement", PLANTED)
def test_planted_differences(tmp_path: Path, database: str, statement: str) -> None:
    """Each kind of inconsistency is found and described in one line."""
    url = cluster.fresh() if database == "postgresql" else f"sqlite:///{tmp_path}/a.db"

    async def scenario() -> list[str]:
        engine = open_engine(url)
        await run(engine, provider_new(0, VCPU=8))
        await run(engine, provider_new(1, parent=0, VCPU=8))
        await run(engine, together(tagged(0, {"STORAGE_DISK_SSD"}), claimed(7, {0: {"VCPU": 2}})))
        plant(engine, url, statement)
        found = await engine.read_aside(differences_load())
        await engine.close()
        return found

    found = asyncio.run(scenario())
    assert any(PLANTED[statement] in line for line in found), found
    assert not any("\n" in line for line in found)
