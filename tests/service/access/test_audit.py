"""The audit log is filtered by target, actor, action and time, page by page, without a gap."""

import asyncio
import random
from pathlib import Path

import pytest

from moorage.core.clock import SECOND, Instant
from moorage.service.access.audit import AuditFilter, audit_row
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.service.batch.use_case import RunPlan
from moorage.store.access.audit import AuditRow, audit_insert
from moorage.store.open import open_engine
from tests.service.running import CLASSES, TRAITS, ManualClock, fatal
from tests.support import cluster

WHO = ("alice", "bob", "Alice")
ACTIONS = ("pool.put", "pool.pause", "pool", "poolish.put", "lease.force")
TARGETS = ("install/azure", "builds", "x")
TIMES = range(0, 40 * SECOND, SECOND // 2)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgresql" else f"sqlite:///{tmp_path}/m.sqlite"


def rows_drawn(draw: random.Random, count: int) -> list[AuditRow]:
    """Return rows of a few actors, actions, targets and times: many share a time."""
    return [
        audit_row(
            Instant(draw.choice(TIMES)),
            Actor(draw.choice(WHO), None, "operator"),
            draw.choice(ACTIONS),
            draw.choice(TARGETS),
        )
        for _ in range(count)
    ]


def filter_drawn(draw: random.Random) -> AuditFilter:
    """Return a filter with any of its parts."""

    def maybe(values: tuple[str, ...]) -> str | None:
        return draw.choice([None, draw.choice(values)])

    def at() -> Instant | None:
        return draw.choice([None, Instant(draw.choice(TIMES))])

    return AuditFilter(maybe(TARGETS), maybe(WHO), maybe(("pool", *ACTIONS)), at(), at())


def admitted(row: AuditRow, wanted: AuditFilter) -> bool:
    """Return whether a filter admits a row: written without the service's code."""
    nouns = (row.action, row.action.split(".")[0])
    return (
        wanted.target in (None, row.target)
        and wanted.who in (None, row.who)
        and (wanted.action is None or wanted.action in nouns)
        and (wanted.since is None or wanted.since <= row.at)
        and (wanted.until is None or row.at <= wanted.until)
    )


async def pages(service: Service, wanted: AuditFilter, limit: int) -> list[AuditRow]:
    """Return the rows of all pages."""
    found: list[AuditRow] = []
    cursor: str | None = None
    while True:
        rows, cursor = await service.audit.page(cursor, limit, wanted)
        assert len(rows) <= limit
        found += rows
        if cursor is None:
            return found


def test_all_filters_agree_with_a_plain_comparison(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters of all kinds, with pages that end in the middle of a time and of a scan."""
    monkeypatch.setattr("moorage.service.access.audit.SCANNED_AT_A_TIME", 7)
    monkeypatch.setattr("moorage.service.access.audit.AUDIT_SCANNED_MAX", 20)

    async def scenario() -> None:
        draw = random.Random(4)
        service = await Service.start(
            open_engine(url), ManualClock(), CLASSES, TRAITS, on_fatal=fatal
        )
        try:
            rows = rows_drawn(draw, 150)
            for row in rows:
                await service.transactor.submit(RunPlan(lambda row=row: audit_insert(row)))
            rows.sort(reverse=True)
            found = 0
            for _ in range(60):
                wanted = filter_drawn(draw)
                expected = [row for row in rows if admitted(row, wanted)]
                assert await pages(service, wanted, draw.choice([1, 3, 50])) == expected, wanted
                found += 0 < len(expected) < len(rows)
            assert found > 20, "most filters must leave something out"
        finally:
            await service.stop()

    asyncio.run(scenario())
