"""The check of the fleet finds every planted inconsistency, and none in consistent rows."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.fleet.facts import Changes, Keys
from moorage.core.fleet.model import State
from moorage.store.api import Engine
from moorage.store.differences import FOUND_MAX
from moorage.store.fleet import check
from moorage.store.open import open_engine
from tests.service.fleet.machines import agent_id
from tests.store.fleet.agents import agent, changed, group, offering, run, saved, whole_agent
from tests.store.test_check import plant
from tests.support import cluster

ONE, TWO = agent_id(1), agent_id(2)
AGENT, GROUP = "UPDATE agent SET", "UPDATE agent_group SET"
THIS = f"WHERE uuid = '{ONE}'"

PLANTED = {
    f"{AGENT} number = 9 {THIS}": f"agent {ONE}: number is 9, it should be 1",
    f"{AGENT} agent_group = 'b' {THIS}": f"agent {ONE}: agent_group is 'b', it should be 'a'",
    f"{AGENT} root = NULL {THIS}": f"agent {ONE}: root is None, it should be '{ONE}'",
    f"{AGENT} policy = 'expunged' {THIS}": "policy is 'expunged', it should be 'in_service'",
    f"{AGENT} state = 'decommissioned' {THIS}": "state is 'decommissioned', it should be 'active'",
    f"{AGENT} readiness = 'failed' {THIS}": "readiness is 'failed', it should be 'ready'",
    f"{AGENT} liveness = 'late' {THIS}": "liveness is 'late', it should be 'fresh'",
    f"{AGENT} offered = 0 {THIS}": f"agent {ONE}: offered is 0, it should be 1",
    f"{AGENT} body = '{{}}' {THIS}": f"agent {ONE}: its body cannot be read: Object missing",
    f"{AGENT} body = '{{' {THIS}": f"agent {ONE}: its body cannot be read: ",
    f"{AGENT} body = replace(body, '{ONE}', '{TWO}') {THIS}": f"agent {ONE}: uuid is '{ONE}', it",
    f"{GROUP} body = '[1' WHERE name = 'a'": "group a: its body cannot be read: ",
    f"{GROUP} name = 'c' WHERE name = 'a'": "group c: name is 'c', it should be 'a'",
    "DELETE FROM agent_group WHERE name = 'a'": f"agent {ONE}: its group 'a' does not exist",
}


def sound() -> Changes:
    """Return agents and groups as decisions leave them; a group of ended agents may be gone."""
    return changed(group("a"), offering(1, group="a"), agent(2), whole_agent(3))


def test_a_sound_fleet(engine: Engine) -> None:
    """Rows that batches wrote are consistent, also after they were changed."""

    async def scenario() -> None:
        await run(engine, Keys(), lambda _: sound())
        assert await engine.read_aside(check.differences_load()) == []
        await saved(engine, offering(1, state=State.DECOMMISSIONED))
        assert await engine.read_aside(check.differences_load()) == []

    asyncio.run(scenario())


async def found_after(folder: Path, database: str, changes: Changes, planted: str) -> list[str]:
    """Save changes in a new database, plant damage, and return what the check finds."""
    url = cluster.fresh() if database == "postgresql" else f"sqlite:///{folder}/a.db"
    engine = open_engine(url)
    await run(engine, Keys(), lambda _: changes)
    plant(engine, url, planted)
    found = await engine.read_aside(check.differences_load())
    await engine.close()
    return found


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("planted", PLANTED)
def test_planted_differences(tmp_path: Path, database: str, planted: str) -> None:
    """Each kind of inconsistency is found and described in one line."""
    found = asyncio.run(found_after(tmp_path, database, sound(), planted))
    assert any(PLANTED[planted] in line for line in found), found
    assert not any("\n" in line for line in found)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_so_many_differences_are_told(tmp_path: Path, database: str) -> None:
    """If everything is damaged, the check stops after a while and reports that."""
    many = changed(*(agent(n) for n in range(1, FOUND_MAX + 2)))
    found = asyncio.run(found_after(tmp_path, database, many, f"{AGENT} policy = 'x'"))
    assert len(found) == FOUND_MAX + 1
    assert found[-1] == "fleet: there are more differences; the rest was not looked at"
