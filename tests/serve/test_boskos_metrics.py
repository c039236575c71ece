"""The counts of Boskos' resources: each reads the whole table, and any client may ask for it."""

import asyncio

from moorage.core.errors import Code, Error
from moorage.serve.boskos import BoskosMetrics
from moorage.serve.metrics import RESTS
from moorage.store.admission.reads import SlotCount

TOOK = 2.0


class Counted:
    """Resources whose counting takes a while, and the clock that it moves."""

    def __init__(self, took: float) -> None:
        self.now = 100.0
        self.times = 0
        self.gone = False
        self._took = took

    async def all_counts(self) -> list[SlotCount]:
        """Count, as the service does."""
        self.times += 1
        await asyncio.sleep(0)
        self.now += self._took
        if self.gone:
            raise Error(Code.UNAVAILABLE, "the database cannot be read")
        return [SlotCount("t", "free", "", self.times)]


def free_count(metrics: BoskosMetrics) -> float:
    """Return how many free resources the metrics show."""
    family = next(iter(metrics.collect()))
    return sum(sample.value for sample in family.samples if sample.labels["state"] == "free")


def test_simultaneous_requests_share_one_count() -> None:
    """They share a count that begins after they arrive; it is reused for `RESTS` times its cost."""

    async def scenario() -> None:
        boskos = Counted(TOOK)
        metrics = BoskosMetrics(boskos, lambda: boskos.now)  # type: ignore[arg-type] # all it asks of it
        await asyncio.gather(*(metrics.refresh() for _ in range(50)))
        assert boskos.times == 1
        assert free_count(metrics) == 1
        for _ in range(50):
            await metrics.refresh()
        assert boskos.times == 1
        boskos.now += TOOK * RESTS
        await metrics.refresh()
        assert free_count(metrics) == boskos.times == 2

    asyncio.run(scenario())


def test_short_counts_are_always_new() -> None:
    """Fast counts are made for every request; without a database the last count is shown."""

    async def scenario() -> None:
        boskos = Counted(0.001)
        metrics = BoskosMetrics(boskos, lambda: boskos.now)  # type: ignore[arg-type] # all it asks of it
        for times in (1, 2, 3):
            await metrics.refresh()
            assert free_count(metrics) == boskos.times == times
        boskos.gone = True
        await metrics.refresh()
        assert boskos.times == 4
        assert free_count(metrics) == 3

    asyncio.run(scenario())
