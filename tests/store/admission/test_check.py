"""The check of admission finds every planted inconsistency, and none in consistent rows."""

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from moorage.core.admission.facts import Changes, Keys
from moorage.core.admission.model import Need
from moorage.core.clock import Instant
from moorage.store.admission import check, save
from moorage.store.admission.check import PAGE
from moorage.store.api import Engine
from moorage.store.differences import FOUND_MAX
from moorage.store.open import open_engine
from tests.store.admission.consistent_rows import ALIVE, HOLDER, consistent_changes, outcome
from tests.store.admission.grants import (
    AT,
    MINUTE,
    changed,
    facts_of,
    granted,
    lease_id,
    pool,
    run,
    slot,
    ticket,
)
from tests.store.test_check import plant
from tests.support import cluster


def test_a_sound_admission(engine: Engine) -> None:
    """Rows written by decisions are consistent, including renewals and deleted leases."""

    async def scenario() -> None:
        await run(engine, Keys(), lambda _: consistent_changes(), ALIVE)
        heard = Changes(heard={HOLDER.id: Instant(AT + MINUTE + 999)})
        await run(engine, Keys(leases={HOLDER.id}), lambda _: heard)
        assert await engine.read_aside(check.differences_load()) == []
        async with engine.transaction() as transaction:
            forgotten = save.forget(Instant(AT + 1), Instant(AT), 9)
            assert await transaction.run(forgotten) == 1
            await transaction.commit()
        assert await engine.read_aside(check.differences_load()) == []

    asyncio.run(scenario())


H, W, E = lease_id(1), lease_id(2), lease_id(3)

PLANTED = {
    "UPDATE pool SET body = replace(body, '\"occupied\":1', '\"occupied\":2') WHERE name = 'a'": (
        "pool a: occupied is 2, leases sum up to 1"
    ),
    "UPDATE pool SET body = replace(body, '\"waiting\":1', '\"waiting\":0') WHERE name = 's'": (
        "pool s: waiting is 0, tickets are 1"
    ),
    "UPDATE pool SET body = replace(body, '\"gangs\":1', '\"gangs\":3') WHERE name = 's'": (
        "pool s: gangs is 3, tickets with other pools are 1"
    ),
    "UPDATE pool SET body = replace(body, '{\"free\":1}', '{\"dirty\":2}') WHERE name = 's'": (
        "pool s: awaited is {'dirty': 2}, units that tickets want are {'free': 1}"
    ),
    "UPDATE pool SET gangs = 0 WHERE name = 'a'": "pool a: gangs is 0, it should be 1",
    "UPDATE pool SET body = '{' WHERE name = 'a'": "pool a: its body cannot be read",
    "DELETE FROM pool WHERE name = 'a'": f"lease {H}: pool a does not exist",
    "DELETE FROM pool WHERE name = 's'": "slot s/two: pool s does not exist",
    "DELETE FROM pool WHERE name <> 's'": f"outcome of lease {E} in pool a: the pool does not",
    f"DELETE FROM lease WHERE id = '{H}'": f"slot s/one: its lease is {H}, no live lease holds it",
    'UPDATE slot SET body = replace(body, \'"owner":""\', \'"owner":"x"\')': (
        "slot s/two: owner 'x', lease None"
    ),
    f"UPDATE slot SET body = replace(body, '{H}', '{W}')": (
        f"slot s/one: its lease is {W}, lease {H} holds it"
    ),
    "DELETE FROM slot WHERE name = 'one'": f"lease {H}: its slot s/one does not exist",
    f"UPDATE lease_need SET units = 2 WHERE pool = 'a' AND lease = '{H}'": (
        f"lease {H} in pool a: units is 2, it should be 1"
    ),
    f"DELETE FROM lease_need WHERE pool = 's' AND lease = '{W}'": (
        f"lease {W} in pool s: it has no row there with arrival 2"
    ),
    f"UPDATE lease SET ended_at = 1 WHERE id = '{W}'": (
        f"lease {W}: ended_at is 1, it should be None"
    ),
    f"DELETE FROM lease WHERE id = '{E}'": f"lease {E} in pool a: no lease has arrival 3 there",
    f"UPDATE lease SET body = 'x' WHERE id = '{W}'": f"lease {W}: its body cannot be read",
    f"DELETE FROM lease_due WHERE lease = '{W}'": f"lease {W}: nobody looks",
    f"UPDATE lease_due SET due = due + 1 WHERE lease = '{H}'": (
        f"lease {H}: due is {AT + MINUTE + 1}, it should be from {AT + MINUTE} to {AT + MINUTE}"
    ),
    f"UPDATE lease_due SET heard_until = heard_until - 1 WHERE lease = '{H}'": (
        f"lease {H}: heard_until is {AT + MINUTE - 1}, it should be from {AT + MINUTE} to"
    ),
    f"UPDATE lease_due SET heard_until = heard_until + 15000001 WHERE lease = '{H}'": (
        f"lease {H}: heard_until is {AT + MINUTE + 15_000_001}, it should be from"
    ),
    f"UPDATE lease_due SET heard_until = {AT} WHERE lease = '{W}'": (
        f"lease {W}: heard_until is {AT}, it should be from {AT + MINUTE // 2}"
    ),
    f"UPDATE lease_due SET heard_until = NULL WHERE lease = '{W}'": (
        f"lease {W}: heard_until is None, its body says {AT + MINUTE}"
    ),
    f"UPDATE lease_due SET lease = 'x' WHERE lease = '{H}'": "lease x: due at",
    f"INSERT INTO lease_due VALUES ('{E}', NULL, 5)": f"lease {E}: due at 5, but it has ended",
    "UPDATE admission_clock SET arrivals = 2": (
        "admission_clock: arrivals is 2, it should be 3 or more"
    ),
}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("statement", PLANTED)
def test_planted_differences(tmp_path: Path, database: str, statement: str) -> None:
    """Each kind of inconsistency is found and described in one line."""
    found = asyncio.run(found_after(tmp_path, database, consistent_changes(), statement))
    assert any(PLANTED[statement] in line for line in found), found
    assert not any("\n" in line for line in found)


async def found_after(folder: Path, database: str, changes: Changes, *planted: str) -> list[str]:
    """Save changes in a new database, plant damage, and return what the check finds."""
    url = cluster.fresh() if database == "postgresql" else f"sqlite:///{folder}/a.db"
    engine = open_engine(url)
    await run(engine, Keys(), lambda _: changes, ALIVE)
    for statement in planted:
        plant(engine, url, statement)
    found = await engine.read_aside(check.differences_load())
    await engine.close()
    return found


def crowded(count: int) -> Changes:
    """Return a pool with this many tickets, and as many outcomes of the same moment."""
    changes = changed(pool("a", waiting=count), *(ticket(n, "a") for n in range(1, count + 1)))
    changes.arrivals = count
    changes.outcomes = [outcome(n) for n in range(count)]
    return changes


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_every_page_is_compared(tmp_path: Path, database: str) -> None:
    """Damage in the second page is found as well: leases, their rows in pools, outcomes."""
    last = lease_id(PAGE + 9)
    found = asyncio.run(
        found_after(
            tmp_path,
            database,
            crowded(PAGE + 10),
            f"UPDATE lease SET owner = 'x' WHERE id = '{last}'",
            f"UPDATE lease_need SET rank = 7 WHERE lease = '{last}'",
            f"UPDATE outcome SET result = 'x' WHERE lease = '{last}'",
            "INSERT INTO lease_need (pool, arrival, lease, rank, place, units, pull, forced, owner,"
            " state, asked_at) SELECT 'z', arrival, lease, rank, place, units, pull, forced, owner,"
            f" state, asked_at FROM lease_need WHERE lease = '{last}'",
        )
    )
    assert found == [
        f"lease {last}: owner is 'x', it should be 'owner'",
        f"lease {last} in pool a: rank is 7, it should be 0",
        f"lease {last} in pool z: no lease has arrival {PAGE + 9} there",
        f"outcome of lease {last} in pool a: result is 'x', it should be 'ok'",
    ]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_so_many_differences_are_told(tmp_path: Path, database: str) -> None:
    """If everything is damaged, the check stops after a while and reports that."""
    damage = "UPDATE lease_need SET rank = 7"
    found = asyncio.run(found_after(tmp_path, database, crowded(FOUND_MAX + 1), damage))
    assert len(found) == FOUND_MAX + 1
    assert found[-1] == "admission: there are more differences; the rest was not looked at"
    damage += f" WHERE lease <> '{lease_id(1)}'"
    (tmp_path / "b").mkdir()
    found = asyncio.run(found_after(tmp_path / "b", database, crowded(FOUND_MAX + 1), damage))
    assert len(found) == FOUND_MAX
    assert found[-1].endswith("rank is 7, it should be 0")


def test_a_lease_that_has_given_back_all_slots_of_a_pool(engine: Engine) -> None:
    """A pool that was deleted may still be named by its leases; other names are wrong."""
    both = granted(ticket(1, "s", "t"), slots={"s": ("one",), "t": ("two",)})

    async def scenario() -> None:
        held = {"owner": "owner", "lease": both.id}
        changes = changed(
            pool("s", None, occupied=1),
            pool("t", None, occupied=1),
            slot("s", "one", **held),
            slot("t", "two", **held),
            both,
        )
        changes.arrivals = 1
        await run(engine, Keys(), lambda _: changes, ALIVE)
        assert await engine.read_aside(check.differences_load()) == []
        kept = (await facts_of(engine, Keys(leases={both.id}))).leases[both.id]
        part = structs.replace(kept, needs=(Need("s", 1),), slots={"s": ("one",)})
        back = changed(pool("t", None), slot("t", "two"), part)
        await run(engine, Keys(pools={"t"}, leases={both.id}), lambda _: back)
        assert await engine.read_aside(check.differences_load()) == []

    asyncio.run(scenario())
