"""Machines whose providers a client of the Placement API has deleted."""

from pathlib import Path

import pytest

from moorage.core.clock import SECOND
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Goal, Liveness, State
from moorage.core.fleet.policy import Action
from moorage.core.ids import ProviderId
from moorage.core.ledger.bulk import ProviderSpec
from moorage.core.ledger.capacity import capacity_of
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.ledger.bulk import TreesUpsert
from moorage.service.ledger.provider_cases import (
    InventoriesReplace,
    ProviderCreate,
    ProviderDelete,
    ProviderUpdate,
)
from tests.service.fleet.alone import play
from tests.service.fleet.machines import (
    BOOT,
    PAGES,
    agent_desired,
    agent_id,
    agent_policy,
    agent_put,
    machine,
    part_id,
    ready,
    report,
)
from tests.service.running import TESTER, Running

GIVEN, CREATED = "given", "created"


async def registered(one: Running, root: str) -> ProviderId:
    """Let the first machine offer 10 pages, and return its root."""
    fleet, named = one.service.fleet, None
    if root == GIVEN:
        named = await one.provider(1, VCPU=4)
    await agent_put(fleet, agent_id(1), "default", {}, None, TESTER, named)
    await fleet.register(agent_id(1), machine(1, root=named), TESTER)
    await agent_desired(fleet, agent_id(1), DesiredSpec(PAGES, goal=Goal(amount=10)), "", TESTER)
    await fleet.report(agent_id(1), report(1, 1, 10), TESTER)
    return named or ProviderId(agent_id(1))


async def deleted(one: Running, root: str) -> ProviderId:
    """Register the first machine, delete its providers, and return its root."""
    top = await registered(one, root)
    await one.submit(ProviderDelete(part_id(1)))
    await one.submit(ProviderDelete(top))
    return top


async def fall_silent(one: Running, seconds: int) -> None:
    """Let nobody be heard of for some time."""
    for _ in range(seconds):
        one.clock.at += SECOND
        await one.service.fleet.liveness_loop.look()


def capacity(one: Running, uuid: ProviderId, name: str = PAGES) -> float:
    """Return how much of a class of a provider may be used in all."""
    record = one.service.index.catalog.record(uuid)
    assert record is not None
    return capacity_of(record.inventories[name])


def withheld(one: Running, uuid: ProviderId) -> str | None:
    """Return why a provider is closed."""
    record = one.service.index.catalog.record(uuid)
    assert record is not None
    return None if record.provider.withheld is None else record.provider.withheld.reason


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
            agent = await agent_policy(one.service.fleet, agent_id(1), action, "gone", TESTER)
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


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("below", [False, True])
def test_a_given_root_of_a_drained_machine_is_created_closed(
    tmp_path: Path, bulk: bool, below: bool
) -> None:
    """Nova deletes its compute node, and creates it again with the same UUID; then it resumes."""

    async def scenario(one: Running) -> None:
        top = await registered(one, GIVEN)
        other = await one.provider(2, VCPU=4) if below else None
        await agent_policy(one.service.fleet, agent_id(1), Action.DRAIN, "a new fan", TESTER)
        await one.submit(ProviderDelete(part_id(1)))
        await one.submit(ProviderDelete(top))
        if bulk:
            spec = ProviderSpec(top, "again", other, {"VCPU": InventorySpec(4)})
            await one.submit(TreesUpsert([[spec]], set(), False, TESTER))
        else:
            await one.submit(ProviderCreate(top, "again", other))
            await one.submit(InventoriesReplace(top, 0, {"VCPU": InventorySpec(4)}))
        assert withheld(one, top) == "no_provision"
        assert capacity(one, top, "VCPU") == 0
        await agent_policy(one.service.fleet, agent_id(1), Action.RESUME, "", TESTER)
        assert withheld(one, top) is None
        assert capacity(one, top, "VCPU") == 4

    play(tmp_path, scenario)


def test_the_root_of_an_ended_agent_is_created_open(tmp_path: Path) -> None:
    """Nobody speaks for it any more, and who creates it wants to use it; the check agrees."""

    async def scenario(one: Running) -> None:
        top = await deleted(one, GIVEN)
        for action in (Action.EXPUNGE, Action.DECOMMISSION):
            await agent_policy(one.service.fleet, agent_id(1), action, "gone", TESTER)
        await one.submit(ProviderCreate(top, "again"))
        assert withheld(one, top) is None
        assert await one.service.operations.check() == []

    play(tmp_path, scenario)


@pytest.mark.parametrize("root", [GIVEN, CREATED])
def test_a_part_that_was_moved_away_is_closed_without_its_root(tmp_path: Path, root: str) -> None:
    """A client moves the part below another provider and deletes the root; then silence follows."""

    async def scenario(one: Running) -> None:
        top = await registered(one, root)
        other = await one.provider(2, VCPU=4)
        await one.submit(ProviderUpdate(part_id(1), "part", move=True, parent=other, free=True))
        await one.submit(ProviderDelete(top))
        assert capacity(one, part_id(1)) == 10
        await fall_silent(one, 12)
        assert capacity(one, part_id(1)) == 0
        await agent_policy(one.service.fleet, agent_id(1), Action.EXPUNGE, "gone", TESTER)
        await agent_policy(one.service.fleet, agent_id(1), Action.DECOMMISSION, "gone", TESTER)

    play(tmp_path, scenario)


@pytest.mark.parametrize("boot", [BOOT, "boot-2"])
def test_a_register_creates_them_again(tmp_path: Path, boot: str) -> None:
    """A machine that boots again, or whose agent restarts, is there again."""

    async def scenario(one: Running) -> None:
        top = await deleted(one, CREATED)
        await one.service.fleet.register(agent_id(1), machine(1, boot), TESTER)
        assert exists(one, top) and exists(one, part_id(1))

    play(tmp_path, scenario)


def test_a_repeated_report_creates_them_again(tmp_path: Path) -> None:
    """The agent need not have anything new to say; what it offers is offered again."""

    async def scenario(one: Running) -> None:
        await deleted(one, CREATED)
        before = one.service.fleet.directory.get(agent_id(1))
        await one.service.fleet.report(agent_id(1), report(1, 1, 10), TESTER)
        assert capacity(one, part_id(1)) == 10
        assert one.service.fleet.directory.get(agent_id(1)) == before

    play(tmp_path, scenario)
