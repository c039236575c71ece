"""Lists and sums, read page by page."""

import asyncio

import pytest

from moorage.core.ids import ProviderId
from moorage.store.api import Engine
from moorage.store.ledger import reads, usages
from tests.store.build import claimed, provider_id, provider_new, run, together


def test_providers_in_windows(engine: Engine) -> None:
    """Providers come in the order of their UUIDs."""

    async def scenario() -> None:
        await run(engine, together(*(provider_new(n) for n in (3, 1, 2))))
        first = await engine.read(reads.providers_window(ProviderId(""), 2))
        assert first == [provider_id(1), provider_id(2)]
        assert await engine.read(reads.providers_window(first[-1], 2)) == [provider_id(3)]

    asyncio.run(scenario())


def test_a_window_of_sums_has_a_bounded_size(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is cut off follows in the next window; a sum that does not fit is never cut."""
    monkeypatch.setattr(usages, "ROWS_MAX", 5)
    users = [f"user-{n}" for n in range(6)]

    async def scenario() -> None:
        batches = [provider_new(1, VCPU=1_000, DISK_GB=1_000)]
        batches += [
            claimed(n, {1: {"VCPU": 1, "DISK_GB": 2}}, user) for n, user in enumerate(users)
        ]
        await run(engine, together(*batches))
        after, seen = usages.START, []
        wanted = usages.UsageFilter(by="user")
        while True:
            window = await engine.read_aside(usages.usages_window(wanted, after, 100))
            assert len(window.sums) <= 2
            seen += window.sums
            if window.following is None:
                break
            after = window.following
        amounts = {"DISK_GB": 2, "VCPU": 1}
        assert seen == [usages.UsageSum(("project", user), 1, amounts) for user in users]
        monkeypatch.setattr(usages, "ROWS_MAX", 1)
        window = await engine.read_aside(usages.usages_window(wanted, usages.START, 100))
        assert (window.wide, window.sums) == (True, [])
        narrow = usages.UsageFilter(by="user", resource_class="VCPU")
        window = await engine.read_aside(usages.usages_window(narrow, usages.START, 100))
        assert not window.wide
        assert [one.amounts for one in window.sums] == [{"VCPU": 1}]

    asyncio.run(scenario())
