"""Claims race what machines report and what operators do with them: never more than is offered."""

import asyncio
from itertools import count

import pytest

from moorage.core.errors import Code
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Agent, Goal, Policy, State
from moorage.core.fleet.policy import Action
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.capacity import capacity_of
from moorage.core.ledger.model import Inventory
from moorage.service.batch.ledger_share import LeaseAllocations
from moorage.service.ledger.allocation_cases import AllocationsDelete, AllocationsReplace
from moorage.service.ledger.provider_cases import ProviderCreate
from moorage.store.changelog import changes_load
from tests.service.fleet.machines import (
    PAGES,
    agent_desired,
    agent_id,
    agent_policy,
    machine,
    part_id,
    ready,
    report,
)
from tests.service.fleet.pair import ROUNDS, Pair, outcomes, play, refused
from tests.service.pools import ask, pool_put, spec
from tests.service.running import TESTER, claim, consumer_id, provider_id

CLAIMS = 8
EACH = 20
"""Pages of one claim."""

REFUSED = {Code.CAPACITY_EXCEEDED, Code.INVENTORY_MISSING}


async def claims(pair: Pair, numbers: range, n: int = 1) -> int:
    """Claim pages for consumers at the services in turn, at once; return how many got theirs."""
    found = await outcomes(
        *(pair.submit(claim(one, part_id(n), **{PAGES: EACH}), at=one % 2) for one in numbers)
    )
    assert all(answer is None or answer in REFUSED for answer in found)
    return found.count(None)


async def release(pair: Pair, numbers: range) -> None:
    """End what consumers hold."""
    for one in numbers:
        found = await outcomes(pair.submit(AllocationsDelete(consumer_id(one))))
        assert found[0] in (None, Code.ALLOCATIONS_NOT_FOUND)


async def oversold(pair: Pair, after: int) -> list[str]:
    """Return the commits since a revision that took pages which were not offered.

    What a commit itself has withdrawn may have been claimed earlier in its batch.
    """
    found: list[str] = []
    held: dict[tuple[ProviderId, str], Inventory | None] = {}
    tail = await pair.services[0].engine.read(changes_load(after))
    assert tail.place is None
    for batch in tail.batches:
        for pair_of, now in batch.ledger.inventories.items():
            before = held.get(pair_of)
            held[pair_of] = now
            if now is None or before is None or now.used <= before.used:
                continue
            if now.used > max(capacity_of(now), capacity_of(before)):
                found.append(f"revision {batch.revision}: {before} -> {now}")
    return found


def test_claims_race_reports(url: str) -> None:
    """At the commit of each claim, what is used is offered; afterwards nothing more is given."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1, 1000)
        began = await pair.revision()
        generation = count(2)
        partly = 0
        for n in range(ROUNDS):
            numbers = range(n * CLAIMS, (n + 1) * CLAIMS)
            await one.report(agent_id(1), report(1, next(generation), 1000), TESTER)
            less = EACH * (n % CLAIMS)
            first, (shrunk,), last = await asyncio.gather(
                claims(pair, numbers[: CLAIMS // 2]),
                outcomes(other.report(agent_id(1), report(1, next(generation), less), TESTER)),
                claims(pair, numbers[CLAIMS // 2 :]),
            )
            got = first + last
            stored = await pair.pages(1)
            assert stored.used == got * EACH
            assert capacity_of(stored) == less
            assert got * EACH >= less or got == CLAIMS
            partly += less < got * EACH
            assert await claims(pair, range(10_000, 10_004)) == 0
            assert isinstance(shrunk, Agent)
            assert await pair.agent(1) == shrunk
            await release(pair, numbers)
        assert await oversold(pair, began) == []
        assert partly, "no claim was faster than the report after it"

    play(url, scenario)


def test_a_claim_that_is_oversold_is_noticed(url: str) -> None:
    """A control: a claim of more than is offered, committed around the rule, is found."""

    async def scenario(pair: Pair) -> None:
        await ready(pair.fleets[0], 1, 100)
        began = await pair.revision()
        await pair.submit(claim(1, part_id(1), **{PAGES: 60}))
        await pair.submit(claim(2, part_id(1), **{PAGES: 40}))
        assert await oversold(pair, began) == []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("moorage.core.ledger.allocations.has_room", lambda *_: True)
            await pair.submit(claim(3, part_id(1), **{PAGES: 10}))
        assert len(await oversold(pair, began)) == 1

    play(url, scenario)


def test_less_than_is_used_clears_itself(url: str) -> None:
    """Nothing is evicted, swaps pass, claims do not, and released pages are offered again."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1, 100)
        assert await claims(pair, range(5)) == 5
        await other.report(agent_id(1), report(1, 2, 50), TESTER)
        stored = await pair.pages(1)
        assert (stored.used, capacity_of(stored), stored.total) == (100, 50, 100)
        gone = ConsumerRequest(consumer_id(0), {}, "project", "user", "INSTANCE", 1)
        wish = {part_id(1): {PAGES: EACH}}
        new = ConsumerRequest(consumer_id(9), wish, "project", "user", "INSTANCE", None)
        await pair.submit(AllocationsReplace([gone, new]), at=1)
        await release(pair, range(1, 3))
        assert await claims(pair, range(10, 12)) == 0
        await release(pair, range(3, 4))
        assert (await pair.pages(1)).used == 40
        with refused(Code.CAPACITY_EXCEEDED):
            await pair.submit(claim(20, part_id(1), **{PAGES: 11}))
        await pair.submit(claim(20, part_id(1), **{PAGES: 10}), at=1)

    play(url, scenario)


@pytest.mark.parametrize("what", ["boot", "drain", "expunge", "desired"])
def test_claims_race_what_closes_a_machine(url: str, what: str) -> None:
    """Once the request that closes it is answered, no claim passes at either service."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        began = await pair.revision()

        async def closed(n: int) -> None:
            if what == "boot":
                await other.register(agent_id(n), machine(n, "boot-2"), TESTER)
            elif what == "desired":
                spec = DesiredSpec(PAGES, goal=Goal(amount=0))
                await agent_desired(other, agent_id(n), spec, "", TESTER)
            else:
                await agent_policy(other, agent_id(n), Action(what), "", TESTER)
            assert await claims(pair, range(5_000, 5_004), n) == 0

        for n in range(ROUNDS):
            await ready(one, n, 1000)
            numbers = range(n * CLAIMS, (n + 1) * CLAIMS)
            got, _ = await asyncio.gather(claims(pair, numbers, n), closed(n))
            stored = await pair.inventory(n)
            assert (0 if stored is None else stored.used) == got * EACH
            assert stored is None or capacity_of(stored) == 0
        assert await oversold(pair, began) == []

    play(url, scenario)


def test_children_come_while_a_machine_is_closed(url: str) -> None:
    """Whichever is first: what is created below a closed root is closed."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        root = ProviderId(agent_id(1))
        for n in range(ROUNDS):
            action = (Action.DRAIN, Action.RESUME)[n % 2]
            child = provider_id(n)
            await outcomes(
                agent_policy(other, agent_id(1), action, "", TESTER),
                pair.submit(ProviderCreate(child, f"child-{n}", root)),
                pair.submit(ProviderCreate(provider_id(100 + n), f"more-{n}", root), at=1),
            )
            for service in pair.services:
                record = (await service.index.current()).record(child)
                assert record is not None
                assert (record.provider.withheld is None) == (action is Action.RESUME)

    play(url, scenario)


def test_a_machine_ends_while_claims_and_reports_arrive(url: str) -> None:
    """Expunged and decommissioned at one service: the other accepts nothing that comes later."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        for n in range(ROUNDS):
            await ready(one, n, 1000)
            numbers = range(n * CLAIMS, (n + 1) * CLAIMS)
            got, *found = await asyncio.gather(
                claims(pair, numbers, n),
                outcomes(
                    agent_policy(one, agent_id(n), Action.EXPUNGE, "", TESTER),
                    other.report(agent_id(n), report(n, 2, 900), TESTER),
                ),
            )
            assert all(isinstance(answer, Agent) for answer in found[0])
            ended, recorded, again = await outcomes(
                agent_policy(one, agent_id(n), Action.DECOMMISSION, "", TESTER),
                other.report(agent_id(n), report(n, 3, 800), TESTER),
                agent_policy(other, agent_id(n), Action.DECOMMISSION, "", TESTER, force=True),
            )
            assert ended is Code.HAS_ALLOCATIONS if got and isinstance(ended, Code) else ended
            assert recorded is Code.DECOMMISSIONED or isinstance(recorded, Agent)
            assert isinstance(again, Agent)
            agent = await pair.agent(n)
            assert (agent.state, agent.policy) == (State.DECOMMISSIONED, Policy.EXPUNGED)
            assert (await pair.pages(n)).used == got * EACH
            assert await pair.offered(n) == 0
            for fleet in pair.fleets:
                for sent in (
                    fleet.report(agent_id(n), report(n, 4, 700), TESTER),
                    fleet.register(agent_id(n), machine(n, "boot-9"), TESTER),
                    fleet.alive(agent_id(n), "boot-1", 3),
                ):
                    with refused(Code.DECOMMISSIONED):
                        await sent

    play(url, scenario)


def test_leases_wait_for_a_machine(url: str) -> None:
    """Tickets that need pages are granted when a report offers them, at either service."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1, 100)
        await one.register(agent_id(1), machine(1, "boot-2"), TESTER)
        await pool_put(pair.services[0].admission, "p", spec(100))
        leases = []
        for n in range(3):
            consumer: ConsumerId = consumer_id(n)
            wish = LeaseAllocations(
                consumer, {part_id(1): {PAGES: 40}}, "project", "user", "INSTANCE"
            )
            admission = pair.services[n % 2].admission
            view = await ask(admission, str(n), "p", allocations=wish)
            assert view.lease.state == "waiting"
            leases.append(view.lease.id)

        async def states() -> list[str]:
            queries = pair.services[0].admission.queries
            return [(await queries.lease(one)).lease.state for one in leases]

        for generation, pages, expected in ((2, 40, 1), (3, 100, 2)):
            await other.report(agent_id(1), report(1, generation, pages, "boot-2"), TESTER)
            async with asyncio.timeout(30):
                while (await states()).count("granted") < expected:
                    pass
            assert await states() == ["granted"] * expected + ["waiting"] * (3 - expected)
            places = (await other.queries.agent(agent_id(1))).places
            assert [place.amounts for place in places] == [{PAGES: 40}] * expected

    play(url, scenario)
