"""The counts of resources, which anybody may ask for at any rate: each reads the whole table."""

import asyncio

from moorage.core.errors import Code, Error
from moorage.serve.boskos import BoskosMetrics
from moorage.serve.metrics import RESTS
from moorage.store.admission.reads import SlotCount

TOOK = 2.0


class Counted:
    """Resources that take a while to be counted; a clock that only this moves."""

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


def told(metrics: BoskosMetrics) -> float:
    """Return how many free resources are told."""
    family = next(iter(metrics.collect()))
    return sum(sample.value for sample in family.samples if sample.labels["state"] == "free")


def test_all_who_ask_at_once_are_told_one_count() -> None:
    """They wait for a count that begins after they came; then it rests for as long as it took."""

    async def scene() -> None:
        boskos = Counted(TOOK)
        metrics = BoskosMetrics(boskos, lambda: boskos.now)  # type: ignore[arg-type] # all it asks of it
        await asyncio.gather(*(metrics.refresh() for _ in range(50)))
        assert boskos.times == 1
        assert told(metrics) == 1
        for _ in range(50):
            await metrics.refresh()
        assert boskos.times == 1
        boskos.now += TOOK * RESTS
        await metrics.refresh()
        assert told(metrics) == boskos.times == 2

    asyncio.run(scene())


def test_short_counts_are_always_new() -> None:
    """Where it takes no time nobody is told of yesterday; without a database the last is told."""

    async def scene() -> None:
        boskos = Counted(0.001)
        metrics = BoskosMetrics(boskos, lambda: boskos.now)  # type: ignore[arg-type] # all it asks of it
        for times in (1, 2, 3):
            await metrics.refresh()
            assert told(metrics) == boskos.times == times
        boskos.gone = True
        await metrics.refresh()
        assert boskos.times == 4
        assert told(metrics) == 3

    asyncio.run(scene())
