"""The next agent of a machine, and agents that want the machine of another one."""

import asyncio
from uuid import uuid4

import pytest
from msgspec.structs import replace

from moorage.core.errors import Code, Error
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Agent, Goal, MachineFacts
from moorage.core.fleet.policy import Action
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.ids import ProviderId
from moorage.core.limits import NAME_LENGTH_MAX
from moorage.service.ledger.provider_cases import ProviderCreate, ProviderDelete
from tests.service.fleet.machines import (
    PAGES,
    agent_desired,
    agent_enroll,
    agent_id,
    agent_policy,
    agent_put,
    machine,
    part_id,
    report,
)
from tests.service.fleet.pair import ROUNDS, Pair, play, refused
from tests.service.running import TESTER, claim

GIVEN, CREATED = "given", "created"
HOSTNAMES = ("rack-7", "x" * (NAME_LENGTH_MAX - len("_numa0")))


def described(n: int, root: str, hostname: str) -> RegisterSpec:
    """What the n-th agent of the same machine declares."""
    given = ProviderId(f"{99:08d}-cccc-4ccc-8ccc-cccccccccccc") if root == GIVEN else None
    return replace(machine(n, f"boot-{n}", root=given), facts=MachineFacts(hostname))


async def offering(pair: Pair, n: int, spec: RegisterSpec) -> None:
    """Let the n-th agent offer 100 pages."""
    fleet = pair.fleets[n % 2]
    await agent_put(fleet, agent_id(n), "default", {}, None, TESTER, spec.root)
    await fleet.register(agent_id(n), spec, TESTER)
    wanted = DesiredSpec(PAGES, goal=Goal(amount=100))
    await agent_desired(fleet, agent_id(n), wanted, "", TESTER)
    await fleet.report(agent_id(n), report(n, 1, 100, spec.boot_id), TESTER)


async def end(pair: Pair, n: int, *, force: bool = False) -> None:
    """Decommission the n-th agent."""
    fleet = pair.fleets[0]
    await agent_policy(fleet, agent_id(n), Action.EXPUNGE, "replaced", TESTER)
    await agent_policy(fleet, agent_id(n), Action.DECOMMISSION, "replaced", TESTER, force=force)


async def names(pair: Pair, uuids: list[ProviderId]) -> list[str]:
    """Return the names of these providers."""
    index = await pair.services[0].index.current()
    records = [index.record(uuid) for uuid in uuids]
    return [record.provider.name for record in records if record is not None]


@pytest.mark.parametrize("hostname", HOSTNAMES, ids=["short", "longest"])
@pytest.mark.parametrize("root", [GIVEN, CREATED])
def test_the_next_agent_gets_the_names(url: str, root: str, hostname: str) -> None:
    """It registers under the same hostname; providers of the first say that they are former."""

    async def scenario(pair: Pair) -> None:
        specs = [described(n, root, hostname) for n in (1, 2, 3)]
        if specs[0].root is not None:
            await pair.submit(ProviderCreate(specs[0].root, hostname))
        for n, spec in enumerate(specs, start=1):
            await offering(pair, n, spec)
            assert await pair.offered(n) == 100
            assert await names(pair, [part_id(n)]) == [f"{hostname}_numa0"]
            await end(pair, n)
            assert await pair.offered(n) == 0
            (former,) = await names(pair, [part_id(n)])
            assert former.endswith(f"_decommissioned_{part_id(n)}")
            assert former.startswith(hostname[:100])
        if specs[0].root is not None:
            assert await names(pair, [specs[0].root]) == [hostname]

    play(url, scenario)


def test_allocations_stay_on_the_former_part(url: str) -> None:
    """A forced end moves nothing: the next agent's part is empty."""

    async def scenario(pair: Pair) -> None:
        await offering(pair, 1, described(1, CREATED, "rack-7"))
        await pair.submit(claim(1, part_id(1), **{PAGES: 40}))
        with refused(Code.HAS_ALLOCATIONS):
            await end(pair, 1)
        await end(pair, 1, force=True)
        await offering(pair, 2, described(2, CREATED, "rack-7"))
        assert ((await pair.pages(1)).used, (await pair.pages(2)).used) == (40, 0)
        assert (await pair.offered(1), await pair.offered(2)) == (0, 100)

    play(url, scenario)


def test_a_name_that_is_taken_is_no_obstacle(url: str) -> None:
    """If a client has used the name of a former part, the part keeps its own."""

    async def scenario(pair: Pair) -> None:
        await offering(pair, 1, described(1, CREATED, "rack-7"))
        taken = f"rack-7_numa0_decommissioned_{part_id(1)}"
        await pair.submit(ProviderCreate(part_id(50), taken))
        await end(pair, 1)
        assert await names(pair, [part_id(1)]) == ["rack-7_numa0"]

    play(url, scenario)


async def provider(pair: Pair, parent: ProviderId | None = None) -> ProviderId:
    """Create a provider as Nova does."""
    uuid = ProviderId(str(uuid4()))
    await pair.submit(ProviderCreate(uuid, uuid, parent))
    return uuid


async def existing(pair: Pair, *uuids: ProviderId) -> list[ProviderId]:
    """Return those of these providers that exist."""
    catalog = await pair.services[0].index.current()
    return [uuid for uuid in uuids if catalog.record(uuid) is not None]


@pytest.mark.parametrize("is_above", [True, False])
def test_two_agents_want_one_tree(url: str, is_above: bool) -> None:
    """At the same time, by two processes: one gets its root, the other does not."""

    async def scenario(pair: Pair) -> None:
        for number in range(ROUNDS // 2):
            top = await provider(pair)
            below = await provider(pair, top)
            first, second = 10 * number + 1, 10 * number + 2
            wanted = {first: top, second: below if is_above else top}
            for n, root in wanted.items():
                await agent_put(pair.fleets[0], agent_id(n), "default", {}, None, TESTER, root)

            async def register(n: int, root: ProviderId) -> Agent | Error:
                try:
                    return await pair.fleets[n % 2].register(
                        agent_id(n), machine(n, root=root), TESTER
                    )
                except Error as error:
                    return error

            answers = await asyncio.gather(*(register(n, root) for n, root in wanted.items()))
            codes = [one.code for one in answers if isinstance(one, Error)]
            assert codes == [Code.ROOT_TAKEN]

    play(url, scenario)


def test_an_enrolled_agent_takes_no_names(url: str) -> None:
    """Until an operator accepts it, on any process; then its providers are there at once."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        uuid, root = agent_id(1), ProviderId(agent_id(1))
        await agent_enroll(one, uuid, "default", {}, TESTER)
        await other.register(uuid, machine(1), TESTER)
        await one.report(uuid, report(1, 1, 10), TESTER)
        names = {uuid: ProviderId(str(uuid4())) for uuid in ("host-1", "host-1_numa0")}
        assert not await existing(pair, root, part_id(1))
        for name, taken in names.items():
            await pair.submit(ProviderCreate(taken, name))
        with refused(Code.DUPLICATE_PROVIDER):
            await agent_policy(other, uuid, Action.RESUME, "", TESTER)
        for taken in names.values():
            await pair.submit(ProviderDelete(taken))
        await agent_policy(other, uuid, Action.RESUME, "", TESTER)
        assert len(await existing(pair, root, part_id(1))) == 2

    play(url, scenario)


def test_a_root_that_nova_has_created_meanwhile(url: str) -> None:
    """The agent is accepted, and registers with it; it stays open."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        uuid, root = agent_id(1), ProviderId(agent_id(1))
        await agent_enroll(one, uuid, "default", {}, TESTER)
        await other.register(uuid, machine(1), TESTER)
        await pair.submit(ProviderCreate(root, "host-1"))
        await agent_policy(other, uuid, Action.RESUME, "", TESTER)
        with refused(Code.ROOT_TAKEN):
            await one.register(uuid, machine(1), TESTER)
        after = await one.register(uuid, machine(1, root=root), TESTER)
        assert (after.root, after.owns_root) == (root, False)
        assert len(await existing(pair, root, part_id(1))) == 2

    play(url, scenario)
