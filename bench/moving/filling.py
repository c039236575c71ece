"""Fills a database of OpenStack Placement without its API, as a large cloud would."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import URL, Connection

from moorage.integrations.placement.exporting import Wanted
from moorage.integrations.placement.rows import Rows, all_encoded
from moorage.integrations.placement.target import opened
from moorage.wire.imports import ConsumerRow, InventoryRow, NameRow, ProviderRow

BEGUN = datetime(2024, 1, 1, 12, tzinfo=UTC)
CUSTOM = "CUSTOM_GOLD"
AGGREGATES = 300
PROJECTS = 500
TRAITS = ("HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F", "COMPUTE_NODE", "COMPUTE_VOLUME_ATTACH")


def fill(url: URL, providers: int, consumers: int) -> None:
    """Write hosts of one provider, and consumers with two allocations each."""
    with opened(url) as target:
        for table, rows in Wanted(_rows(providers, consumers), {}, target).tables():
            for _ in target.write(table, rows):
                pass
        target.continue_ids()
        target.commit()


def change(connection: Connection, part: int, parts: int) -> int:
    """Change every `parts`-th consumer as its clients do; return how many."""
    words: dict[str, Any] = {"part": part, "parts": parts}
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)  # noqa: TID251 - of the original
    for statement in (
        "UPDATE consumers SET generation = generation + 1, updated_at = :now"
        " WHERE id % :parts = :part",
        "UPDATE allocations SET used = used + 1, updated_at = :now WHERE consumer_id IN"
        " (SELECT uuid FROM consumers WHERE id % :parts = :part)",
    ):
        connection.execute(sa.text(statement), {**words, "now": now})
    count = "SELECT count(*) FROM consumers WHERE id % :parts = :part"
    found = connection.scalar(sa.text(count), words)
    connection.commit()
    return int(found or 0)


def _rows(providers: int, consumers: int) -> Rows:
    hosts = list(_providers(providers))
    return Rows(
        traits=all_encoded([NameRow(name=CUSTOM, created_at=BEGUN, updated_at=BEGUN)]),
        providers=all_encoded(hosts),
        consumers=all_encoded(_consumers(consumers, [host.uuid for host in hosts])),
    )


def _providers(count: int) -> Iterator[ProviderRow]:
    for number in range(count):
        at = BEGUN + timedelta(seconds=number)
        sizes = {"VCPU": (256, 16.0), "MEMORY_MB": (1_048_576, 1.5), "DISK_GB": (8_000, 1.0)}
        yield ProviderRow(
            uuid=_uuid(1, number),
            name=f"compute-{number}.example.org",
            generation=7 + number % 5,
            parent=None,
            created_at=at,
            updated_at=at + timedelta(hours=1),
            inventories={
                name: InventoryRow(
                    total=total,
                    reserved=1,
                    max_unit=total,
                    allocation_ratio=ratio,
                    created_at=at,
                    updated_at=at,
                )
                for name, (total, ratio) in sizes.items()
            },
            traits=sorted({*TRAITS, *([CUSTOM] if number % 3 == 0 else [])}),
            aggregates=[_uuid(2, number % AGGREGATES)],
        )


def _consumers(count: int, hosts: list[str]) -> Iterator[ConsumerRow]:
    for number in range(count):
        at = BEGUN + timedelta(days=1, seconds=number)
        yield ConsumerRow(
            uuid=_uuid(3, number),
            generation=1,
            project=f"{number % PROJECTS:032x}",
            user=f"{number % PROJECTS + 1:032x}",
            type="INSTANCE" if number % 4 else None,
            allocations={hosts[number % len(hosts)]: {"MEMORY_MB": 4_096, "VCPU": 4}},
            created_at=at,
            updated_at=at,
        )


def _uuid(kind: int, number: int) -> str:
    return f"{kind:08x}-0000-4000-8000-{number:012x}"
