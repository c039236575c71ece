"""Agents and groups in rows: saved values are loaded, and keys load what they name."""

import asyncio

import pytest
from msgspec.structs import fields, replace

from moorage.core.fleet.facts import Changes, Facts, Keys
from moorage.core.fleet.model import Goal, Liveness, State
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import Provider, Withheld
from moorage.store import changelog
from moorage.store.api import Engine
from moorage.store.changelog import changes_load
from moorage.store.fleet import changes as fleet_changes
from moorage.store.fleet import reads
from moorage.store.fleet.reads import Window
from tests.service.fleet.machines import agent_id
from tests.store import build
from tests.store.build import NOW, index_load, provider_id, provider_new
from tests.store.fleet.agents import (
    DEFAULT,
    agent,
    changed,
    facts_of,
    group,
    ids,
    offering,
    run,
    saved,
    whole_agent,
)

SUSPECT = group(
    "rack/b\\'1",
    desired={"CUSTOM_A": Goal(percent=12.5), "CUSTOM_B": Goal(amount=2**31 - 1)},
    suspect_since=NOW,
    waits_until=NOW,
    generation=9,
)


def test_every_value_comes_back(engine: Engine) -> None:
    """Agents and groups are loaded as they were saved, with any content, by every read."""
    one = whole_agent()
    plain = agent(2)
    differing = {field.name for field in fields(one) if getattr(one, field.name) != field.default}
    assert differing == {field.name for field in fields(one)}

    async def scenario() -> None:
        await saved(engine, SUSPECT, one, plain)
        facts = await facts_of(engine, Keys(agents=ids(1, 2)))
        assert facts.agents == {one.uuid: one, plain.uuid: plain}
        assert facts.groups == {"default": DEFAULT, SUSPECT.name: SUSPECT}
        assert await engine.read(reads.agent_load(one.uuid)) == one
        assert (await engine.read(reads.readable_agents_window("", 9))).values == [one, plain]
        assert await engine.read(reads.agents_list(reads.AgentFilter(), "", 9)) == [one, plain]
        assert await engine.read(reads.group_load(SUSPECT.name)) == SUSPECT
        assert await engine.read(reads.groups_window("", 9)) == [DEFAULT, SUSPECT]

    asyncio.run(scenario())


def test_values_are_replaced_and_removed(engine: Engine) -> None:
    """The last after-image counts, in all columns; a deleted group has no row left."""
    before = offering(1, group="rack")
    after = replace(whole_agent(), number=before.number, group="other")

    async def scenario() -> None:
        await saved(engine, group("rack"), group("other"), before)
        await saved(engine, after, group("other", generation=2))
        assert await engine.read(reads.agents_list(reads.AgentFilter(group="rack"), "", 9)) == []
        for wanted in (
            reads.AgentFilter(group="other"),
            reads.AgentFilter(policy=after.policy.value),
            reads.AgentFilter(state=after.state.value),
            reads.AgentFilter(readiness=after.readiness.value),
            reads.AgentFilter(liveness=after.liveness.value),
            reads.AgentFilter(offered=False),
            reads.AgentFilter(label="rack"),
        ):
            assert await engine.read(reads.agents_list(wanted, "", 9)) == [after], wanted
        gone = Changes(groups={"rack": None})
        await run(engine, Keys(changed={"rack"}), lambda _: gone)
        facts = await facts_of(engine, Keys(groups={"rack", "other"}))
        assert facts.groups == {"other": group("other", generation=2)}

    asyncio.run(scenario())


def test_keys_load_what_they_name(engine: Engine) -> None:
    """An agent is loaded with its group; a group that changes, if it is asked for, with all."""
    agents = [agent(1), agent(2, group="a"), agent(3, group="a"), agent(4, group="b")]

    async def scenario() -> None:
        await saved(engine, *(group(name) for name in "abc"), *agents)
        for keys, found, groups in (
            (Keys(), (), set()),
            (Keys(agents=ids(1)), (1,), {"default"}),
            (Keys(agents=ids(2, 4, 9)), (2, 4), {"a", "b"}),
            (Keys(groups={"a", "none"}), (), {"a"}),
            (Keys(changed={"a"}), (), {"a"}),
            (Keys(members={"a"}), (2, 3), {"a"}),
            (Keys(members={"a"}, changed={"b"}, agents=ids(1)), (1, 2, 3), {"default", "a", "b"}),
        ):
            facts = await facts_of(engine, keys)
            assert facts.agents == {agent_id(n): agents[n - 1] for n in found}, keys
            assert facts.groups.keys() == groups, keys

    asyncio.run(scenario())


def test_the_number_of_a_new_agent(engine: Engine) -> None:
    """It is one more than the highest; a decommissioned agent keeps its own."""

    async def scenario() -> None:
        assert (await facts_of(engine, Keys(number=True))).next_number == 1
        await saved(engine, agent(3), agent(8, state=State.DECOMMISSIONED))
        assert (await facts_of(engine, Keys(number=True))).next_number == 9
        facts = await facts_of(engine, Keys(agents=ids(3), number=True))
        assert (facts.next_number, {*facts.agents}) == (9, ids(3))

    asyncio.run(scenario())


def test_the_agent_of_a_root(engine: Engine) -> None:
    """Only the active agent of a root is known; a root without one is not in the facts."""
    roots = [ProviderId(agent_id(n)) for n in (1, 2, 3)]

    async def scenario() -> None:
        ended = offering(1, state=State.DECOMMISSIONED)
        await saved(engine, ended, offering(2), offering(4, root=roots[0]), agent(5))
        facts = await facts_of(engine, Keys(roots={*roots}, number=True))
        assert facts == Facts(roots={roots[0]: agent_id(4), roots[1]: agent_id(2)}, next_number=6)

    asyncio.run(scenario())


def test_change_rows_tell_what_was_saved(engine: Engine) -> None:
    """Followers read the same values, groups before agents; an empty batch has no revision."""

    async def scenario() -> None:
        before = (await engine.read(changes_load(0))).revision
        first = changed(whole_agent(), offering(2), SUSPECT, group("a"))
        assert await saved(engine, *first.agents.values(), SUSPECT, group("a")) == before + 1
        lost = offering(2, liveness=Liveness.LOST)
        gone = Changes(groups={"a": None}, agents={lost.uuid: lost})
        assert await run(engine, Keys(), lambda _: gone) == before + 2
        assert await run(engine, Keys(), lambda _: Changes()) == 0
        tail = await engine.read(changes_load(before, kinds=changelog.FOLLOWED_KINDS))
        one, other = [batch.others for batch in tail.batches]
        assert [kind for kind, _, _ in one] == ["group", "group", "agent", "agent"]
        assert fleet_changes.changes_read(one) == first
        assert fleet_changes.changes_read(other) == gone

    asyncio.run(scenario())


@pytest.mark.parametrize("withheld", [None, Withheld("no_provision", provider_id(9))])
def test_who_manages_a_provider_and_why_it_is_withheld(
    engine: Engine, withheld: Withheld | None
) -> None:
    """Both are loaded with the provider, as facts and for an index, and can be removed again."""
    uuid = provider_id(0)
    managed = Provider(uuid, "name-0", 3, None, uuid, NOW, NOW, agent_id(1), withheld)
    batch = build.Batch(LedgerKeys(providers={uuid}), [])

    async def provider_saved(one: Provider) -> None:
        batch.decisions = [lambda _, now: LedgerChanges(providers={uuid: one})]
        await build.run(engine, batch)

    async def scenario() -> None:
        await build.run(engine, provider_new(0))
        await provider_saved(managed)
        facts: LedgerFacts = await build.facts_of(engine, providers={uuid})
        assert facts.providers == {uuid: managed}
        _, _, index = await engine.read_aside(index_load())
        assert index.providers == {uuid: managed}
        await provider_saved(replace(managed, agent=None, withheld=None))
        facts = await build.facts_of(engine, providers={uuid})
        assert (facts.providers[uuid].agent, facts.providers[uuid].withheld) == (None, None)

    asyncio.run(scenario())


def test_wiped_tables(engine: Engine) -> None:
    """After a reset there are no agents, and no group but the default one, as it was at first."""

    async def scenario() -> None:
        changed_default = replace(DEFAULT, desired={"CUSTOM_A": Goal(amount=1)}, generation=2)
        await saved(engine, SUSPECT, changed_default, whole_agent())
        async with engine.transaction() as transaction:
            await transaction.run(changelog.wipe())
            await transaction.commit()
        assert await engine.read(reads.readable_agents_window("", 9)) == Window([], [], None)
        assert await engine.read(reads.groups_window("", 9)) == [DEFAULT]
        assert (await facts_of(engine, Keys(number=True))).next_number == 1

    asyncio.run(scenario())
