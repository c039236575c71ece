"""The Prometheus metrics of the fleet."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from moorage.client.agent.preparation import REFUSED, SHORT, UNREADABLE
from moorage.core.fleet.model import Failure
from moorage.core.fleet.parts import ClassSpec, PartSpec
from moorage.core.fleet.policy import Action
from moorage.serve.metrics import FleetMetrics
from moorage.service.fleet.directory import FAILURE_CODES
from moorage.service.fleet.service import Fleet
from tests.service.fleet.machines import (
    PAGES,
    agent_id,
    agent_policy,
    machine,
    part_id,
    ready,
    report,
)
from tests.service.running import TESTER, running


def values_of(fleet: Fleet, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by its labels."""
    (family,) = (family for family in FleetMetrics(fleet).collect() if family.name == name)
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def test_agents_and_their_reservoirs(tmp_path: Path) -> None:
    """Agents count by their axes; amounts are summed up over machines in service."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            fleet = one.service.fleet
            for n in range(3):
                await ready(fleet, n)
            await agent_policy(fleet, agent_id(0), Action.DRAIN, "", TESTER)
            failed = replace(
                report(1, 2, 40),
                failure=Failure("hugepages_short", "fragmented", 3, one.clock.now()),
            )
            await fleet.report(agent_id(1), failed, TESTER)
            assert values_of(fleet, "moorage_agents") == {
                ("default", "no_provision", "ready", "fresh"): 1,
                ("default", "in_service", "degraded", "fresh"): 1,
                ("default", "in_service", "ready", "fresh"): 1,
            }
            assert values_of(fleet, "moorage_reservoir_desired") == {("default", PAGES): 200}
            assert values_of(fleet, "moorage_reservoir_actual") == {("default", PAGES): 140}
            assert values_of(fleet, "moorage_reservoir_offered") == {("default", PAGES): 140}
            assert values_of(fleet, "moorage_agents_short") == {("default",): 1}
            assert values_of(fleet, "moorage_agent_failures") == {("default", "hugepages_short"): 1}
            assert values_of(fleet, "moorage_group_suspect") == {("default",): 0}

    asyncio.run(run())


def test_machines_make_no_labels(tmp_path: Path) -> None:
    """Neither codes that `moorage agent run` does not know, nor classes that nobody desires."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            fleet = one.service.fleet
            for n in range(3):
                await ready(fleet, n)
                failed = Failure(f"my_own_{n}", "no idea", 1, one.clock.now())
                await fleet.report(agent_id(n), replace(report(n, 2, 0), failure=failed), TESTER)
            known = machine(0)
            more = PartSpec(part_id(0, "x"), "x", {"CUSTOM_MINE": ClassSpec(9)})
            await fleet.register(agent_id(0), replace(known, parts=[*known.parts, more]), TESTER)
            assert values_of(fleet, "moorage_agent_failures") == {("default", "other"): 3}
            assert values_of(fleet, "moorage_reservoir_actual") == {("default", PAGES): 0}

    asyncio.run(run())


def test_the_codes_are_those_of_the_agent() -> None:
    """A code of the agent's program is never counted as another."""
    assert {SHORT, REFUSED, UNREADABLE} == FAILURE_CODES
