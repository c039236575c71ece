"""Inventories under the names of openstack-exporter's metrics."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from moorage.core.ledger.search.capacity_sums import snapshot
from moorage.serve.openstack_metrics import A_STEP, OpenStackMetrics, written
from moorage.service.ledger import provider_cases
from tests.e2e.support.machine import Machine
from tests.service.running import Running, claim, running

PREFIX = "openstack_placement_resource_"
NAMES = ("total", "allocation_ratio", "generation", "reserved", "usage")
STRANGE = 'Größe "7"\\n\\ ⚓'
HOSTS = 2_500
"""Enough for a text of more than a megabyte."""

Figures = dict[tuple[str, str, str], float]


def figures(text: bytes) -> Figures:
    """Return the value of each sample by name, host and class, as Prometheus' parser reads it."""
    return {
        (one.name, one.labels.get("hostname", ""), one.labels.get("resourcetype", "")): one.value
        for family in text_string_to_metric_families(text.decode())
        for one in family.samples
        if one.name.startswith("openstack_")
    }


def look(one: Running, most: int) -> OpenStackMetrics:
    """Return the metrics of a running service before their first look."""
    return OpenStackMetrics(one.service.index, one.service.turns, most)


def run(path: Path, scenario: Callable[[Running], Awaitable[None]]) -> None:
    """Run a scenario on a service."""

    async def whole() -> None:
        async with running(path / "m.sqlite") as one:
            await scenario(one)

    asyncio.run(whole())


def test_every_inventory_has_its_figures(tmp_path: Path) -> None:
    """Names of providers, which may have any character, are escaped."""

    async def scenario(one: Running) -> None:
        host, other = await one.provider(0, VCPU=8, DISK_GB=100), await one.provider(1, VCPU=2)
        await one.submit(claim(1, host, VCPU=3))
        await one.submit(provider_cases.ProviderUpdate(other, STRANGE))
        metrics = look(one, 10)
        await metrics.first_look()
        found = figures(b"".join(metrics.text))
        record = one.service.index.catalog.record(host)
        assert record is not None
        first = [found[PREFIX + name, "name-0", "VCPU"] for name in NAMES]
        assert first == [8, 1, record.provider.generation, 0, 3]
        assert found[PREFIX + "total", "name-0", "DISK_GB"] == 100
        assert found[PREFIX + "usage", STRANGE, "VCPU"] == 0
        assert found["openstack_placement_up", "", ""] == 1
        assert len(found) == 3 * len(NAMES) + 1

    run(tmp_path, scenario)


def test_inventories_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    """They are not silently missing: a metric says how many there are."""

    async def scenario(one: Running) -> None:
        for n in range(3):
            await one.provider(n, VCPU=8, DISK_GB=100)
        for most, there in ((6, 6), (4, 4), (1, 1)):
            metrics = look(one, most)
            await metrics.look()
            assert len(figures(b"".join(metrics.text))) == there * len(NAMES) + 1
            (left_out,) = metrics.collect()
            assert [sample.value for sample in left_out.samples] == [6 - there]

    run(tmp_path, scenario)


def test_the_text_is_written_in_pieces(tmp_path: Path) -> None:
    """Each piece writes few inventories, so that other requests are answered in between."""

    async def scenario(one: Running) -> None:
        for n in range(5 * A_STEP):
            await one.provider(n, VCPU=8)
        pieces = sum(1 for _ in written(snapshot(one.service.index.catalog), 10_000))
        assert pieces >= 5

    run(tmp_path, scenario)


def test_a_server_has_them_if_it_is_told_to(tmp_path: Path) -> None:
    """A text of more than a megabyte is complete; without the setting there is none of it."""
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    hosts: list[dict[str, Any]] = [
        {
            "uuid": f"{n:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
            "name": f"host-with-a-name-of-common-length-{n}.cluster.example",
            "inventories": {"VCPU": {"total": n + 1}},
        }
        for n in range(HOSTS)
    ]
    texts = []
    for folder, options in (("with", ("--openstack-metrics-max", str(HOSTS))), ("without", ())):
        machine = Machine(tmp_path / folder, *options)
        with machine.server as server:
            for first in range(0, HOSTS, 500):
                some = {"providers": hosts[first : first + 500]}
                status, answer = machine.send("POST", "/v1/providers:bulk", some)
                assert status == 200, answer
            with urlopen(f"{server.url}/metrics") as scraped:
                texts.append(scraped.read())
    assert len(texts[0]) > 1 << 20
    found = figures(texts[0])
    totals = [found[PREFIX + "total", host["name"], "VCPU"] for host in hosts]
    assert totals == [n + 1 for n in range(HOSTS)]
    assert figures(texts[1]) == {}
