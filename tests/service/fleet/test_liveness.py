"""Silent agents become late, then lost; signs of life write nothing; a cut network loses nobody."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Liveness
from moorage.core.fleet.policy import Action
from moorage.service.app import Service
from moorage.service.fleet.service import Fleet
from moorage.store.api import Unavailable
from moorage.store.open import open_engine
from tests.service.fleet.alone import play
from tests.service.fleet.machines import (
    BOOT,
    PAGES,
    agent_id,
    agent_policy,
    agent_put,
    group_wait,
    part_id,
    ready,
)
from tests.service.fleet.pair import Pair
from tests.service.fleet.pair import play as play_both
from tests.service.running import CLASSES, TESTER, TRAITS, ManualClock, Running, fatal, running
from tests.support import cluster

TTL = 10 * SECOND


async def passing(one: Running, microseconds: int, *beating: int) -> None:
    """Let time pass in steps of a second; these agents send signs of life, and all are watched."""
    fleet = one.service.fleet
    for second in range(microseconds // SECOND):
        one.clock.at += SECOND
        if second % 5 == 4:
            for n in beating:
                await fleet.alive(agent_id(n), BOOT, 1)
        await fleet.liveness_loop.look()


def liveness(fleet: Fleet, n: int) -> Liveness:
    """Return the liveness of the n-th agent."""
    agent = fleet.directory.get(agent_id(n))
    assert agent is not None
    return agent.liveness


def offered(service: Service, n: int) -> tuple[int | None, bool]:
    """Return what is offered of the n-th machine, and whether it is withheld."""
    record = service.index.catalog.record(part_id(n))
    assert record is not None
    inventory = record.inventories[PAGES]
    return inventory.offered, inventory.withheld


def test_silence_closes_and_a_sign_of_life_opens_again(tmp_path: Path) -> None:
    """After a TTL nothing more is offered; after three the agent is lost; a beat heals both."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        await ready(fleet, 1)
        assert offered(one.service, 1) == (100, False)
        await passing(one, TTL)
        assert liveness(fleet, 1) is Liveness.FRESH
        await passing(one, SECOND)
        assert liveness(fleet, 1) is Liveness.LATE
        assert offered(one.service, 1) == (0, True)
        await passing(one, 2 * TTL - SECOND)
        assert liveness(fleet, 1) is Liveness.LATE
        await passing(one, SECOND)
        assert liveness(fleet, 1) is Liveness.LOST
        await fleet.alive(agent_id(1), BOOT, 1)
        assert liveness(fleet, 1) is Liveness.FRESH
        assert offered(one.service, 1) == (100, False)

    play(tmp_path, scenario)


def test_signs_of_life_write_only_the_row_of_the_process(tmp_path: Path) -> None:
    """A thousand beats of ten agents: one transaction each five seconds, and no revision."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        for n in range(10):
            await ready(fleet, n)
        before, revision = one.engine.transactions, one.service.feed.position.revision
        for _ in range(100):
            one.clock.at += SECOND
            for n in range(10):
                await fleet.alive(agent_id(n), BOOT, 1)
            await fleet.liveness_loop.look()
        assert one.engine.transactions - before == 100 / 5
        assert one.service.feed.position.revision == revision

    play(tmp_path, scenario)


@pytest.mark.parametrize("down", [0, 3, 60, 86_400])
def test_a_restart_makes_nobody_late_early(tmp_path: Path, down: int) -> None:
    """However long the service was stopped, agents that return within their TTL stay fresh."""

    async def run() -> None:
        clock = ManualClock()
        async with running(tmp_path / "m.sqlite", clock=clock) as one:
            await one.service.fleet.liveness_loop.stop()
            await ready(one.service.fleet, 1)
            await passing(one, 9 * SECOND)
        clock.at += down * SECOND
        async with running(tmp_path / "m.sqlite", clock=clock) as one:
            await one.service.fleet.liveness_loop.stop()
            await passing(one, TTL - SECOND)
            assert liveness(one.service.fleet, 1) is Liveness.FRESH
            await passing(one, 3 * SECOND)
            assert liveness(one.service.fleet, 1) is Liveness.LATE

    asyncio.run(run())


@pytest.mark.parametrize(("killed", "set_back"), [(False, 0), (True, 0), (False, 5), (False, 30)])
def test_restarts_do_not_postpone_it_for_ever(tmp_path: Path, killed: bool, set_back: int) -> None:
    """With a restart every 8 s a stopped agent is late within 25 s.

    Also if the wall clock is set back, so that what the agent wrote last seems to be of the future.
    """

    async def run() -> None:
        clock = ManualClock()
        began = clock.at
        stopped_at = None
        for n in range(6):
            async with running(tmp_path / "m.sqlite", clock=clock) as one:
                fleet = one.service.fleet
                await fleet.liveness_loop.stop()
                if not n:
                    await ready(fleet, 1)
                    clock.jump -= set_back * SECOND
                for _ in range(7):
                    await passing(one, SECOND)
                    if liveness(fleet, 1) is Liveness.LATE:
                        stopped_at = stopped_at or clock.at
                if killed:
                    fleet.directory._agents.clear()  # so that nothing is written at the stop
            clock.at += SECOND
        assert stopped_at is not None
        assert stopped_at - began <= 25 * SECOND

    asyncio.run(run())


def test_a_cut_network_loses_nobody(tmp_path: Path) -> None:
    """If many agents of a group fall silent together, one event is noted, and none is lost."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        await fleet.group_defaults.put("rack", {}, TESTER)
        for n in range(10):
            await ready(fleet, n, group="rack")
        await passing(one, 5 * TTL, *range(6))
        states = [liveness(fleet, n) for n in range(10)]
        assert states == [Liveness.FRESH] * 6 + [Liveness.LATE] * 4
        rows, _ = await one.service.audit.page(None, 100)
        assert [row.target for row in rows if row.action == "group.suspect"] == ["rack"]
        group = fleet.directory.group("rack")
        assert group is not None
        assert group.suspect_since is not None
        for n in range(10):
            await fleet.alive(agent_id(n), BOOT, 1)
        await passing(one, SECOND)
        group = fleet.directory.group("rack")
        assert group is not None
        assert group.suspect_since is None
        assert {liveness(fleet, n) for n in range(10)} == {Liveness.FRESH}

    play(tmp_path, scenario)


def test_an_agent_that_changes_its_group_during_a_sweep_is_not_lost(tmp_path: Path) -> None:
    """Many members of the group that it comes to are silent, which the sweep has not counted."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        for n in range(10):
            await ready(fleet, n, group="rack")
        await ready(fleet, 20)
        await passing(one, 3 * TTL, *range(6))
        silent = fleet.directory.get(agent_id(20))
        assert silent is not None and silent.liveness is Liveness.LATE
        counts = fleet.liveness_loop._counts()
        await agent_put(fleet, agent_id(20), "rack", {}, None, TESTER)
        await fleet.liveness_loop.sweep([(silent, Liveness.LOST)], counts)
        assert liveness(fleet, 20) is Liveness.LATE
        await passing(one, SECOND, *range(6))
        assert liveness(fleet, 20) is Liveness.LATE
        group = fleet.directory.group("rack")
        assert group is not None and group.suspect_since is not None

    play(tmp_path, scenario)


def test_few_silent_agents_are_lost(tmp_path: Path) -> None:
    """A control: two of ten agents are lost after three TTLs."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        for n in range(10):
            await ready(fleet, n)
        await passing(one, 3 * TTL + SECOND, *range(8))
        assert [liveness(fleet, n) for n in range(8, 10)] == [Liveness.LOST] * 2

    play(tmp_path, scenario)


def test_an_operator_decides_about_a_suspect_group(tmp_path: Path) -> None:
    """`wait` keeps the group suspect although it could end; `confirm` declares the silent lost."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        for n in range(10):
            await ready(fleet, n)
        await passing(one, 4 * TTL, *range(6))
        await group_wait(fleet, "default", 600 * SECOND, TESTER)
        await passing(one, 5 * SECOND, *range(10))
        assert fleet.directory.groups()[0].suspect_since is not None
        await passing(one, 2 * TTL, *range(6))
        await fleet.group_confirm("default", TESTER)
        assert [liveness(fleet, n) for n in range(6, 10)] == [Liveness.LOST] * 4
        assert fleet.directory.groups()[0].suspect_since is None

    play(tmp_path, scenario)


def test_a_process_that_cannot_write_its_row_says_so(tmp_path: Path) -> None:
    """Others would not know what it hears: its agents must ask another process."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        await ready(fleet, 1)
        await passing(one, 5 * SECOND)
        one.clock.at += 11 * SECOND
        with pytest.raises(Error) as caught:
            await fleet.alive(agent_id(1), BOOT, 1)
        assert caught.value.code is Code.UNAVAILABLE
        await fleet.liveness_loop.look()
        await fleet.alive(agent_id(1), BOOT, 1)

    play(tmp_path, scenario)


def test_what_one_process_hears_the_other_knows() -> None:
    """On a shared database an agent stays fresh, whichever process it speaks to."""

    async def run() -> None:
        url, clock = cluster.fresh(), ManualClock()
        services = [
            await Service.start(open_engine(url), clock, CLASSES, TRAITS, on_fatal=fatal)
            for _ in range(2)
        ]
        try:
            one, other = services
            for service in services:
                await service.fleet.liveness_loop.stop()
            await ready(one.fleet, 1)
            for second in range(60):
                clock.at += SECOND
                if second % 5 == 4:
                    await other.fleet.alive(agent_id(1), BOOT, 1)
                for service in services:
                    await service.fleet.liveness_loop.look()
            assert liveness(one.fleet, 1) is Liveness.FRESH
            for _ in range(25):
                clock.at += SECOND
                for service in services:
                    await service.fleet.liveness_loop.look()
            await one.feed.caught_up()
            await other.feed.caught_up()
            assert {liveness(service.fleet, 1) for service in services} == {Liveness.LATE}
        finally:
            for service in services:
                await service.stop()

    asyncio.run(run())


@pytest.mark.parametrize("years", [-60, 60])
def test_a_process_with_another_wall_clock_makes_nobody_late(url: str, years: int) -> None:
    """It hears of a machine by the register that another process has stored, by another clock."""

    async def scenario(pair: Pair) -> None:
        pair.clock.jump = years * 365 * 86_400 * SECOND
        await ready(pair.fleets[0], 1)
        for _ in range(4):
            await pair.caught_up()
            await pair.fleets[1].liveness_loop.look()
            assert (await pair.agent(1)).liveness is Liveness.FRESH
            pair.clock.at += 2 * SECOND

    play_both(url, scenario)


def test_a_drain_ends_at_its_time(tmp_path: Path) -> None:
    """A machine that is drained for a minute is used again after it, which leaves an audit row."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        await ready(fleet, 1)
        until = Instant(one.clock.now() + 60 * SECOND)
        await agent_policy(fleet, agent_id(1), Action.DRAIN, "a new fan", TESTER, until=until)
        assert offered(one.service, 1) == (0, True)
        await passing(one, 59 * SECOND, 1)
        assert offered(one.service, 1) == (0, True)
        await passing(one, SECOND, 1)
        assert offered(one.service, 1) == (100, False)
        rows, _ = await one.service.audit.page(None, 1)
        assert [(row.action, row.who) for row in rows] == [("agent.resume", "moorage")]

    play(tmp_path, scenario)


@pytest.mark.parametrize("idle", [0, 21, 86_400])
def test_nothing_is_heard_in_the_future(tmp_path: Path, idle: int) -> None:
    """An agent that speaks right after a pause, or is the first of all, is late after two TTLs."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        one.clock.at += idle * SECOND
        await ready(fleet, 1)
        await passing(one, TTL)
        assert liveness(fleet, 1) is Liveness.FRESH
        await passing(one, TTL + SECOND)
        assert liveness(fleet, 1) is Liveness.LATE

    play(tmp_path, scenario)


def test_a_stop_without_the_database_ends(tmp_path: Path) -> None:
    """What was heard cannot be written then; the agents have their grace after the next start."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await ready(one.service.fleet, 1)
            one.engine.failures.extend([Unavailable("the disk is full")] * 9)
            await one.service.fleet.stop()
            one.engine.failures.clear()

    asyncio.run(run())


def test_many_fall_silent_at_once(tmp_path: Path) -> None:
    """A sweep loads the machines of all its agents at once, also those of the last one."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        agents = range(130)
        for n in agents:
            await ready(fleet, n)
        await passing(one, TTL + SECOND)
        assert {liveness(fleet, n) for n in agents} == {Liveness.LATE}
        assert {offered(one.service, n) for n in agents} == {(0, True)}

    play(tmp_path, scenario)
