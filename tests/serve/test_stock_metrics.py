"""The Prometheus metrics of inventories by resource class."""

import asyncio
from pathlib import Path

import pytest

from moorage.serve.metrics import StockMetrics
from moorage.service.ledger import stock_metrics, vocabulary_cases
from tests.service.running import Running, claim, running


def values_of(one: Running) -> list[dict[str, float]]:
    """Return the totals and what is used, by class."""
    families = StockMetrics(one.service.chores.stock).collect()
    return [
        {sample.labels["resource_class"]: sample.value for sample in family.samples}
        for family in families
    ]


def test_units_by_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All providers are added up by class; classes beyond the limit are one remainder.

    The control: without the limit each class has figures of its own, and there is no remainder.
    """

    async def scenario() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            assert values_of(one) == [{}, {}]
            await one.submit(vocabulary_cases.ClassEnsure("CUSTOM_GPU"))
            hosts = [await one.provider(n, VCPU=8, DISK_GB=100) for n in range(3)]
            await one.provider(3, VCPU=2, CUSTOM_GPU=4)
            await one.submit(claim(1, *hosts[:2], VCPU=3, DISK_GB=7))
            assert values_of(one) == [{}, {}]  # as of the last look
            await one.service.chores.stock.look()
            assert values_of(one) == [
                {"VCPU": 26, "DISK_GB": 300, "CUSTOM_GPU": 4},
                {"VCPU": 6, "DISK_GB": 14, "CUSTOM_GPU": 0},
            ]
            monkeypatch.setattr(stock_metrics, "CLASSES_MAX", 1)
            await one.service.chores.stock.look()
            assert values_of(one) == [{"VCPU": 26, "other": 304}, {"VCPU": 6, "other": 14}]

    asyncio.run(scenario())
