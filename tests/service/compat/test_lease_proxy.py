"""The lease proxy frees the leases of callers that leave at a bad moment."""

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from moorage.service.admission.lease_cases import LeaseAcquire, LeaseRelease
from moorage.service.batch.use_case import UseCase
from moorage.service.compat.lease_proxy import CallerGoneError, LeaseProxy
from moorage.store.api import Unavailable
from tests.service.pools import pool_put, spec, with_manual_clock
from tests.service.running import Running


class Leaving:
    """Simulates a caller that leaves while its lease is granted, and releases that first fail."""

    def __init__(self, one: Running, failures: int) -> None:
        self._one = one
        self._real = one.service.transactor.submit
        self._failures = deque(Unavailable("the disk is full") for _ in range(failures))
        self.away = asyncio.Event()

    async def submit(self, case: UseCase[Any]) -> Any:
        """Submit a case, with the simulated faults."""
        if isinstance(case, LeaseRelease) and self._failures:
            self._one.engine.failures.append(self._failures.popleft())
        answer = await self._real(case)
        if isinstance(case, LeaseAcquire):
            self.away.set()
            await asyncio.wait([asyncio.ensure_future(self.away.wait())])
        return answer


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_a_caller_that_left_keeps_no_lease(tmp_path: Path, failures: int) -> None:
    """The release is repeated until it succeeds, so that the units do not wait for a deadline."""

    async def scenario(one: Running) -> None:
        admission, transactor = one.service.admission, one.service.transactor
        await pool_put(admission, "p", spec(1))
        leaving = Leaving(one, failures)
        transactor.submit = leaving.submit  # type: ignore[method-assign]  # it passes on
        proxy = LeaseProxy(admission, transactor)
        with pytest.raises(CallerGoneError):
            await proxy.acquire("p", 1, 60.0, leaving.away.wait)
        async with asyncio.timeout(20):
            while (await admission.queries.pool("p")).pool.occupied:
                await admission.queries.report("p")

    with_manual_clock(tmp_path, scenario)
