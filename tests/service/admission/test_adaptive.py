"""Adaptive limits on both engines: decided with the outcome, audited, durable, shared."""

import asyncio
from pathlib import Path

import pytest
from msgspec import json

from moorage.core.admission.model import (
    Lease,
    Result,
)
from moorage.core.admission.requests import Proof
from moorage.core.errors import Code
from moorage.core.pool_values import Adaptive, Counts
from moorage.service.admission.lease_cases import LeaseOutcome, LeaseRelease
from moorage.service.admission.pool_cases import PoolTune
from moorage.service.admission.service import Admission
from tests.service.pools import MINUTE, ask, opened, pool_pause, pool_put, refusal, spec
from tests.service.running import TESTER
from tests.support import cluster

POOL = "p"
ACTING = Adaptive(1, 20, "act")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgres" else f"sqlite:///{tmp_path}/m.sqlite"


async def full(admission: Admission, limit: int, settings: Adaptive) -> list[Lease]:
    """Create a pool and fill it at one moment; one more ticket waits. Return the leases."""
    await pool_put(admission, POOL, spec(limit, adaptive=settings))
    await pool_pause(admission, POOL, True)
    numbers = range(limit + 1)
    views = [await ask(admission, str(n), POOL, patience=10 * MINUTE) for n in numbers]
    await pool_pause(admission, POOL, False)
    leases = [(await admission.queries.lease(view.lease.id)).lease for view in views]
    assert [one.state for one in leases] == ["granted"] * limit + ["waiting"]
    return leases[:-1]


async def report(admission: Admission, lease: Lease, result: Result, cause: str = "") -> None:
    """Report an outcome and give the unit back."""
    proof = Proof(lease.owner, lease.token)
    await admission.change(LeaseOutcome(lease.id, proof, result, "", cause))
    await admission.change(LeaseRelease(lease.id, proof))


def test_a_step_is_audited_with_its_evidence(url: str) -> None:
    """Three failures cut the limit, by an author of its own; an operator knows of it first."""

    async def scenario() -> None:
        async with opened(url) as service:
            admission = service.admission
            leases = await full(admission, 10, ACTING)
            known = (await admission.queries.pool(POOL)).pool.generation
            for lease in leases[:3]:
                await report(admission, lease, "failed")
            pool = (await admission.queries.pool(POOL)).pool
            assert (pool.spec.limit, pool.generation) == (7, known + 1)
            assert admission.tally.pools[POOL].spec.limit == 7
            rows, _ = await service.audit.page(None, 10)
            (row,) = [one for one in rows if one.action == "pool.adapt"]
            assert (row.who, row.role, row.target) == ("adaptive-limit", "", POOL)
            assert json.decode(row.before or "") == {"limit": 10}
            counts = {"ok": 0, "failed": 3, "throttled": 0, "correlated": 0}
            assert json.decode(row.after or "") == {"limit": 7, "verdict": "bad", **counts}
            late = admission.change_pool(PoolTune(POOL, TESTER, 9, None, known))
            assert await refusal(late) == Code.POOL_GENERATION

    asyncio.run(scenario())


def test_advice_leaves_no_audit_row(url: str) -> None:
    """The limit stays, and the pool says what it would be."""

    async def scenario() -> None:
        async with opened(url) as service:
            admission = service.admission
            for lease in (await full(admission, 10, Adaptive(1, 20)))[:3]:
                await report(admission, lease, "failed")
            pool = (await admission.queries.pool(POOL)).pool
            assert pool.spec.limit == 10
            assert pool.adaptation is not None
            assert pool.adaptation.last is not None
            assert (pool.adaptation.last.after, pool.adaptation.last.acted) == (7, False)
            rows, _ = await service.audit.page(None, 10)
            assert "pool.adapt" not in [row.action for row in rows]

    asyncio.run(scenario())


def test_the_state_survives_a_restart(url: str) -> None:
    """Two failures before it and one after it are three, with the use of before."""

    async def scenario() -> None:
        async with opened(url) as service:
            leases = await full(service.admission, 10, ACTING)
            for lease in leases[:2]:
                await report(service.admission, lease, "failed")
        async with opened(url) as service:
            pool = (await service.admission.queries.pool(POOL)).pool
            assert pool.adaptation is not None
            assert (pool.spec.limit, pool.adaptation.counts) == (10, Counts(failed=2))
            await report(service.admission, leases[2], "failed")
            assert (await service.admission.queries.pool(POOL)).pool.spec.limit == 7

    asyncio.run(scenario())


def test_two_processes_have_one_test() -> None:
    """Outcomes at both, at the same time: each counts once, and there is one step."""

    async def scenario() -> None:
        url = cluster.fresh()
        async with opened(url) as one, opened(url) as other:
            leases = await full(one.admission, 12, ACTING)
            both = [one.admission, other.admission]
            await asyncio.gather(
                *(report(both[n % 2], lease, "failed") for n, lease in enumerate(leases))
            )
            pools = [(await each.queries.pool(POOL)).pool for each in both]
            assert [pool.spec.limit for pool in pools] == [8, 8]
            state = pools[0].adaptation
            assert state is not None
            assert (state.counts, state.aside) == (Counts(), 12 - 3)
            rows, _ = await one.audit.page(None, 10)
            assert [row.action for row in rows].count("pool.adapt") == 1

    asyncio.run(scenario())


def test_an_outcome_that_is_repeated_counts_once(url: str) -> None:
    """Its answer was lost, and it is sent again: nothing is counted twice."""

    async def scenario() -> None:
        async with opened(url) as service:
            admission = service.admission
            lease = (await full(admission, 10, ACTING))[0]
            for _ in range(5):
                case = LeaseOutcome(lease.id, Proof(lease.owner, lease.token), "failed", "")
                await admission.change(case)
            state = (await admission.queries.pool(POOL)).pool.adaptation
            assert state is not None
            assert state.counts == Counts(failed=1)

    asyncio.run(scenario())


def test_a_raise_grants_what_waits_in_the_same_batch(url: str) -> None:
    """47 good outcomes raise the limit: the ticket that waited has its unit when it is answered."""

    async def scenario() -> None:
        async with opened(url) as service:
            admission = service.admission
            leases = await full(admission, 50, Adaptive(1, 100, "act"))
            proofs = [Proof(lease.owner, lease.token) for lease in leases]
            for lease, proof in list(zip(leases, proofs, strict=True))[:47]:
                await admission.change(LeaseOutcome(lease.id, proof, "ok", ""))
            pool = (await admission.queries.pool(POOL)).pool
            assert (pool.spec.limit, pool.occupied, pool.waiting) == (55, 51, 0)

    asyncio.run(scenario())
