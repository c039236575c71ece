"""Lists of providers, read page by page."""

import asyncio

from moorage.core.ids import ProviderId
from moorage.store.api import Engine
from moorage.store.ledger import reads
from tests.store.build import provider_id, provider_new, run, together


def test_providers_in_windows(engine: Engine) -> None:
    """Providers come in the order of their UUIDs."""

    async def scenario() -> None:
        await run(engine, together(*(provider_new(n) for n in (3, 1, 2))))
        first = await engine.read(reads.providers_window(ProviderId(""), 2))
        assert first == [provider_id(1), provider_id(2)]
        assert await engine.read(reads.providers_window(first[-1], 2)) == [provider_id(3)]

    asyncio.run(scenario())
