"""Lists of providers, read page by page, and sums over all of them."""

import asyncio

from moorage.core.ids import ProviderId
from moorage.store.api import Engine
from moorage.store.ledger import reads
from tests.store.build import claimed, provider_id, provider_new, run, together


def test_providers_in_windows(engine: Engine) -> None:
    """Providers come in the order of their UUIDs."""

    async def scenario() -> None:
        await run(engine, together(*(provider_new(n) for n in (3, 1, 2))))
        first = await engine.read(reads.providers_window(ProviderId(""), 2))
        assert first == [provider_id(1), provider_id(2)]
        assert await engine.read(reads.providers_window(first[-1], 2)) == [provider_id(3)]

    asyncio.run(scenario())


def test_inventories_are_added_up_by_class(engine: Engine) -> None:
    """The class of most providers comes first, then by name; an empty ledger has none."""

    async def scenario() -> None:
        assert await engine.read_aside(reads.stock_load()) == []
        hosts = (provider_new(n, VCPU=8, MEMORY_MB=2**31 - 1) for n in range(3))
        await run(engine, together(*hosts, provider_new(3, DISK_GB=5, VCPU=1)))
        await run(engine, claimed(1, {0: {"VCPU": 3, "MEMORY_MB": 2**31 - 1}, 1: {"VCPU": 2}}))
        assert await engine.read_aside(reads.stock_load()) == [
            ("VCPU", 5, 25),
            ("MEMORY_MB", 2**31 - 1, 3 * (2**31 - 1)),
            ("DISK_GB", 0, 5),
        ]

    asyncio.run(scenario())
