"""Groups at two services: deleted while agents come, defaults for members that have just come."""

import asyncio

from moorage.core.clock import Instant
from moorage.core.errors import Code
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Goal
from moorage.core.service_time import When
from moorage.service.fleet.policy_cases import GroupPut
from tests.service.fleet.machines import (
    PAGES,
    agent_desired,
    agent_enroll,
    agent_id,
    agent_put,
    group_delete,
    machine,
    part_id,
    ready,
)
from tests.service.fleet.pair import ROUNDS, Pair, outcomes, play, refused
from tests.service.running import TESTER
from tests.support import cluster

WAIT = 30.0


def test_a_deleted_group_is_forgotten_although_it_was_missed() -> None:
    """A process that has missed commits reads the whole state: what is not there is gone."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await one.group_defaults.put("rack", {}, TESTER)
        await pair.caught_up()
        known = other.directory.group("rack")
        await group_delete(one, "rack", TESTER)
        await pair.caught_up()
        now = Instant(pair.clock.now())
        other.directory.note(Changes(groups={"rack": known}), When(now, now, now))
        assert other.directory.group("rack") is not None
        other._followers.missed()
        async with asyncio.timeout(WAIT):
            while other.directory.group("rack") is not None:
                await other.queries.all_groups()

    play(cluster.fresh(), scenario)


def test_a_group_is_deleted_while_agents_come(url: str) -> None:
    """In either order: an agent's group exists, and its defaults are those that the agent has."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        await agent_desired(one, agent_id(1), DesiredSpec(PAGES), "", TESTER)
        for n in range(ROUNDS):
            name = f"rack-{n}"
            await one.group_defaults.put(name, {PAGES: Goal(amount=10 + n)}, TESTER)
            found = await outcomes(
                group_delete(one, name, TESTER),
                agent_put(other, agent_id(1), name, {}, None, TESTER),
                agent_enroll(other, agent_id(100 + n), name, {}, TESTER),
                other.register(agent_id(1), machine(1, f"boot-{n + 2}"), TESTER),
            )
            assert found[0] in (None, Code.GROUP_IN_USE)
            agent, group = await pair.agent(1), (await other.queries.group(name)).group
            assert agent.group == name
            expected = 10 + n if PAGES in group.desired else 0
            assert agent.parts[part_id(1)].classes[PAGES].desired == expected
            assert (found[0] is None) == (not group.desired)
            with refused(Code.GROUP_IN_USE):
                await group_delete(other, name, TESTER)

    play(url, scenario)


def test_members_follow_although_a_process_was_killed(url: str) -> None:
    """The defaults were stored, and the process ended before the members followed them."""

    async def scenario(pair: Pair) -> None:
        for n in (1, 2):
            await ready(pair.fleets[0], n)
        await agent_desired(pair.fleets[0], agent_id(1), DesiredSpec(PAGES), "", TESTER)
        await pair.submit(GroupPut("default", {PAGES: Goal(amount=70)}, TESTER))
        assert (await pair.agent(1)).parts[part_id(1)].classes[PAGES].desired == 0
        await pair.end()
        await pair.start()
        async with asyncio.timeout(WAIT):
            while (await pair.agent(1)).parts[part_id(1)].classes[PAGES].desired != 70:
                pass
        assert await pair.offered(1) == 70
        assert (await pair.agent(2)).parts[part_id(2)].classes[PAGES].desired == 100

    play(url, scenario)


def test_members_that_come_while_the_defaults_change(url: str) -> None:
    """They follow the new defaults, whichever service they come to."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(other, 1)
        await agent_desired(other, agent_id(1), DesiredSpec(PAGES), "", TESTER)
        for n in range(2, ROUNDS):
            await agent_put(one, agent_id(1), "default", {}, None, TESTER)
            await outcomes(
                agent_put(other, agent_id(1), "rack", {}, None, TESTER),
                one.group_defaults.put("rack", {PAGES: Goal(amount=n)}, TESTER),
            )
            assert (await pair.agent(1)).parts[part_id(1)].classes[PAGES].desired == n
            await agent_put(other, agent_id(1), "default", {}, None, TESTER)
            await agent_put(other, agent_id(1), "rack", {}, None, TESTER)
            await one.group_defaults.put("rack", {PAGES: Goal(amount=100 + n)}, TESTER)
            assert (await pair.agent(1)).parts[part_id(1)].classes[PAGES].desired == 100 + n

    play(url, scenario)
