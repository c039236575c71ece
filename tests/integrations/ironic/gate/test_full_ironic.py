"""Ironic refuses because it is full: the unit is free at once, and the place in line is kept."""

from pathlib import Path

import pytest

from tests.integrations.ironic.gate.test_limit import play
from tests.integrations.ironic.gate.world import OPERATOR, World
from tests.integrations.ironic.world import POOL, played, until
from tests.integrations.ironic.world import World as Governed
from tests.support.ironic_double.faults import NO_WORKER, PROXY, Fault
from tests.support.ironic_double.server import IronicDouble


def test_ironics_own_limit(tmp_path: Path) -> None:
    """What Ironic's limit refuses gives its unit back; another verb of the pool gets it at once."""

    async def act(world: World) -> None:
        gate = await world.gate()
        assert (await world.ask(gate.url, "node-1", "active")).status == 202
        got = await world.ask(gate.url, "node-2", "active")
        assert (got.status, "concurrent action limit" in got.fault) == (503, True)
        assert [lease.labels["holder"] for lease in await world.leases()] == ["node-1"]
        assert [lease.labels["holder"] for lease in await world.leases("waiting")] == ["node-2"]
        world.double.fleet.find("node-3").state = "manageable"
        assert (await world.ask(gate.url, "node-3", "inspect", OPERATOR)).status == 202

    play(tmp_path, IronicDouble(3, limit=1), 2, act)


@pytest.mark.parametrize(("answer", "left"), [(NO_WORKER, 0), (PROXY, 1), (503, 1), (504, 1)])
def test_what_is_definite(tmp_path: Path, answer: str | int, left: int) -> None:
    """Ironic's refusal without a free worker is; a proxy's 503, and other errors, keep the unit."""

    async def act(world: World) -> None:
        gate = await world.gate()
        world.double.faults.pending.append(Fault("provision", work="never", answer=answer))  # type: ignore[arg-type] # one of its values
        got = await world.ask(gate.url, "node-1", "active")
        assert got.status == (answer if isinstance(answer, int) else 503)
        assert len(await world.leases()) == left
        assert len(await world.leases("waiting")) == 1 - left
        other = await world.ask(gate.url, "node-2", "active", OPERATOR)
        assert other.status == (409 if left else 202)

    play(tmp_path, IronicDouble(2), 1, act)


@played(2, 2)
async def test_wishes(it: Governed) -> None:
    """A governor that Ironic's limit refuses frees the unit, rests, and asks again."""
    it.double.fleet.limit = 1
    it.wish(1, 2)
    async with it.governor() as governor:
        await until(lambda: it.double.counts["provision"] >= 3, governor.tick)
        await until(lambda: it.operator.pool(POOL).occupied == 1, governor.tick)
        await it.double.advance(1_000)
        await until(lambda: len(it.entered("deploying")) == 2, governor.tick)
    assert it.double.fleet.busiest == 1
