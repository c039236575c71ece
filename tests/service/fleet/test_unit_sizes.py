"""Writes of Placement clients keep the unit sizes and generations that they know."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.core.fleet.parts import ClassSpec
from moorage.core.ids import ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory, ProviderRecord
from moorage.core.limits import MAX_INT
from moorage.service.ledger.provider_cases import InventoriesReplace, InventoryUpdate
from tests.service.fleet.machines import PAGES, agent_id, machine, part_id, ready, report
from tests.service.running import TESTER, Running, running

PART = part_id(1)


def record_of(one: Running, uuid: ProviderId = PART) -> ProviderRecord:
    """Return what reads show of a provider."""
    record = one.service.index.catalog.record(uuid)
    assert record is not None
    return record


def sizes(inventory: Inventory) -> tuple[int, int, int]:
    """Return the total and the unit sizes of an inventory."""
    return inventory.total, inventory.max_unit, inventory.step_size


@pytest.mark.parametrize("demanded", [ClassSpec(1000), ClassSpec(1000, max_unit=50, step_size=10)])
def test_the_answer_has_the_generation_for_the_next_write(
    tmp_path: Path, demanded: ClassSpec
) -> None:
    """Each write takes the generation of the answer before; only the machine overrides sizes."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await ready(one.service.fleet, 1)
            spec = machine(1)
            part = replace(spec.parts[0], classes={PAGES: demanded})
            await one.service.fleet.register(agent_id(1), replace(spec, parts=[part]), TESTER)
            generation = record_of(one).provider.generation
            for total in (200, 300, 400):
                wanted = InventorySpec(total, max_unit=20, step_size=5)
                write = InventoriesReplace(PART, generation, {PAGES: wanted})
                generation = (await one.submit(write)).generation
                wanted = InventorySpec(total + 50, max_unit=20, step_size=5)
                write_one = InventoryUpdate(PART, PAGES, generation, wanted)
                generation = (await one.submit(write_one)).generation
                assert record_of(one).provider.generation == generation
            kept = demanded.max_unit or 20, 5 if demanded.step_size == 1 else demanded.step_size
            assert sizes(record_of(one).inventories[PAGES]) == (450, *kept)

    asyncio.run(run())


def test_a_machine_that_demands_no_sizes_any_more_gives_them_up(tmp_path: Path) -> None:
    """What it has demanded does not stay behind as if a client had written it."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await ready(one.service.fleet, 1)
            for demanded, expected in (
                (ClassSpec(1000, max_unit=50, step_size=10), (100, 50, 10)),
                (ClassSpec(1000), (100, MAX_INT, 1)),
            ):
                spec = machine(1)
                part = replace(spec.parts[0], classes={PAGES: demanded})
                await one.service.fleet.register(agent_id(1), replace(spec, parts=[part]), TESTER)
                assert sizes(record_of(one).inventories[PAGES]) == expected

    asyncio.run(run())


def test_reports_do_not_change_what_a_client_has_written(tmp_path: Path) -> None:
    """A report changes the offer, and neither the sizes nor the generation."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await ready(one.service.fleet, 1)
            generation = record_of(one).provider.generation
            wanted = InventorySpec(100, reserved=1, max_unit=20, step_size=5)
            await one.submit(InventoriesReplace(PART, generation, {PAGES: wanted}))
            before = record_of(one)
            await one.service.fleet.report(agent_id(1), report(1, 2, 70), TESTER)
            after = record_of(one)
            assert after.provider == before.provider
            offered = replace(before.inventories[PAGES], offered=70)
            assert after.inventories[PAGES] == offered != before.inventories[PAGES]

    asyncio.run(run())
