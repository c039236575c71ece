"""`db check` derives what agents offer again: every planted difference is found."""

import asyncio
from pathlib import Path

import apsw
import pytest

from tests.service.fleet.machines import agent_id, part_id, ready
from tests.service.running import running

PART, ROOT = part_id(1), agent_id(1)

SET = "UPDATE provider SET"
LATE = f'{{"reason":"late","by":"{ROOT}"}}'

PLANTED = [
    f"""{SET} inventories = replace(inventories, '"offered":100', '"offered":99')""",
    f"""{SET} inventories = replace(inventories, '"total":100', '"total":120')""",
    f"""{SET} inventories = replace(inventories, '"offered":100,', '')""",
    f"{SET} inventories = '{{}}' WHERE inventories <> '{{}}'",
    f"{SET} agent = NULL WHERE agent IS NOT NULL",
    f"{SET} agent = '{part_id(2)}' WHERE uuid = '{PART}'",
    f"{SET} withheld = '{LATE}' WHERE uuid = '{ROOT}'",
    """UPDATE agent SET body = replace(body, '"in_service"', '"expunged"')""",
]


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_differences_are_found(tmp_path: Path, planted: str) -> None:
    """One statement changes one side only, and the check names what differs."""

    async def run() -> list[str]:
        path = tmp_path / "m.sqlite"
        async with running(path) as one:
            await ready(one.service.fleet, 1)
            assert await one.service.operations.check() == []
            connection = apsw.Connection(str(path))
            connection.execute(planted)
            assert connection.changes()
            connection.close()
            found = await one.service.operations.check()
            one.fatal.append(RuntimeError("the database was damaged by the test"))
            return found

    found = asyncio.run(run())
    assert any("offered" in line or "withheld" in line or "agent" in line for line in found), found
