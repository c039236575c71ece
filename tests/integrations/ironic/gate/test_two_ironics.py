"""Gates of two Ironics share a pool: each counts the nodes of the other, and leaves their units."""

from pathlib import Path

import pytest

from tests.integrations.ironic.gate.test_limit import play
from tests.integrations.ironic.gate.world import OPERATOR, World
from tests.support.ironic_double.server import IronicDouble

PASSES = 5


@pytest.mark.parametrize("names", [None, ("one", "two")])
def test_two_gates(names: tuple[str, str] | None, tmp_path: Path) -> None:
    """A node of one Ironic works: a request for one of the other waits until it is over."""
    other = IronicDouble()
    members = {"uuid": "11111111-0000-4000-8000-000000000001", "name": "other-1"}
    other.fleet.add({**members, "driver": "fake-hardware"}, "available")
    options = [["--ironic-name", name] for name in names] if names else [[], []]

    async def act(world: World) -> None:
        async with other:
            one = await world.gate(*options[0])
            two = await world.gate(*options[1], ironic=other.url)
            assert (await world.ask(one.url, "node-1", "active")).status == 202
            await other.received("list", other.counts["list"] + PASSES)
            refused = await world.ask(two.url, "other-1", "active", OPERATOR)
            assert (refused.status, "node-1" in refused.fault) == (409, True)
            assert not other.fleet.busy
            await world.double.advance(1_000.0)
            await world.occupied(0)
            assert (await world.ask(two.url, "other-1", "active")).status == 202

    play(tmp_path, IronicDouble(1), 1, act)
