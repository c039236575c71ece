"""Machines whose providers a client of the Placement API has deleted."""

from pathlib import Path

import pytest

from moorage.core.clock import SECOND
from moorage.core.fleet.model import Liveness, State
from moorage.core.fleet.policy import Action
from moorage.core.ids import ProviderId
from moorage.service.ledger.provider_cases import ProviderCreate, ProviderDelete
from tests.service.fleet.alone import play
from tests.service.fleet.machines import PAGES, agent_id, machine, part_id, ready, report
from tests.service.running import TESTER, Running

GIVEN, CREATED = "given", "created"


async def deleted(one: Running, root: str) -> ProviderId:
    """Register the first machine, delete its providers, and return its root."""
    fleet, named = one.service.fleet, None
    if root == GIVEN:
        named = await one.provider(1, VCPU=4)
    await fleet.put(agent_id(1), "default", {}, None, TESTER)
    await fleet.register(agent_id(1), machine(1, root=named), TESTER)
    await fleet.report(agent_id(1), report(1, 1, 10), TESTER)
    top = named or ProviderId(agent_id(1))
    await one.submit(ProviderDelete(part_id(1)))
    await one.submit(ProviderDelete(top))
    return top


async def fall_silent(one: Running, seconds: int) -> None:
    """Let nobody be heard of for some time."""
    for _ in range(seconds):
        one.clock.at += SECOND
        await one.service.fleet.liveness_loop.look()


def exists(one: Running, uuid: ProviderId) -> bool:
    """Is this provider in the index?"""
    return one.service.index.catalog.record(uuid) is not None


@pytest.mark.parametrize("root", [GIVEN, CREATED])
def test_silence_creates_nothing_and_reaches_the_others(tmp_path: Path, root: str) -> None:
    """All silent agents become late together, whichever providers are left."""

    async def scenario(one: Running) -> None:
        top = await deleted(one, root)
        await ready(one.service.fleet, 2)
        await fall_silent(one, 12)
        for n in (1, 2):
            agent = one.service.fleet.directory.get(agent_id(n))
            assert agent is not None and agent.liveness is Liveness.LATE
        other = one.service.index.catalog.record(part_id(2))
        assert other is not None and other.inventories[PAGES].offered == 0
        assert not exists(one, top) and not exists(one, part_id(1))

    play(tmp_path, scenario)


@pytest.mark.parametrize("root", [GIVEN, CREATED])
def test_operators_can_remove_its_agent(tmp_path: Path, root: str) -> None:
    """It can be drained, expunged and decommissioned, which creates nothing."""

    async def scenario(one: Running) -> None:
        top = await deleted(one, root)
        for action in (Action.DRAIN, Action.EXPUNGE, Action.DECOMMISSION):
            agent = await one.service.fleet.policy(agent_id(1), action, "gone", TESTER)
        assert agent.state is State.DECOMMISSIONED
        assert not exists(one, top) and not exists(one, part_id(1))

    play(tmp_path, scenario)


@pytest.mark.parametrize("root", [GIVEN, CREATED])
def test_a_root_that_a_client_has_created_again_is_not_closed(tmp_path: Path, root: str) -> None:
    """A provider of the same UUID is another writer's, unless the root was given."""

    async def scenario(one: Running) -> None:
        top = await deleted(one, root)
        await one.submit(ProviderCreate(top, "again"))
        await ready(one.service.fleet, 2)
        await fall_silent(one, 12)
        other = one.service.index.catalog.record(part_id(2))
        assert other is not None and other.inventories[PAGES].offered == 0
        again = one.service.index.catalog.record(top)
        assert again is not None and again.provider.withheld is None

    play(tmp_path, scenario)


def test_a_register_creates_them_again(tmp_path: Path) -> None:
    """A machine that boots again is there again."""

    async def scenario(one: Running) -> None:
        top = await deleted(one, CREATED)
        await one.service.fleet.register(agent_id(1), machine(1, "boot-2"), TESTER)
        assert exists(one, top) and exists(one, part_id(1))

    play(tmp_path, scenario)
