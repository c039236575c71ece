"""Clients of the Placement API that write what agents manage, and what is deleted or moved."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Goal, Liveness, ManagedClass, Phase, Source, State
from moorage.core.fleet.policy import Action
from moorage.core.ids import ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.capacity import capacity_of
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.ledger.allocation_cases import Reshape
from moorage.service.ledger.provider_cases import (
    InventoriesReplace,
    InventoryCreate,
    InventoryDelete,
    InventoryUpdate,
    ProviderCreate,
    ProviderDelete,
    ProviderUpdate,
)
from moorage.service.ledger.vocabulary_cases import ClassEnsure, ClassRename
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
from tests.service.fleet.pair import Pair, play, refused
from tests.service.running import TESTER, claim, consumer_id, provider_id

TTL = 10 * SECOND


async def given(pair: Pair, n: int, pages: int = 100) -> ProviderId:
    """Make the n-th machine offer pages below a root that others have created."""
    root, fleet = await pair.provider(n, VCPU=8), pair.fleets[0]
    await agent_put(fleet, agent_id(n), "default", {}, None, TESTER, root)
    await fleet.register(agent_id(n), machine(n, root=root), TESTER)
    await agent_desired(fleet, agent_id(n), DesiredSpec(PAGES, goal=Goal(amount=pages)), "", TESTER)
    await fleet.report(agent_id(n), report(n, 1, pages), TESTER)
    return root


async def generation(pair: Pair, uuid: ProviderId) -> int:
    """Return the generation of a provider."""
    record = (await pair.services[0].index.current()).record(uuid)
    assert record is not None
    return record.provider.generation


async def managed(pair: Pair, n: int) -> ManagedClass:
    """Return the pages of the n-th machine as its agent has them."""
    return (await pair.agent(n)).parts[part_id(n)].classes[PAGES]


async def silent(pair: Pair) -> None:
    """Let so much time pass that all agents are late."""
    await pair.caught_up()
    for _ in range(2 * TTL // SECOND):
        pair.clock.at += SECOND
        for fleet in pair.fleets:
            await fleet.liveness_loop.look()


async def withheld(pair: Pair, uuid: ProviderId) -> str | None:
    """Return why a provider is withheld."""
    record = (await pair.services[1].index.current()).record(uuid)
    assert record is not None
    return None if record.provider.withheld is None else record.provider.withheld.reason


def test_a_total_that_a_client_writes_is_desired(url: str) -> None:
    """At each service, in each of the ways; more than is there is never offered."""

    async def scenario(pair: Pair) -> None:
        await ready(pair.fleets[0], 1, 100)
        for n, total in enumerate((40, 250, 70)):
            before = await pair.agent(1)
            spec, known = InventorySpec(total), await generation(pair, part_id(1))
            case = [
                InventoriesReplace(part_id(1), known, {PAGES: spec}),
                InventoryUpdate(part_id(1), PAGES, known, spec),
            ][n % 2]
            await pair.submit(case, at=n % 2)
            after = await managed(pair, 1)
            assert (after.source, after.desired) == (Source.PLACEMENT, total)
            assert (await pair.agent(1)).desired_generation == before.desired_generation + 1
            assert (await pair.pages(1)).total == total
            assert await pair.offered(1) == min(total, 100)

    play(url, scenario)


def test_a_deleted_class_is_no_longer_desired(url: str) -> None:
    """Its inventory is gone until a total is written again, which the machine still has."""

    async def scenario(pair: Pair) -> None:
        await ready(pair.fleets[0], 1, 100)
        await pair.submit(InventoryDelete(part_id(1), PAGES), at=1)
        assert await pair.inventory(1) is None
        assert (await managed(pair, 1)).desired == 0
        known = await generation(pair, part_id(1))
        await pair.submit(InventoryCreate(part_id(1), PAGES, InventorySpec(60)))
        assert await generation(pair, part_id(1)) > known
        assert await pair.offered(1) == 60

    play(url, scenario)


def test_a_used_class_is_not_deleted(url: str) -> None:
    """A control: Placement refuses it, and nothing changes."""

    async def scenario(pair: Pair) -> None:
        await ready(pair.fleets[0], 1, 100)
        await pair.submit(claim(1, part_id(1), **{PAGES: 10}))
        before = await pair.agent(1)
        with refused(Code.INVENTORY_IN_USE):
            await pair.submit(InventoryDelete(part_id(1), PAGES), at=1)
        assert await pair.agent(1) == before

    play(url, scenario)


def test_a_total_of_an_unready_machine_offers_nothing(url: str) -> None:
    """While it prepares, also of a class that a client creates again; the report opens it."""

    async def scenario(pair: Pair) -> None:
        await ready(pair.fleets[0], 1, 100)
        await pair.fleets[1].register(agent_id(1), machine(1, "boot-2"), TESTER)
        await pair.submit(InventoryDelete(part_id(1), PAGES))
        await pair.submit(InventoryCreate(part_id(1), PAGES, InventorySpec(80)), at=1)
        assert await pair.offered(1) == 0
        with refused(Code.CAPACITY_EXCEEDED):
            await pair.submit(claim(1, part_id(1), **{PAGES: 1}))
        await pair.fleets[0].report(agent_id(1), report(1, 2, 100, "boot-2"), TESTER)
        assert await pair.offered(1) == 80

    play(url, scenario)


def test_a_reshape_while_the_machine_prepares(url: str) -> None:
    """It records what runs there, as much as `total` permits, and its totals are desired."""

    async def scenario(pair: Pair) -> None:
        fleet = pair.fleets[0]
        root = await given(pair, 1)
        await pair.submit(claim(1, root, VCPU=4))
        await fleet.register(agent_id(1), machine(1, "boot-2", root=root), TESTER)
        kept = {
            root: (await generation(pair, root), {"VCPU": InventorySpec(8)}),
            part_id(1): (await generation(pair, part_id(1)), {PAGES: InventorySpec(120)}),
        }
        wish = {root: {"VCPU": 4}, part_id(1): {PAGES: 110}}
        moved = ConsumerRequest(consumer_id(1), wish, "project", "user", "INSTANCE", 1)
        await pair.submit(Reshape(kept, [moved]), at=1)
        stored = await pair.pages(1)
        assert (stored.total, stored.used, capacity_of(stored)) == (120, 110, 0)
        assert (await managed(pair, 1)).desired == 120
        preparing = replace(report(1, 2, 50, "boot-2"), phase=Phase.PREPARING)
        await fleet.report(agent_id(1), preparing, TESTER)
        assert await pair.offered(1) == 0
        await fleet.report(agent_id(1), report(1, 3, 120, "boot-2"), TESTER)
        with refused(Code.CAPACITY_EXCEEDED):
            await pair.submit(claim(2, part_id(1), **{PAGES: 11}))
        await pair.submit(claim(2, part_id(1), **{PAGES: 10}))

    play(url, scenario)


def test_a_root_that_moves_keeps_its_machine(url: str) -> None:
    """Below a drained machine everything is closed, and opens when it leaves."""

    async def scenario(pair: Pair) -> None:
        await ready(pair.fleets[0], 1)
        root = await given(pair, 2)
        await agent_policy(pair.fleets[1], agent_id(1), Action.DRAIN, "", TESTER)
        above = ProviderId(agent_id(1))
        await pair.submit(ProviderUpdate(root, "name-2", True, above, True), at=1)
        assert await withheld(pair, part_id(2)) == "no_provision"
        assert await pair.offered(2) == 0
        await pair.submit(ProviderUpdate(root, "name-2", True, None, True))
        assert await withheld(pair, part_id(2)) is None
        assert await pair.offered(2) == 100

    play(url, scenario)


def test_machines_below_machines_fall_silent_together(url: str) -> None:
    """Each keeps its own reason: when the upper one returns, the lower one stays closed."""

    async def scenario(pair: Pair) -> None:
        fleet = pair.fleets[0]
        for n in (1, 2):
            await ready(fleet, n)
        below, above = ProviderId(agent_id(1)), ProviderId(agent_id(2))
        await pair.submit(ProviderUpdate(below, "host-1", True, above, True))
        await silent(pair)
        await pair.check()
        await fleet.alive(agent_id(2), BOOT, 1)
        assert await pair.offered(2) == 100
        assert (await withheld(pair, part_id(1)), await pair.offered(1)) == ("late", 0)

    play(url, scenario)


async def delete_tree(pair: Pair, root: ProviderId) -> None:
    """Delete a root and its part."""
    await pair.submit(ProviderDelete(part_id(1)))
    await pair.submit(ProviderDelete(root))


async def give_name_away(pair: Pair, root: ProviderId) -> None:
    """Delete a part, and give its name to another provider."""
    await pair.submit(ProviderDelete(part_id(1)))
    await pair.submit(ProviderCreate(provider_id(7), "name-1_numa0", root))


async def lengthen_name(pair: Pair, root: ProviderId) -> None:
    """Give the root a name that is too long for those of new parts."""
    await pair.submit(ProviderUpdate(root, "x" * 198))


@pytest.mark.parametrize("harm", [delete_tree, give_name_away, lengthen_name])
def test_what_clients_do_to_one_machine_harms_no_other(
    url: str, harm: Callable[[Pair, ProviderId], Awaitable[None]]
) -> None:
    """Silence is still found, of this machine and of others, and operators can end it."""

    async def scenario(pair: Pair) -> None:
        fleet = pair.fleets[0]
        root = await given(pair, 1)
        await ready(fleet, 2)
        await harm(pair, root)
        await silent(pair)
        for n in (1, 2):
            assert (await pair.agent(n)).liveness is Liveness.LATE
        assert await pair.offered(2) == 0
        await pair.fleets[1].group_defaults.put("default", {PAGES: Goal(amount=5)}, TESTER)
        await agent_put(fleet, agent_id(1), "rack", {"a": "b"}, None, TESTER)
        for action in Action.DRAIN, Action.RESUME, Action.EXPUNGE, Action.DECOMMISSION:
            await agent_policy(fleet, agent_id(1), action, "", TESTER)
        assert (await pair.agent(1)).state is State.DECOMMISSIONED

    play(url, scenario)


def test_a_deleted_part_returns_with_the_next_report(url: str) -> None:
    """As the machine has it; a root that others must create is asked for."""

    async def scenario(pair: Pair) -> None:
        fleet = pair.fleets[0]
        root = await given(pair, 1)
        await pair.submit(ProviderDelete(part_id(1)))
        await fleet.report(agent_id(1), report(1, 2, 90), TESTER)
        assert await pair.offered(1) == 90
        await delete_tree(pair, root)
        with refused(Code.PROVIDER_NOT_FOUND):
            await fleet.report(agent_id(1), report(1, 3, 80), TESTER)
        assert (await pair.agent(1)).report_generation == 2

    play(url, scenario)


def test_a_part_that_a_client_creates_again_sells_nothing_more(url: str) -> None:
    """Whatever it writes there, the next change of the agent limits it to what is there."""

    async def scenario(pair: Pair) -> None:
        fleet = pair.fleets[0]
        root = await given(pair, 1)
        await pair.submit(ProviderDelete(part_id(1)))
        await pair.submit(ProviderCreate(part_id(1), "other", root))
        await agent_policy(fleet, agent_id(1), Action.DRAIN, "", TESTER)
        await pair.submit(InventoriesReplace(part_id(1), 1, {PAGES: InventorySpec(900)}))
        await agent_policy(fleet, agent_id(1), Action.RESUME, "", TESTER)
        assert await pair.offered(1) == 100

    play(url, scenario)


def test_a_machine_whose_moved_part_is_used_does_not_end(url: str) -> None:
    """Its allocations count, although the part is in another tree."""

    async def scenario(pair: Pair) -> None:
        fleet, other = pair.fleets[0], await pair.provider(9, VCPU=8)
        await ready(fleet, 1)
        await pair.submit(claim(1, part_id(1), **{PAGES: 10}))
        move = ProviderUpdate(part_id(1), "moved", move=True, parent=other, free=True)
        await pair.submit(move, at=1)
        await agent_policy(fleet, agent_id(1), Action.EXPUNGE, "", TESTER)
        with refused(Code.HAS_ALLOCATIONS):
            await agent_policy(fleet, agent_id(1), Action.DECOMMISSION, "", TESTER)
        ended = await agent_policy(fleet, agent_id(1), Action.DECOMMISSION, "", TESTER, force=True)
        assert ended.state is State.DECOMMISSIONED

    play(url, scenario)


def test_a_class_that_agents_report_is_not_renamed(url: str) -> None:
    """They would report the old name again, so the same pages would be sold under both names."""

    async def scenario(pair: Pair) -> None:
        await given(pair, 1)
        with refused(Code.CLASS_MANAGED):
            await pair.submit(ClassRename(PAGES, "CUSTOM_B"))
        assert await pair.offered(1) == 100
        await pair.submit(ClassEnsure("CUSTOM_FREE"))
        await pair.submit(ClassRename("CUSTOM_FREE", "CUSTOM_OTHER"))

    play(url, scenario)
