"""Agents at two services at once: the same agent, lost answers, waiters, audit rows."""

import asyncio

import pytest
from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Agent, Goal, Phase, Policy, Readiness
from moorage.core.fleet.policy import SERVER, Action
from moorage.core.fleet.starts import Reason
from moorage.service.clock import SystemClock
from moorage.service.ledger.allocation_cases import AllocationsDelete
from tests.service.batch.test_shared import HoldingEngine
from tests.service.fleet.machines import (
    BOOT,
    PAGES,
    agent_desired,
    agent_enroll,
    agent_id,
    agent_policy,
    agent_put,
    machine,
    part_id,
    ready,
    report,
)
from tests.service.fleet.pair import ROUNDS, Pair, outcomes, play, refused
from tests.service.running import TESTER, claim, consumer_id

WAIT = 30.0


async def forever() -> None:
    """A caller that stays."""
    await asyncio.Event().wait()


def test_one_of_two_creations_counts(url: str) -> None:
    """Enrolled at both at once, an agent exists once; numbers of agents stay unique."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        for n in range(ROUNDS):
            found = await outcomes(
                *(
                    agent_enroll(fleet, agent_id(n), f"group-{n}", {}, TESTER)
                    for fleet in (one, other)
                ),
                agent_put(one, agent_id(100 + n), f"group-{n}", {}, None, TESTER),
                agent_put(other, agent_id(200 + n), f"group-{n}", {}, None, TESTER),
            )
            assert sorted(isinstance(answer, Agent) for answer in found[:2]) == [False, True]
            assert Code.AGENT_EXISTS in found
        agents = [await pair.agent(base + n) for base in (0, 100, 200) for n in range(ROUNDS)]
        assert len({agent.number for agent in agents}) == 3 * ROUNDS

    play(url, scenario)


def test_the_same_register_at_both(url: str) -> None:
    """Both are answered with the same agent, and the boot is counted once."""

    async def scenario(pair: Pair) -> None:
        await ready(pair.fleets[0], 1)
        for n in range(ROUNDS):
            before = await pair.agent(1)
            spec = machine(1, f"boot-{n + 2}")
            one, other = await outcomes(
                *(fleet.register(agent_id(1), spec, TESTER) for fleet in pair.fleets)
            )
            assert one == other == await pair.agent(1)
            assert one.generation == before.generation + 1
            assert one.past_boots[-1] == before.boot_id
            assert await pair.offered(1) == 0

    play(url, scenario)


def test_two_boots_register_at_once(url: str) -> None:
    """One supersedes the other for ever: of a machine and its clone only one stays."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        for n in range(ROUNDS):
            boots = [f"boot-{n}-original", f"boot-{n}-clone"]
            await outcomes(
                one.register(agent_id(1), machine(1, boots[0]), TESTER),
                other.register(agent_id(1), machine(1, boots[1]), TESTER),
            )
            agent = await pair.agent(1)
            (superseded,) = {*boots} - {agent.boot_id}
            assert agent.past_boots[-1] == superseded
            for fleet in pair.fleets:
                with refused(Code.SUPERSEDED_BOOT):
                    await fleet.register(agent_id(1), machine(1, superseded), TESTER)
                with refused(Code.SUPERSEDED_BOOT):
                    await fleet.alive(agent_id(1), superseded, agent.report_generation)

    play(url, scenario)


def test_two_reports_of_one_generation(url: str) -> None:
    """Exactly one counts; an equal one is a repeat, a different one a conflict."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        for n in range(ROUNDS):
            pages = (50, 50) if n % 3 == 0 else (50, 70)
            sent = [report(1, n + 2, amount) for amount in pages]
            found = await outcomes(
                one.report(agent_id(1), sent[0], TESTER), other.report(agent_id(1), sent[1], TESTER)
            )
            assert (Code.REPORT_CONFLICT in found) == (pages[0] != pages[1])
            agent = await pair.agent(1)
            assert agent.report_generation == n + 2
            assert [answer for answer in found if isinstance(answer, Agent)][-1] == agent
            assert await pair.offered(1) == agent.parts[part_id(1)].classes[PAGES].actual

    play(url, scenario)


def test_a_boot_races_the_last_report_of_the_boot_before(url: str) -> None:
    """In either order nothing of the old boot is offered afterwards."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        for n in range(2, ROUNDS):
            old = (await pair.agent(1)).boot_id
            assert old is not None
            generation = (await pair.agent(1)).report_generation + 1
            found = await outcomes(
                one.register(agent_id(1), machine(1, f"boot-{n}"), TESTER),
                other.report(agent_id(1), report(1, generation, 100, old), TESTER),
            )
            assert isinstance(found[0], Agent)
            assert found[1] is Code.SUPERSEDED_BOOT or isinstance(found[1], Agent)
            agent = await pair.agent(1)
            assert (agent.boot_id, agent.readiness) == (f"boot-{n}", Readiness.PREPARING)
            assert await pair.offered(1) == 0

    play(url, scenario)


def test_what_is_desired_races_a_report(url: str) -> None:
    """Both count: the smaller of what is desired and what is there is offered."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        for n in range(ROUNDS):
            desired, there = 10 + 7 * n, 60 + n
            spec = DesiredSpec(PAGES, goal=Goal(amount=desired))
            found = await outcomes(
                agent_desired(one, agent_id(1), spec, "", TESTER),
                other.report(agent_id(1), report(1, n + 2, there), TESTER),
            )
            assert all(isinstance(answer, Agent) for answer in found)
            assert await pair.offered(1) == min(desired, there)

    play(url, scenario)


@pytest.mark.parametrize("restarts", [False, True])
def test_lost_answers(url: str, restarts: bool) -> None:
    """A repeat at the other service, or after a restart, is answered alike and writes nothing."""

    async def repeated(pair: Pair, kind: str) -> None:
        async def send(fleet_of: int) -> Agent:
            fleet = pair.fleets[fleet_of]
            if kind == "register":
                return await fleet.register(agent_id(1), machine(1), TESTER)
            return await fleet.report(agent_id(1), report(1, 1, 100), TESTER)

        first = await send(0)
        if restarts:
            await pair.end()
            await pair.start()
        before = await pair.revision()
        for at in (1, 0):
            assert await send(at) == first
        assert await pair.revision() == before

    async def scenario(pair: Pair) -> None:
        await agent_put(pair.fleets[0], agent_id(1), "default", {}, None, TESTER)
        await repeated(pair, "register")
        spec = DesiredSpec(PAGES, goal=Goal(amount=100))
        await agent_desired(pair.fleets[1], agent_id(1), spec, "", TESTER)
        await repeated(pair, "report")
        await repeated(pair, "register")
        assert await pair.offered(1) == 100

    play(url, scenario)


def test_a_report_wakes_those_who_wait_at_the_other_service(url: str) -> None:
    """Starts are answered in the order of the places, wherever the report arrives."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        for n in (1, 2):
            await pair.submit(claim(n, part_id(1), **{PAGES: 40}), at=n % 2)
        await one.register(agent_id(1), machine(1, "boot-2"), TESTER)
        waiting = [
            asyncio.create_task(
                fleet.may_start(agent_id(1), "boot-2", consumer_id(n), WAIT, forever)
            )
            for n, fleet in ((1, other), (2, other), (2, one))
        ]
        half = replace(report(1, 2, 50, "boot-2"), phase=Phase.DONE)
        await one.report(agent_id(1), half, TESTER)
        assert (await waiting[0]).reason is Reason.THERE
        assert not waiting[1].done()
        await one.report(agent_id(1), report(1, 3, 100, "boot-2"), TESTER)
        assert [(await one).may_start for one in waiting] == [True] * 3

    play(url, scenario)


def test_a_start_is_decided_by_one_moment(url: str) -> None:
    """What is there and who is ahead are read together: pages that shrink first do not count."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1, 130)
        for n in (1, 2):
            await pair.submit(claim(n, part_id(1), **{PAGES: 50 + 10 * n}))
        await one.report(agent_id(1), report(1, 2, 100), TESTER)
        engine = HoldingEngine(pair.services[1].engine)
        engine.hold("read")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(other.queries, "_engine", engine)
            asked = asyncio.create_task(
                other.may_start(agent_id(1), BOOT, consumer_id(2), 0.0, forever)
            )
            async with asyncio.timeout(WAIT):
                await engine.reached["read"].wait()
            await one.report(agent_id(1), report(1, 3, 60), TESTER)
            await pair.submit(AllocationsDelete(consumer_id(1)))
            engine.go["read"].set()
            assert (await asked).reason is Reason.NOT_THERE

    play(url, scenario)


def test_another_boot_ends_a_wait_at_the_other_service(url: str) -> None:
    """What was to start in the boot before must not start."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        await pair.submit(claim(1, part_id(1), **{PAGES: 40}))
        await one.register(agent_id(1), machine(1, "boot-2"), TESTER)
        waiting = asyncio.create_task(
            other.may_start(agent_id(1), "boot-2", consumer_id(1), WAIT, forever)
        )
        await one.register(agent_id(1), machine(1, "boot-3"), TESTER)
        with refused(Code.SUPERSEDED_BOOT):
            await waiting

    play(url, scenario)


def test_a_place_that_is_released_ends_a_wait(url: str) -> None:
    """Without a place nothing starts, although no report has arrived: it is looked up again."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        await pair.submit(claim(1, part_id(1), **{PAGES: 40}))
        await one.register(agent_id(1), machine(1, "boot-2"), TESTER)
        waiting = asyncio.create_task(
            other.may_start(agent_id(1), "boot-2", consumer_id(1), WAIT, forever)
        )
        await pair.submit(AllocationsDelete(consumer_id(1)))
        with refused(Code.PLACE_NOT_FOUND):
            await waiting

    play(url, scenario)


def test_audit_rows(url: str) -> None:
    """One for each request of an operator at either service, repeats included; none of machines."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.fleets
        await ready(one, 1)
        for fleet in (one, other):
            for _ in range(2):
                await agent_policy(fleet, agent_id(1), Action.DRAIN, "fans", TESTER)
        await outcomes(
            *(agent_policy(fleet, agent_id(1), Action.RESUME, "", TESTER) for fleet in pair.fleets)
        )
        await outcomes(
            *(agent_policy(fleet, agent_id(1), Action.EXPUNGE, "", TESTER) for fleet in pair.fleets)
        )
        with refused(Code.POLICY_FINAL):
            await agent_policy(other, agent_id(1), Action.RESUME, "", TESTER)
        await agent_policy(other, agent_id(1), Action.DECOMMISSION, "", TESTER)
        assert await pair.actions(agent_id(1)) == [
            "agent.create",
            "agent.desired",
            *["agent.drain"] * 4,
            *["agent.resume"] * 2,
            *["agent.expunge"] * 2,
            "agent.decommission",
        ]

    play(url, scenario)


def test_a_drain_ends_while_nothing_runs(url: str) -> None:
    """The machine is used again soon after the next start, once, with one audit row."""

    async def scenario(pair: Pair) -> None:
        fleet = pair.fleets[0]
        pair.clock.at = SystemClock().now()  # PostgreSQL has its own time
        await ready(fleet, 1)
        assert await pair.offered(1) == 100
        pair.clock.at = SystemClock().now()
        until = Instant(pair.clock.now() + SECOND)
        await agent_policy(fleet, agent_id(1), Action.DRAIN, "fans", TESTER, until=until)
        assert await pair.offered(1) == 0
        await pair.end()
        await pair.start()
        agent = await pair.agent(1)
        assert (agent.policy, agent.policy_until) == (Policy.NO_PROVISION, until)
        pair.clock.at += SECOND
        async with asyncio.timeout(WAIT):
            while (await pair.agent(1)).policy is Policy.NO_PROVISION:
                await asyncio.gather(*(fleet.liveness_loop.look() for fleet in pair.fleets))
        agent = await pair.agent(1)
        assert (agent.policy, agent.policy_by) == (Policy.IN_SERVICE, SERVER)
        assert agent.boot_id == BOOT
        assert await pair.offered(1) == 100
        assert (await pair.actions(agent_id(1)))[-2:] == ["agent.drain", "agent.resume"]

    play(url, scenario)
