"""The check of admission finds every planted inconsistency, and nothing where all is well."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.admission.facts import Changes, Keys
from moorage.core.admission.model import Lease, Pool, Slot, Token
from moorage.core.clock import Instant
from moorage.store import admission
from moorage.store.api import Engine
from moorage.store.open import open_engine
from tests import cluster
from tests.store.grants import AT, ended, granted, lease_id, pool, run, saved, slot, ticket
from tests.store.test_check import plant

HOLDER = granted(ticket(1, "a", "s"), slots={"s": ("one",)}, token=Token(1, 1, 0))


def sound() -> list[Pool | Lease | Slot]:
    """Return two pools, one with slots, a holder, a gang that waits, and a lease that ended."""
    return [
        pool("a", occupied=1, waiting=1, gangs=1),
        pool("s", None, occupied=1, waiting=1, gangs=1),
        slot("s", "one", owner="owner", lease=HOLDER.id),
        slot("s", "two"),
        HOLDER,
        ticket(2, "a", "s"),
        ended(granted(ticket(3, "a", "s"), slots={"s": ("two",)}, token=Token(1, 1, 1))),
    ]


def test_a_sound_admission(engine: Engine) -> None:
    """What decisions leave is consistent, renewals and forgotten leases included."""

    async def scenario() -> None:
        await saved(engine, *sound())
        heard = Changes(heard={HOLDER.id: Instant(AT + 999)})
        await run(engine, Keys(leases={HOLDER.id}), lambda _: heard)
        assert await engine.read_aside(admission.differences_load()) == []
        async with engine.transaction() as transaction:
            forgotten = admission.forget(Instant(AT + 1), Instant(AT), 9)
            assert await transaction.run(forgotten) == 1
            await transaction.commit()
        assert await engine.read_aside(admission.differences_load()) == []

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
    "DELETE FROM pool WHERE name = 'a'": f"lease {H}: pool a does not exist",
    "DELETE FROM pool WHERE name = 's'": "slot two: pool s does not exist",
    f"DELETE FROM lease WHERE id = '{H}'": f"slot s/one: its lease is {H}, no live lease holds it",
    'UPDATE slot SET body = replace(body, \'"owner":""\', \'"owner":"x"\')': (
        "slot s/two: owner 'x', lease None"
    ),
    f"UPDATE slot SET body = replace(body, '{H}', '{W}')": (
        f"slot s/one: its lease is {W}, lease {H} holds it"
    ),
    "DELETE FROM slot WHERE name = 'one'": f"lease {H}: its slot s/one does not exist",
    f"UPDATE lease_need SET units = 2 WHERE pool = 'a' AND lease = '{H}'": (
        f"pool a: of lease {H} it has ('granted', 2), not ('granted', 1)"
    ),
    f"DELETE FROM lease_need WHERE pool = 's' AND lease = '{W}'": (
        f"pool s: of lease {W} it has None, not ('waiting', 1)"
    ),
    f"UPDATE lease SET ended_at = 1 WHERE id = '{W}'": (
        f"pool a: of lease {W} it has ('waiting', 1), not None"
    ),
    f"DELETE FROM lease WHERE id = '{E}'": f"pool a: its lease {E} is no lease that has ended",
    f"DELETE FROM lease_due WHERE lease = '{W}'": f"lease {W}: nobody looks",
    f"UPDATE lease_due SET due = due + 1 WHERE lease = '{H}'": f"lease {H}: it is over at",
    f"UPDATE lease_due SET lease = 'x' WHERE lease = '{H}'": "lease x: due at",
}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("statement", PLANTED)
def test_planted_differences(tmp_path: Path, database: str, statement: str) -> None:
    """Each kind of inconsistency is found and named in a line."""
    url = cluster.fresh() if database == "postgresql" else f"sqlite:///{tmp_path}/a.db"

    async def scenario() -> list[str]:
        engine = open_engine(url)
        await saved(engine, *sound())
        plant(engine, url, statement)
        found = await engine.read_aside(admission.differences_load())
        await engine.close()
        return found

    found = asyncio.run(scenario())
    assert any(PLANTED[statement] in line for line in found), found
    assert not any("\n" in line for line in found)
