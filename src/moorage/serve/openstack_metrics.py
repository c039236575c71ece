"""Every inventory under the metric names of openstack-exporter, so that its boards keep working.

There are many, so they are written as text once a minute, in pieces, and not for each scrape.

Source: `exporters/placement.go` of openstack-exporter, for names and labels.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.core.ledger.compact_inventories import OWN, Inventories
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.search.capacity_sums import Snapshot, snapshot
from moorage.core.ledger.search.steps import Steps
from moorage.service.fair_turns import FairTurns, Pieces
from moorage.service.feed.catalog_index import CatalogIndex

PREFIX = "openstack_placement_"

FAMILIES = (
    ("resource_total", "The total of an inventory."),
    ("resource_allocation_ratio", "The allocation ratio of an inventory."),
    ("resource_generation", "The generation of the inventory's provider."),
    ("resource_reserved", "The reserved units of an inventory."),
    ("resource_usage", "The allocated units of an inventory."),
)
"""The exporter's names without the prefix, and their meaning. All are gauges."""

A_STEP = 32
"""Inventories that are written in one piece: a tenth of a millisecond, or less."""

_UP = f"# HELP {PREFIX}up The ledger can be read.\n# TYPE {PREFIX}up gauge\n{PREFIX}up 1\n".encode()


class OpenStackMetrics(Collector):
    """The text as of the last look.

    Args:
        index: has the inventories.
        turns: of the event loop.
        most: inventories in the text; the rest is counted.
    """

    def __init__(self, index: CatalogIndex, turns: FairTurns, most: int) -> None:
        self._index = index
        self._turns = turns
        self._most = most
        self._looking = asyncio.Lock()
        self.left_out = 0
        """Inventories that are not in the text because there are too many."""
        self.text: Sequence[bytes] = ()
        """The parts of the text; empty before the first look."""

    async def look(self) -> None:
        """Write all inventories that this process knows of, in spare turns."""
        async with self._looking:
            await self._look()

    async def first_look(self) -> None:
        """Look, unless there was a look already."""
        async with self._looking:
            if not self.text:
                await self._look()

    async def _look(self) -> None:
        await self._index.whole()
        work = written(snapshot(self._index.catalog), self._most)
        self.text, self.left_out = await Pieces(self._turns).driven(work)

    def collect(self) -> Iterable[Metric]:
        """Yield how much is left out; called by the registry."""
        yield GaugeMetricFamily(
            "moorage_openstack_metrics_left_out",
            "Inventories that are not in the metrics openstack_placement_resource_...",
            value=self.left_out,
        )


def written(records: Snapshot, most: int) -> Steps[tuple[list[bytes], int]]:
    """Return the parts of the text, and how many inventories beyond `most` it leaves out."""
    families: list[list[bytes]] = [[] for _ in FAMILIES]
    lines: list[list[str]] = [[] for _ in FAMILIES]
    count = left_out = done = 0
    for record in chain.from_iterable(records):
        done += 1
        if record is not None:
            for figures in _samples(record):
                count += 1
                done += 1
                if count > most:
                    left_out += 1
                    continue
                labels, *values = figures
                for into, value in zip(lines, values, strict=True):
                    into.append(f"{labels}{value}\n")
        if done >= A_STEP:
            done = 0
            _flush(lines, families)
            yield
    _flush(lines, families)
    return list(_parts(families)), left_out


def _samples(record: ProviderRecord) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield the labels of each inventory and its values, in the order of `FAMILIES`."""
    held, provider = record.inventories, record.provider
    assert isinstance(held, Inventories)  # those of a catalog are packed
    if not held.offers:
        return
    name = provider.name.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    for offer, used in zip(held.offers, held.own_figures()[::OWN], strict=True):
        yield (
            f'{{hostname="{name}",resourcetype="{offer.name}"}} ',
            str(offer.total),
            repr(float(offer.allocation_ratio)),
            str(provider.generation),
            str(offer.reserved),
            str(used),
        )


def _flush(lines: list[list[str]], families: list[list[bytes]]) -> None:
    """Move the lines of each family to its bytes."""
    for (name, _), some, family in zip(FAMILIES, lines, families, strict=True):
        if some:
            start = PREFIX + name
            family.append((start + start.join(some)).encode())
            some.clear()


def _parts(families: list[list[bytes]]) -> Iterator[bytes]:
    for (name, about), family in zip(FAMILIES, families, strict=True):
        yield f"# HELP {PREFIX}{name} {about}\n# TYPE {PREFIX}{name} gauge\n".encode()
        yield from family
    yield _UP
