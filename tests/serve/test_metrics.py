"""The text of all metrics, which any client may request at any rate."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.serve.metrics import ServerMetrics
from tests.service.pools import with_manual_clock
from tests.service.running import Running


class Series(Collector):
    """A collector of `count` series that counts how often they are collected."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.collected = 0

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        self.collected += 1
        family = GaugeMetricFamily("series", "Many.", labels=["n"])
        for n in range(self._count):
            family.add_metric([str(n)], self.collected)
        yield family


@pytest.mark.parametrize(("count", "made"), [(1, [1, 2, 3]), (20_000, [1, 1, 2])])
def test_a_long_text_is_not_made_for_every_request(
    tmp_path: Path, count: int, made: list[int]
) -> None:
    """Making it would delay all other requests; a short text is always new."""

    async def scenario(one: Running) -> None:
        now = 100.0
        metrics, series = ServerMetrics(one.service, lambda: now), Series(count)
        metrics.add(series)
        told = []
        for seconds in (0.0, 0.0, 60.0):
            now += seconds
            text, _ = metrics.text()
            told.append(series.collected)
            assert f'series{{n="0"}} {float(series.collected)}\n'.encode() in text
        assert told == made

    with_manual_clock(tmp_path, scenario)
