"""A governor starts what nodes wish for, never above the limit, and each wish once."""

import asyncio
from pathlib import Path

import pytest

from moorage.integrations.ironic.governor import Governor
from moorage.integrations.ironic.rules import NodeRule, Rules
from moorage.integrations.ironic.wishes import WANT
from moorage.integrations.provisioning import unit_release, work_steps
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.integrations.ironic.world import DEPLOY_SECONDS, POOL, World, played, until, world
from tests.support.ironic_double.faults import Fault


async def carried_out(it: World, governor: Governor, nodes: int, limit: int) -> None:
    """Let time pass until all nodes have been deployed."""
    for wave in range(limit, nodes + limit, limit):
        most = min(wave, nodes)
        await it.started(most, governor.tick)
        await it.double.advance(DEPLOY_SECONDS)
    await until(lambda: not it.leases(), governor.tick)
    assert not any(WANT in it.extra(number) for number in range(1, nodes + 1))
    assert it.double.fleet.busiest <= limit
    assert sorted(it.entered("active")) == sorted(f"node-{n}" for n in range(1, nodes + 1))


@played(10, 3)
async def test_never_above_the_limit(it: World) -> None:
    """Of ten nodes at most three work at once, and each is deployed once."""
    async with it.governor() as governor:
        it.wish(*range(1, 11))
        await carried_out(it, governor, 10, 3)
    assert it.double.fleet.busiest == 3
    assert {lease.outcome for lease in it.leases("ended")} == {"ok"}


@played(9, 3)
async def test_two_governors(it: World) -> None:
    """Two governors send each request once, and keep the limit."""
    async with it.governor() as one, it.governor() as other:
        it.wish(*range(1, 10))

        async def both() -> None:
            await one.tick()
            await other.tick()

        for wave in (3, 6, 9):
            await it.started(wave, both)
            await it.double.advance(DEPLOY_SECONDS)
        await until(lambda: not it.leases(), both)
    assert it.double.fleet.busiest == 3
    assert it.double.counts["provision"] == 9


@played(6, 2)
async def test_foreign_work_counts(it: World) -> None:
    """Nodes that others have started get units above the limit; nothing starts until it is kept."""
    for number in (1, 2, 3):
        it.double.fleet.ask(it.node(number), "deploy", [])
    it.wish(4, 5, 6)
    async with it.governor() as governor:
        assert await governor.tick()
        pool = it.operator.pool(POOL)
        assert (pool.occupied, pool.over) == (3, True)
        await until(lambda: it.operator.pool(POOL).waiting == 3, governor.tick)
        assert len(it.entered("deploying")) == 3
        await it.double.advance(DEPLOY_SECONDS)
        await it.started(5, governor.tick)
        await it.double.advance(DEPLOY_SECONDS)
        await it.started(6, governor.tick)
        await it.double.advance(DEPLOY_SECONDS)
        await until(lambda: not it.leases(), governor.tick)


@played(3, 1)
async def test_waiting_nodes_say_why(it: World) -> None:
    """A node that waits has its place and the reason in `extra.moorage`, and nothing else."""
    it.wish(1, 2)
    before = dict(it.node(3).members)
    async with it.governor() as governor:
        await it.started(1, governor.tick)
        second = it.node(1) if it.node(2).state == "deploying" else it.node(2)
        await until(lambda: "moorage" in second.members["extra"], governor.tick)
        note = second.members["extra"]["moorage"]["waiting"]
        assert (note["pool"], note["place"]) == (POOL, 1)
        assert "1 of 1" in note["reason"] or note["reason"]
        patches = it.double.counts["patch"]
        for _ in range(5):
            await governor.tick()
        assert it.double.counts["patch"] == patches
        await it.double.advance(DEPLOY_SECONDS)
        await until(lambda: second.state == "deploying", governor.tick)
        await it.double.advance(DEPLOY_SECONDS)
        await until(lambda: "moorage" not in second.members["extra"], governor.tick)
    assert it.node(3).members == before


@played(4, 1)
async def test_nodes_that_change_while_they_wait(it: World) -> None:
    """One is deleted, one renamed, one locked: the others go on, and the lock holds up only one."""
    it.wish(1, 2, 3, 4)
    async with it.governor() as governor:
        await it.started(1, governor.tick)
        waiting = [number for number in range(1, 5) if it.node(number).state == "available"]
        gone, renamed, locked = waiting
        it.double.fleet.remove(it.node(gone))
        it.node(renamed).members["name"] = "other"
        it.double.fleet.lock(f"node-{locked}")
        await it.double.advance(DEPLOY_SECONDS)
        await until(lambda: "other" in it.entered("deploying"), governor.tick)
        await it.double.advance(DEPLOY_SECONDS)
        await until(lambda: not it.leases(), governor.tick)
        await until(lambda: it.operator.pool(POOL).waiting == 1, governor.tick)
        it.node(locked).lock = None
        await it.started(3, governor.tick)


@played(4, 2)
async def test_ironic_is_away(it: World) -> None:
    """While Ironic answers 503 nothing is released or started; afterwards it goes on."""
    it.wish(1, 2, 3, 4)
    async with it.governor() as governor:
        await it.started(2, governor.tick)
        await until(
            lambda: not any((lease.record or {})["sent"] for lease in it.leases()), governor.tick
        )
        it.double.outage(600.0)
        for _ in range(10):
            assert not await governor.tick()
            await it.double.advance(59.0)
        assert (len(it.leases()), len(it.entered("deploying"))) == (2, 2)
        assert it.operator.pool(POOL).waiting == 2
        await it.double.advance(10.0)
        await it.started(4, governor.tick)
    assert it.double.fleet.busiest == 2


@played(3, 1, ttl=1.0)
async def test_nobody_governs(it: World) -> None:
    """Leases that nobody renews are shown as unheard, occupy their units, and are taken over."""
    it.wish(1, 2)
    async with it.governor() as governor:
        await it.started(1, governor.tick)

    async def look() -> None:
        it.operator.pool(POOL)

    await until(lambda: it.operator.pool(POOL).unheard == 1, look)
    assert it.operator.pool(POOL).occupied == 1
    async with it.governor() as governor:
        await until(lambda: it.operator.pool(POOL).unheard == 0, governor.tick)
        assert len(it.entered("deploying")) == 1


@played(4, 1)
async def test_short_work(it: World) -> None:
    """Work that is never seen busy gives its unit back, and each wish is carried out once."""
    it.double.fleet.seconds["deploying"] = 0.0
    it.wish(1, 2, 3, 4)
    async with it.governor() as governor:
        await until(lambda: len(it.entered("active")) == 4 and not it.leases(), governor.tick)
    assert it.double.fleet.busiest == 1
    assert it.double.counts["provision"] == 4


@played(2, 1)
async def test_cleaning_after_a_deletion(it: World) -> None:
    """A tear-down of a wish waits for its unit, and has it until the node is clean."""
    for number in (1, 2):
        it.node(number).state = "active"
    it.wish(1, 2, target="deleted")
    async with it.governor() as governor:
        for done in (1, 2):
            while len(it.entered("deleting")) < done:
                await governor.tick()
            assert it.operator.pool(POOL).occupied == 1
            await it.double.advance(60.0)
            assert len(it.entered("cleaning")) == done
            for _ in range(3):
                await governor.tick()
            assert it.double.counts["provision"] == done, "the other one waits for its unit"
            assert it.operator.pool(POOL).occupied == 1
            await it.double.advance(60.0)
        await until(lambda: not it.leases(), governor.tick)
    assert it.double.fleet.busiest == 1


@played(1, 1)
async def test_a_wish_that_can_be_repeated_is_carried_out_once(it: World) -> None:
    """`rebuild` leads to the state in which the node was; it is not sent again."""
    it.node(1).state = "active"
    it.wish(1, target="rebuild")
    async with it.governor() as governor:
        await it.started(1, governor.tick)
        await it.double.advance(DEPLOY_SECONDS)
        await until(lambda: not it.leases() and WANT not in it.extra(1), governor.tick)
        for _ in range(3):
            await governor.tick()
    assert it.double.counts["provision"] == 1


@played(2, 1)
async def test_refused_requests(it: World) -> None:
    """What Ironic refuses gives its unit to the next node, and the node says why."""
    it.double.faults.pending.append(Fault("provision", work="never", answer=400))
    it.wish(1, 2)
    async with it.governor() as governor:
        await it.started(1, governor.tick)
        other = next(n for n in (1, 2) if it.node(n).state == "available")
        await until(lambda: "moorage" in it.extra(other), governor.tick)
        assert "was refused: " in it.extra(other)["moorage"]["waiting"]["reason"]


@played(1, 1)
async def test_a_refusal_while_a_pass_looks(it: World) -> None:
    """A node whose refusal is newer than what a pass has seen is not asked for again at once."""
    it.double.faults.pending.append(Fault("provision", work="never", answer=400, wait=10.0))
    it.wish(1)

    async def look() -> None:
        await asyncio.to_thread(it.operator.pool, POOL)

    async with it.governor() as governor:
        await until(lambda: it.double.counts["provision"] == 1, governor.tick)
        it.double.faults.pending.append(Fault("list", wait=20.0))
        lists = it.double.counts["list"]
        passing = asyncio.create_task(governor.tick())
        await until(lambda: it.double.counts["list"] > lists, look)
        await it.double.advance(10.0)
        await until(lambda: not it.leases(), look)
        await it.double.advance(10.0)
        assert await passing
        for _ in range(5):
            assert await governor.tick()
        assert it.double.counts["provision"] == 1
        assert "was refused: " in it.extra(1)["moorage"]["waiting"]["reason"]


@played(2, 1)
async def test_wishes_that_make_no_sense(it: World) -> None:
    """A wish with an unknown target starts nothing, and the node says why."""
    it.wish(1, target="fly")
    async with it.governor() as governor:
        await until(lambda: "moorage" in it.extra(1), governor.tick)
        assert "target" in it.extra(1)["moorage"]["waiting"]["reason"]
    assert it.double.counts["provision"] == 0


def test_a_request_that_waits_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a request is under way its last step is recent, so its unit is not released."""
    monkeypatch.setattr(work_steps, "AGAIN_SECONDS", 0.05)

    async def play(it: World) -> None:
        it.double.faults.pending.append(Fault("provision", wait=500.0, work="last"))
        it.wish(1)
        async with it.governor() as governor:
            await until(lambda: it.double.counts["provision"] == 1, governor.tick)
            await until(lambda: it.leases()[0].record_version >= 4, governor.tick)
            record = it.leases()[0].record
            assert record is not None
            assert len(record["sent"]) == 1
            await it.double.advance(500.0)
            await it.started(1, governor.tick)
            await it.double.advance(DEPLOY_SECONDS)
            await until(lambda: not it.leases(), governor.tick)

    async def run() -> None:
        async with world(tmp_path, 1, 1) as it:
            await play(it)

    asyncio.run(run())


def test_the_grace_is_longer_than_a_request_of_ironic() -> None:
    """Ironic's RPC may deliver a request for 60 seconds."""
    assert unit_release.WIRE_GRACE_SECONDS > 60.0


@played(3, 3)
async def test_wishes_of_projects(it: World) -> None:
    """Who may write `extra` is not who may deploy: such wishes need an option."""
    it.node(1).members["owner"] = "a-project"
    it.node(2).members["lessee"] = "a-project"
    it.wish(1, 2, 3)
    async with it.governor() as governor:
        await it.started(1, governor.tick)
        for _ in range(3):
            await governor.tick()
        assert it.entered("deploying") == ["node-3"]
        assert "lessee" in it.extra(1)["moorage"]["waiting"]["reason"]
    async with it.governor(project_wishes=True) as governor:
        await it.started(3, governor.tick)


@played(3, 1)
async def test_nodes_that_cannot_be_counted_move_nobody_back(it: World) -> None:
    """While a node works that cannot be counted, those that wait keep their places."""

    def places() -> list[str]:
        return [lease.id for lease in it.leases("waiting")]

    rules = NodeRule(pool=POOL), NodeRule(pool="deploy/rack-{properties.rack}")
    it.rules = Rules(rules=rules)
    needs = [NeedWanted(pool=POOL, units=1)]
    it.operator.ask(LeaseWanted(needs=needs, key="other"))
    it.operator.pool_put("deploy/rack-1", PoolWanted(limit=1, expire="keep"))
    for number, rack in ((1, 1), (2, 1), (3, 9)):
        it.node(number).members["properties"] = {"rack": str(rack)}
    it.wish(1, 2)
    async with it.governor() as governor:
        await until(lambda: len(places()) == 2, governor.tick)
        before = places()
        it.double.fleet.ask(it.node(3), "deploy", [])
        await until(lambda: governor.metrics.picture.failed == 1, governor.tick)
        for _ in range(5):
            assert await governor.tick()
        assert places() == before
