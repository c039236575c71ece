"""Tear-downs that wishes and rollouts start wait for units like all their work."""

import pytest

from moorage.integrations.ironic.rollout import Limits, Phase, Rollout
from moorage.integrations.provisioning.hosts import ADOPTED
from tests.integrations.ironic.world import DEPLOY_SECONDS, POOL, World, played, until

LIMIT, NODES = 2, 6
ALL = range(1, NODES + 1)
NAMES = [f"node-{number}" for number in ALL]


def deployed(it: World) -> None:
    """Make all nodes active."""
    for number in ALL:
        it.node(number).state = "active"


async def rolled_out(it: World, verb: str) -> None:
    """Play a wave that may work on all nodes at once."""
    async with it.host_leases() as (host_leases, nodes):
        wave = Rollout(host_leases, nodes, it.rules, verb, Limits(NODES, 0))
        await wave.prepare(NAMES, None)

        async def on() -> None:
            if not (await wave.tick()).counts[Phase.WORKING] or wave._line.is_sending:
                return
            await it.double.advance(DEPLOY_SECONDS)

        await until(lambda: it.entered("available") == [*it.entered("deleting")] == NAMES, on)
        report = await wave.report()
    assert it.double.fleet.busiest == LIMIT, it.double.busy_history
    assert not report.failed


@played(NODES, LIMIT)
async def test_rollout(it: World) -> None:
    """A wave keeps the limit of the pool, whatever its own limit is."""
    deployed(it)
    await rolled_out(it, "deleted")


@pytest.mark.parametrize("target", ["deleted", "undeploy"])
def test_wishes(target: str, tmp_path: object) -> None:
    """Wishes keep it, by each name of a tear-down, and each is carried out once."""

    @played(NODES, LIMIT)
    async def play(it: World) -> None:
        deployed(it)
        it.wish(*ALL, target=target)
        async with it.governor() as governor:

            async def on() -> None:
                await governor.tick()
                if len(it.double.fleet.busy) == LIMIT:
                    await it.double.advance(DEPLOY_SECONDS)

            await until(lambda: sorted(it.entered("available")) == NAMES, on)
        assert it.double.fleet.busiest == LIMIT
        assert sorted(it.entered("deleting")) == NAMES

    play(tmp_path)  # type: ignore[arg-type] # what pytest gives is a path


@played(NODES, LIMIT)
async def test_of_others_are_counted(it: World) -> None:
    """Tear-downs of clients exceed the limit, and are counted; a wish waits until it is kept."""
    deployed(it)
    for number in (1, 2, 3):
        it.double.fleet.ask(it.node(number), "delete", [])
    it.wish(4, target="deleted")
    async with it.governor() as governor:
        await until(lambda: it.operator.pool(POOL).waiting == 1, governor.tick)
        assert it.operator.pool(POOL).occupied == 3
        assert {lease.key.rpartition("/")[2] for lease in it.leases()} == {ADOPTED}
        assert it.node(4).state == "active"
        await it.double.advance(DEPLOY_SECONDS)
        await until(lambda: it.node(4).state == "deleting", governor.tick)
    assert it.double.fleet.busiest == 3, "this would prove nothing"
