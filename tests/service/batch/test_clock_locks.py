"""Only batches with admission lock the rows of admission and of service time."""

import asyncio

import psycopg

from moorage.core.clock import Instant
from moorage.service.admission.lease_cases import Sweep
from tests.service.batch.test_shared import DONE, Pair, claim, play


def test_ledger_batches_wait_for_no_clock() -> None:
    """A batch without admission locks neither row."""

    async def scenario(pair: Pair) -> None:
        host = await pair.provider(VCPU=2)
        with psycopg.connect(pair.url) as other:
            other.execute("SELECT 1 FROM admission_clock, service_clock FOR UPDATE")
            assert await pair.both(claim({host: {"VCPU": 1}}), claim({host: {"VCPU": 1}})) == [
                DONE,
                DONE,
            ]
            sweep = asyncio.ensure_future(pair.one(Sweep(Instant(0))))
            await asyncio.to_thread(blocked, pair.url)
            assert not sweep.done()  # the control: admission does wait
            other.rollback()
        await sweep

    play(scenario)


def blocked(url: str) -> None:
    """Return when a session waits for a lock."""
    with psycopg.connect(url, autocommit=True) as server:
        while not server.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
            pass
