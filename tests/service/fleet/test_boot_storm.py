"""A fleet that boots at once: what each register costs does not grow with the fleet."""

import asyncio
from pathlib import Path

import pytest

from tests.service.fleet.machines import agent_id, machine, ready
from tests.service.running import TESTER, running


async def storm(path: Path, agents: int) -> tuple[int, int]:
    """Register all machines at once in a new boot; return the transactions and statements."""
    async with running(path / f"{agents}.sqlite") as one:
        fleet = one.service.fleet
        await fleet.liveness_loop.stop()
        for n in range(agents):
            await ready(fleet, n)
        transactions, statements = one.engine.transactions, len(one.engine.statements)
        booted = [(agent_id(n), machine(n, "boot-2"), TESTER) for n in range(agents)]
        await asyncio.gather(*(fleet.register(*words) for words in booted))
        return one.engine.transactions - transactions, sum(one.engine.statements[statements:])


@pytest.mark.parametrize("agents", [30, 120])
def test_registers_share_batches(tmp_path: Path, agents: int) -> None:
    """A batch takes many registers, with a number of statements that does not depend on them."""
    transactions, statements = asyncio.run(storm(tmp_path, agents))
    assert transactions <= 2 + agents / 16
    assert statements <= 30 * transactions


def test_one_register_costs_the_same_in_a_large_fleet(tmp_path: Path) -> None:
    """Neither reads nor writes depend on how many other agents there are."""

    async def one_of(agents: int) -> int:
        async with running(tmp_path / f"one-of-{agents}.sqlite") as one:
            fleet = one.service.fleet
            await fleet.liveness_loop.stop()
            for n in range(agents):
                await ready(fleet, n)
            before = len(one.engine.statements)
            await fleet.register(agent_id(0), machine(0, "boot-2"), TESTER)
            return sum(one.engine.statements[before:])

    costs = [asyncio.run(one_of(agents)) for agents in (1, 40)]
    assert costs[0] == costs[1]
