"""The check finds what is wrong in a record of a reshape, and nothing in those of sound ones."""

import asyncio
import json

import apsw
import psycopg
import pytest

from moorage.core.ledger.import_mark import MARK_TARGET
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.store.api import Plan
from moorage.store.ledger.check import PAGE, differences_load
from tests.service.ledger.imports.conftest import Database
from tests.service.ledger.reshapes.trees import (
    HOST,
    LEFT,
    RIGHT,
    commit,
    host,
    split,
    undo,
    wish,
)
from tests.service.running import consumer_id

GUESTS = {1: 3, 2: 5, 3: 4}
PLAN = split({1: LEFT, 2: RIGHT}, GUESTS, release=frozenset({consumer_id(3)}))
FIRST, BACK, SECOND = (wish(n).id for n in (1, 2, 3))
ELSE = wish(9).id

PLANTED = {
    f"UPDATE reshape SET inverse = '{{}}' WHERE id = '{FIRST}'": f"reshape {FIRST}: it cannot be",
    f"UPDATE reshape SET summary = '[' WHERE id = '{BACK}'": f"reshape {BACK}: it cannot be read",
    f"UPDATE reshape SET generations = '7' WHERE id = '{FIRST}'": f"reshape {FIRST}: it cannot be",
    f"UPDATE reshape SET digest = 'x' WHERE id = '{SECOND}'": "its digest is x, that of its",
    f"UPDATE reshape SET inverse = (SELECT inverse FROM reshape WHERE id = '{BACK}')"
    f" WHERE id = '{FIRST}'": f"reshape {FIRST}: its digest is",
    f"UPDATE reshape SET inverse = replace(inverse, '\"VCPU\":5', '\"VCPU\":4')"
    f" WHERE id = '{FIRST}'": f"reshape {FIRST}: its digest is",
    "UPDATE reshape SET providers = 9": "providers is 9, it has changed 3",
    "UPDATE reshape SET consumers = 9": "consumers is 9, it has changed 3",
    f'UPDATE reshape SET inverse = replace(inverse, \'"owners":{{"{consumer_id(3)}"\','
    f' \'"owners":{{"{consumer_id(1)}"\')': "does not know its owner",
    f"UPDATE reshape SET inverse = replace(inverse, '\"leases\":{{}}',"
    f' \'"leases":{{"{consumer_id(1)}":"x"}}\')': f"the lease of consumer {consumer_id(1)}",
    f"UPDATE reshape SET generations = replace(generations, '\"{HOST}\":', '\"{HOST}\":1')": (
        f"provider {HOST} has generation"
    ),
    f"UPDATE reshape SET undone_by = NULL WHERE id = '{FIRST}'": (
        f"reshape {BACK}: it undoes {FIRST}, which None has undone"
    ),
    f"UPDATE reshape SET undone_by = '{ELSE}' WHERE id = '{SECOND}'": "which does not exist",
    f"UPDATE reshape SET undoes = NULL WHERE id = '{BACK}'": f"undone by {BACK}, which undoes None",
    f"DELETE FROM reshape WHERE id = '{BACK}'": f"undone by {BACK}, which does not exist",
}


@pytest.mark.parametrize("statement", PLANTED)
def test_a_damaged_record_is_found(database: Database, statement: str) -> None:
    """Each with one line, and the reshape that it is about."""

    async def scenario() -> list[str]:
        with pytest.raises(AssertionError) as at_the_end:
            async with database.served() as service:
                await host(service, GUESTS)
                await commit(service, PLAN)
                await undo(service, 1, 2)
                await commit(service, PLAN, 3)
                assert await service.operations.check() == []
                _plant(database.url, statement)
        return [str(at_the_end.value)]

    (found,) = asyncio.run(scenario())
    assert PLANTED[statement] in found, found


def test_what_is_forgotten_is_not_missed(database: Database) -> None:
    """The oldest records go first, so one that undoes another may stay longer than it."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            await commit(service, PLAN)
            await undo(service, 1, 2)
            _plant(database.url, f"DELETE FROM reshape WHERE id = '{FIRST}'")
            assert await service.operations.check() == []

    asyncio.run(scenario())


def test_it_keeps_no_records(database: Database) -> None:
    """Each statement has a few ids at most, however many reshapes there are."""
    count = 3 * PAGE

    async def scenario() -> list[int]:
        async with database.served() as service:
            await host(service, GUESTS)
            await commit(service, PLAN)
            for number in range(3, 3 + count):
                plan = ReshapePlan(rename={HOST: f"renamed-{number}"})
                await commit(service, plan, number)
            for number in range(2 + count, 2, -1):
                await undo(service, number, 100 + number)
            await undo(service, 1, 2)
            return await service.engine.read_aside(_counted_ids(differences_load()))

    counts = asyncio.run(scenario())
    assert len(counts) * PAGE >= 2 * count
    assert max(counts) <= 2 * PAGE


def _counted_ids(plan: Plan[list[str]]) -> Plan[list[int]]:
    """Run a plan of the check; return how many ids each statement has that loads by ids."""
    counts, statements = [], next(plan)
    while True:
        found = [one for one in statements if one[0] == "reshapes_load"]
        counts += [len(json.loads(one[1][0])) for one in found]
        try:
            statements = plan.send((yield statements))
        except StopIteration as end:
            assert end.value == []
            return counts


def test_an_import_may_bring_lower_generations(database: Database) -> None:
    """It replaces providers by those of another ledger, which are as old; then none is compared."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            await commit(service, PLAN)
            (beyond,) = (one for one in PLANTED if PLANTED[one].startswith(f"provider {HOST} has"))
            _plant(database.url, beyond)
            assert [HOST in one for one in await service.operations.check()] == [True]
            _plant(
                database.url,
                "INSERT INTO audit (at, id, who, role, action, target)"
                f" SELECT at + 1, id, who, role, 'import.begin', '{MARK_TARGET}' FROM reshape",
            )
            assert await service.operations.check() == []

    asyncio.run(scenario())


def _plant(url: str, statement: str) -> None:
    """Run a statement in the database, bypassing the engine."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url) as server:
            server.execute(statement.encode())
        return
    with apsw.Connection(url.removeprefix("sqlite:///")) as file:
        file.execute(statement)
    file.close()
