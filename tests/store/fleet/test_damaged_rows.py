"""A row that cannot be read: the error names it, and no other row suffers."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from moorage.core.fleet.facts import Keys
from moorage.store.api import Damaged, Engine, Plan, Write
from moorage.store.check import offers_differences_load
from moorage.store.fleet import load, reads
from moorage.store.fleet.changes import changes_read
from moorage.store.fleet.rows import agent_row
from tests.service.fleet.machines import agent_id
from tests.store.fleet.agents import agent, group, ids, saved

BODIES = ["", "{", "{}", "[]", "null", '{"uuid": 1}', "\x7f"]

Read = Callable[[], Plan[Any]]

OF_AGENT: dict[str, Read] = {
    "agent_load": lambda: reads.agent_load(agent_id(2)),
    "agents_list": lambda: reads.agents_list(reads.AgentFilter(), "", 9),
    "facts": lambda: load.facts_load(Keys(agents=ids(1, 2))),
    "members": lambda: load.facts_load(Keys(members={"a"})),
}
OF_GROUP: dict[str, Read] = {
    "group_load": lambda: reads.group_load("a"),
    "groups_window": lambda: reads.groups_window("", 9),
    "facts": lambda: load.facts_load(Keys(groups={"a"})),
    "of an agent": lambda: load.facts_load(Keys(agents=ids(2))),
}
OTHERS: list[Read] = [
    lambda: reads.agent_load(agent_id(1)),
    lambda: reads.agents_list(reads.AgentFilter(group="default"), "", 9),
    lambda: load.facts_load(Keys(agents=ids(1))),
    reads.groups_count,
    offers_differences_load,
]
"""Reads that do not need the damaged rows."""


async def read(engine: Engine, plan: Plan[Any]) -> Any:
    """Run a plan in a transaction that is rolled back: some plans lock rows."""
    async with engine.transaction() as transaction:
        return await transaction.run(plan)


async def damaged(engine: Engine, statement: Write, title: str, failing: dict[str, Read]) -> None:
    """Save two agents and overwrite a body: only these reads fail, each with the same message."""
    await saved(engine, group("a"), agent(1), agent(2, group="a"))
    async with engine.transaction() as transaction:
        await transaction.run(written(statement))
        await transaction.commit()
    for name, plan in failing.items():
        with pytest.raises(Damaged) as caught:
            await read(engine, plan())
        said = str(caught.value)
        assert said.startswith(f"the row of {title} is damaged: "), (name, said)
        assert said.endswith("; `moorage db check` lists all damaged rows")
        assert "\n" not in said
    for plan in OTHERS:
        await read(engine, plan())
    agents = await engine.read(reads.readable_agents_window("", 9))
    groups = await engine.read(reads.readable_groups_window("", 9))
    assert len(agents.values) + len(groups.values) == 3
    assert [str(one) for one in agents.damaged + groups.damaged] == [said]
    assert (agents.last, groups.last) == (agent_id(2), "default")


def written(statement: Write) -> Plan[None]:
    """Run a statement."""
    yield [statement]


@pytest.mark.parametrize("body", BODIES)
def test_a_damaged_agent(engine: Engine, body: str) -> None:
    """Whatever needs its row fails with an error that names it; other agents are read."""
    *columns, _ = agent_row(agent(2, group="a"))
    statement = Write("agent_upsert", [(*columns, body)])
    asyncio.run(damaged(engine, statement, f"agent {agent_id(2)}", OF_AGENT))


@pytest.mark.parametrize("body", BODIES)
def test_a_damaged_group(engine: Engine, body: str) -> None:
    """As for agents: its members cannot be changed, and all others can."""
    statement = Write("agent_group_upsert", [("a", body)])
    asyncio.run(damaged(engine, statement, "group 'a'", OF_GROUP))


def test_a_damaged_change_row() -> None:
    """A follower learns which row cannot be read, as a peer wrote it."""
    with pytest.raises(Damaged, match=f"agent {agent_id(3)} is damaged"):
        changes_read([("agent", agent_id(3), "{}")])
    with pytest.raises(Damaged, match="group 'a/b' is damaged"):
        changes_read([("group", "c", None), ("group", "a/b", '{"name": 1}')])
